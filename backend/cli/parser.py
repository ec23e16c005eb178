"""The commands of the command line. Each is defined by a module, which is imported once its command is asked for."""

import argparse
import os
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn, get_args

from tokendyno.backend import hardware
from tokendyno.backend.cli.help import Help, epilog
from tokendyno.backend.cli.terminal import Color
from tokendyno.backend.errors import InputError, near_names, shown

COMMANDS = {
    "compare": "commands", "run": "commands", "start": "start", "check": "check", "export": "check",
    "advise": "advise", "ablate": "ablate", "sweep": "sweep", "batch": "batch", "quality": "quality",
    "replay": "replay", "import": "replay", "story": "story", "report": "report", "claims": "claims",
    "history": "history", "fit": "fit",
    "list": "list", "models": "list", "open": "page", "serve": ".serving.command", "users": "page", "doctor": "doctor",
}  # fmt: skip
"""The module of each command, from this folder; its `add_commands` adds it. `serve` stands above it, on the library."""

MAX_MESSAGE = 240
"""Characters of what argparse says, which repeats what was typed in full."""


class Parser(argparse.ArgumentParser):
    """Raises InputError with one sentence instead of printing the usage. `--a` never stands for `--arm`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False, formatter_class=Help)
        self._negative_number_matcher = re.compile(r"-\.?\d")  # -5m is a value, which its reader refuses; no option

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            raise InputError(_unrecognized(options, unknown))
        return options

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        names = list(action.choices or ())
        if action.dest == "command" and value not in names:
            near = near_names(str(value), names)
            hint = f"Did you mean {' or '.join(near)}?" if near else f"Valid: {', '.join(names)}."
            raise InputError(f"Unknown command {str(value)[:MAX_MESSAGE]!r}. {hint} See tokendyno --help.")
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        short = message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}..."
        raise InputError(f"{short}. See {self.prog} --help.")


def _unrecognized(options: argparse.Namespace, unknown: Sequence[str]) -> str:
    typed = unknown[0].partition("=")[0]
    near: list[str] = []
    if typed.startswith("--"):
        near = [name for name in options.known if name.startswith(typed)] or near_names(typed, options.known)[:1]
    elif not typed.startswith("-") and "--model" in options.known:
        near = [f"--model {shown(typed)}"]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"unrecognized arguments: {shown(' '.join(unknown))}.{hint} See tokendyno {options.command} --help."


def make_parser(command: str = "") -> Parser:
    """The whole command line, or what parses one command; its `act` returns the exit code."""
    parser = Parser(
        prog="tokendyno",
        usage="tokendyno COMMAND [options]",
        epilog=epilog(""),
        description="A dynamometer for Transformers inference: one prompt through two arms, with proof that what was "
        "asked for was in effect.",
    )
    if command not in COMMANDS:
        version = hardware.versions().get("tokendyno", "(not installed)")
        parser.add_argument("--version", action="version", version=f"tokendyno {version}")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands", prog="tokendyno", parser_class=Parser
    )
    documents, colored = [], []

    def add(
        name: str,
        act: Callable[[argparse.Namespace], int],
        summary: str,
        details: str = "",
        json: bool = False,
        color: bool = False,
    ) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = subparsers.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {details}".strip(),
            epilog=epilog(name),
            usage=f"tokendyno {name} [options]",
        )
        sub.set_defaults(act=act)
        documents.extend([sub] * json)
        colored.extend([sub] * (json or color))
        return sub

    for module in dict.fromkeys([COMMANDS[command]] if command in COMMANDS else COMMANDS.values()):
        import_module(f".{module}", __package__).add_commands(add)
    for sub in documents:
        sub.add_argument(
            "--json",
            type=os.path.expanduser,
            metavar="FILE",
            help="write one JSON document; - is standard output, and only that",
        )
    for sub in colored:
        sub.add_argument(
            "--color",
            choices=get_args(Color),
            default="auto",
            metavar="WHEN",
            help="colours: auto (terminals), always or never",
        )
    for sub in subparsers.choices.values():
        sub.set_defaults(known=[name for action in sub._actions for name in action.option_strings if name[:2] == "--"])
    return parser
