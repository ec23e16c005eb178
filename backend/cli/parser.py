"""The commands and options of the command line."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, get_args

from backend import hardware
from backend.cli import commands
from backend.cli.ablate import add_ablate
from backend.cli.batch import add_batch
from backend.cli.claims import add_claims
from backend.cli.help import Help, epilog
from backend.cli.history import add_history_command
from backend.cli.history_option import add_history_option
from backend.cli.list import add_list
from backend.cli.nodes import add_node_options
from backend.cli.open import add_open
from backend.cli.quality import add_quality
from backend.cli.replay import add_replay
from backend.cli.report import add_report
from backend.cli.stored import add_history
from backend.cli.story import add_story
from backend.cli.sweep import add_sweep
from backend.cli.users import add_users
from backend.config import EFFORTS, THINKING
from backend.errors import InputError, near_names, shown
from backend.fit.table import DEFAULT_CONTEXT
from backend.models import DEFAULT_MODEL
from backend.terminal.screen import Color

ARM_HELP = "axis=choice,axis=choice or the name of a preset in presets/arms"
NO_CHOICE = "(default: every axis at its default)"


MAX_MESSAGE = 240
"""Characters of what argparse says, which repeats what was typed in full."""


class Parser(argparse.ArgumentParser):
    """Raises InputError with one sentence instead of printing the usage. `--a` never stands for `--arm`."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more, allow_abbrev=False, formatter_class=Help)

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
    """What is said of options that a command does not have."""
    typed = unknown[0].partition("=")[0]
    near: list[str] = []
    if typed.startswith("--"):
        near = [name for name in options.known if name.startswith(typed)] or near_names(typed, options.known)[:1]
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"unrecognized arguments: {shown(' '.join(unknown))}.{hint} See tokendyno {options.command} --help."


def make_parser() -> Parser:
    """The whole command line. The parsed options' `act` carries out the command and returns the exit code."""
    parser = Parser(
        prog="tokendyno", usage="tokendyno COMMAND [options]", epilog=epilog(""),
        description="A dynamometer for Transformers inference: one prompt through two arms, with proof that what was "
        "asked for was in effect.",
    )  # fmt: skip
    version = hardware.versions().get("tokendyno", "(not installed)")
    parser.add_argument("--version", action="version", version=f"tokendyno {version}")
    subparsers = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", title="commands", prog="tokendyno", parser_class=Parser
    )

    def add(name: str, act: Any, text: str) -> argparse.ArgumentParser:
        sub: argparse.ArgumentParser = subparsers.add_parser(
            name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=epilog(name),
            usage=f"tokendyno {name} [options]",
        )  # fmt: skip
        sub.set_defaults(act=act)
        return sub

    compare = add("compare", commands.compare, "run two arms on one prompt and compare them")
    compare.add_argument("--a", default="", metavar="ARM", help=f"arm A: {ARM_HELP} {NO_CHOICE}")
    compare.add_argument("--b", default="", metavar="ARM", help="arm B, likewise")
    run = add("run", commands.run, "run one arm on one prompt")
    add_node_options(run)
    check = add("check", commands.check, "check an arm without running it; exit code 2 if refused")
    export = add("export", commands.export, "write an arm as a standalone Python script")
    for sub in (run, check, export):
        sub.add_argument("--arm", default="", metavar="ARM", help=f"{ARM_HELP} {NO_CHOICE}")
    export.add_argument("-o", "--output", default="-", metavar="FILE", help="the script; - is standard output")
    export.add_argument("--run", default="", metavar="RUN", help="write this run as one file instead")
    add_history(export)
    export.set_defaults(repeats=1)
    ablate = add_ablate(add, f"{ARM_HELP} {NO_CHOICE}")
    sweep = add_sweep(add, f"{ARM_HELP} {NO_CHOICE}")
    for sub in (compare, run, check, export, ablate, sweep):
        _add_workload(sub)
    ablate.set_defaults(repeats=1, max_new_tokens=64)
    add_history_option(ablate)
    sweep.set_defaults(repeats=1, max_new_tokens=64, prompt_tokens=128)
    add_history_option(sweep)
    batch = add_batch(add, ARM_HELP, _add_model)
    quality = add_quality(add, ARM_HELP, _add_model)
    add_history_option(quality)
    for sub in (compare, run, check, batch):
        told = "run the arms N times in turn (A B A B)"
        hidden = sub is check  # it takes the line of a run as it is, and has no use for these
        sub.add_argument(
            "--repeats", type=int, default=1, metavar="N", help=argparse.SUPPRESS if hidden else told
        )  # fmt: skip
        add_history_option(sub, hidden)
    replays = [*add_replay(add), add_story(add)]
    report = add_report(add)
    _add_models_dir(report)
    claims = add_claims(add)
    add_history_option(claims)
    history = add_history_command(add)
    fit = add("fit", commands.fit, "which quantizations and caches fit on a GPU, and their roofline bounds")
    _add_fit(fit)
    listed = add_list(add)
    models = add("models", commands.models, "list the models of the catalogue")
    add_open(add)
    add_users(add)
    doctor = add("doctor", commands.doctor, "show the machine, the versions, and which choices are usable")
    _add_doctor(doctor)
    for sub in (compare, run, batch, quality):
        sub.add_argument("--all", action="store_true", help="every figure, the whole texts, every row of the ledgers")
    check.add_argument("--all", action="store_true", help="every axis, those at their defaults too")
    documents = [
        compare,
        run,
        check,
        batch,
        quality,
        ablate,
        sweep,
        claims,
        history,
        report,
        fit,
        listed,
        models,
        doctor,
    ]
    for sub in documents:
        sub.add_argument("--json", metavar="FILE", help="write one JSON document; - is standard output, and only that")
    for sub in [*documents, *replays]:
        _add_color(sub)
    for sub in subparsers.choices.values():
        sub.set_defaults(known=[name for action in sub._actions for name in action.option_strings if name[:2] == "--"])
    return parser


def _add_color(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--color", choices=get_args(Color), default="auto",
        metavar="WHEN", help="colours: auto (terminals, unless NO_COLOR is set), always or never",
    )  # fmt: skip


def _add_doctor(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--bandwidth", action="store_true", help="measure the memory bandwidth and keep it for roofline bounds"
    )
    sub.add_argument("--verbose", action="store_true", help="every version, every choice and why it does not run")


def _add_model(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--model", default=DEFAULT_MODEL, help="catalogue name, Hub id[@revision], folder, .gguf file or random:NAME"
    )
    _add_models_dir(sub)


def _add_models_dir(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--models-dir", type=Path, default=os.environ.get("TOKENDYNO_MODELS_DIR"), metavar="FOLDER",
                     help="another folder in which models are looked up by name (TOKENDYNO_MODELS_DIR)")  # fmt: skip


def _add_workload(sub: argparse.ArgumentParser) -> None:
    _add_model(sub)
    sub.add_argument("--prompt", help="text to continue (default: the first prompt in presets/prompts.toml)")
    sub.add_argument("--prompt-file", type=Path, metavar="FILE", help="read the prompt from a UTF-8 file")
    sub.add_argument("--prompt-tokens", type=int, default=0, metavar="N",
                     help="cut or repeat the prompt to N tokens; without --prompt a synthetic one")  # fmt: skip
    sub.add_argument("--max-new-tokens", type=int, default=256, metavar="N", help="tokens to generate at most")
    sub.add_argument("--batch-size", type=int, default=1, metavar="N", help="copies of the prompt in one batch")
    sub.add_argument("--seed", type=int, default=0, metavar="N", help="seed for sampling")
    sub.add_argument("--temperature", type=float, default=0.0, metavar="T", help="sampling temperature; 0 is greedy")
    sub.add_argument("--top-k", type=int, default=0, metavar="K",
                     help="with a temperature: sample from the K most likely tokens; 0: from all")  # fmt: skip
    sub.add_argument("--top-p", type=float, default=1.0, metavar="P",
                     help="with a temperature: sample from the most likely tokens that add up to P")  # fmt: skip
    sub.add_argument("--chat", action="store_true", help="apply the model's chat template to the prompt")
    sub.add_argument(
        "--system", default="", metavar="TEXT", help="with --chat: a system message, such as 'Be concise.'"
    )
    sub.add_argument("--reasoning", "--reasoning-effort", default="", metavar="EFFORT",
                     help=f"with --chat, if the template supports it: {', '.join(EFFORTS)} (gpt-oss), "
                          f"{' or '.join(THINKING)} (Qwen 3)")  # fmt: skip
    sub.add_argument("--ignore-eos", action="store_true", help="generate all tokens, past every EOS")


def _add_fit(sub: argparse.ArgumentParser) -> None:
    _add_model(sub)
    size = sub.add_mutually_exclusive_group()
    size.add_argument("--gpu", metavar="NAME", help="a GPU of the catalogue, such as RTX-4090 (default: this machine)")
    size.add_argument("--vram", metavar="SIZE", help="the memory of a GPU that is not in the catalogue, such as 24GiB")
    sub.add_argument("--context", type=int, metavar="N", help=f"tokens in the KV cache (default: {DEFAULT_CONTEXT:,})")
    sub.add_argument("--batch", type=int, default=1, metavar="N", help="sequences in one batch")
    sub.add_argument("--gpus", type=int, default=1, metavar="N", help="GPUs of that kind that share the model")
    sub.add_argument("--sharding", metavar="CHOICE",
                     help="instead: how a choice of parallel, such as tensor-2, splits each parameter")  # fmt: skip
    sub.add_argument("--all", action="store_true", help="all rows, not only those that differ most")
