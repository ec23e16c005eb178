"""Writes docs/cli.md from what `tokendyno --help` and the help of each command say: `python -m tools.cli_docs`."""

import argparse
import os
from collections import Counter

from tokendyno.backend.cli.help import EXAMPLES, TOPICS
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.paths import ROOT, default_users

PAGE = ROOT / "docs" / "cli.md"
_HEAD = """# Command line

Written from `--help` by `python -m tools.cli_docs`. Options that several commands share stand
[at the end](#options-of-several-commands). An ARM names choices of [axes](axes.md); [documents](json.md) are JSON.
`python -m tokendyno` is the same as `tokendyno`.
"""


def page() -> str:
    """The whole page."""
    commands: dict[str, argparse.ArgumentParser] = next(
        dict(action.choices) for action in make_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    options = {name: _options(sub) for name, sub in commands.items()}
    counts = Counter(item for own in options.values() for item in own.items())
    shared: dict[str, str] = {}
    for (option, text), count in counts.most_common():
        if count > 1:
            shared.setdefault(option, text)
    prompt = _options(commands["run"], "prompt options")
    lines = [_HEAD, *_examples(""), *(f"**{topic.capitalize()}**: {text}.\n" for topic, text in TOPICS.items())]
    for name, sub in commands.items():
        own = {option: text for option, text in options[name].items() if shared.get(option) != text}
        also = [f"{option.split()[0].rstrip('`')}`" for option in options[name] if option not in {**own, **prompt}]
        also += ["[prompt options](#prompt-options)"] if len(prompt.keys() & options[name].keys()) > 1 else []
        lines += [f"## `{name}`\n", f"{sub.description}\n", *_examples(name), *_table(own)]
        lines += [f"{'Also' if own else 'Options:'} {', '.join(also)}.\n"] if also else []
    rest = {option: text for option, text in shared.items() if option not in prompt}
    lines += ["## Options of several commands\n", *_table(rest), "## Prompt options\n", *_table(prompt)]
    return "\n".join(lines).rstrip() + "\n"


def _options(sub: argparse.ArgumentParser, title: str = "") -> dict[str, str]:
    """The help of each option, or of those under a title, by how it is written. Defaults that are paths of this machine
    are left out."""
    texts = {}
    groups = (group for group in sub._action_groups if title in ("", group.title))
    for action in (action for group in groups for action in group._group_actions):
        if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
            continue
        *aliases, last = action.option_strings or [""]
        value = "" if action.nargs == 0 else str(action.metavar or action.dest.upper())
        dots = " ..." if action.nargs in ("*", "+") else ""
        option = ", ".join([*(f"`{alias}`" for alias in aliases), f"`{f'{last} {value}'.strip()}{dots}`"])
        is_path = os.path.isabs(str(action.default))
        text = str(action.help) if is_path else sub._get_formatter()._expand_help(action)
        texts[option] = text.replace(str(default_users().parent), "~/.local/share/tokendyno")
    return texts


def _examples(command: str) -> list[str]:
    width = max(len(line) for line, _ in EXAMPLES[command]) + 2
    return ["```bash", *(f"{line:{width}}# {what}" for line, what in EXAMPLES[command]), "```\n"]


def _table(options: dict[str, str]) -> list[str]:
    rows = [f"| {option} | {text} |" for option, text in options.items()]
    return ["| option | meaning |", "| --- | --- |", *rows, ""] if rows else []


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
