"""Options that several commands share, and what they ask for."""

import argparse
import dataclasses
import os
from collections.abc import Callable, Mapping

import msgspec

from tokendyno.backend.arms.bundles import written_arm
from tokendyno.backend.arms.presets import prompts
from tokendyno.backend.cli.files import read_prompt, typed_path
from tokendyno.backend.config import (
    EFFORTS,
    MOST_PAIRS,
    RANGES,
    THINKING,
    UNTIL_S,
    ArmRequest,
    Request,
    Workload,
    check_range,
    checked_price,
    range_text,
)
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import DEFAULT_MODEL, resolve
from tokendyno.backend.predict.parallel import MAX_GPUS
from tokendyno.backend.quality import QualityText
from tokendyno.backend.quality.texts import passages

ARM_HELP = "axis=choice,axis=choice, a preset, or PRESET,axis=choice"
NO_CHOICE = "(default: every axis at its default)"

Add = Callable[..., argparse.ArgumentParser]
"""What adds a command: its name, what carries it out, its help in a line, and details of it; `json`, `color`: whether
it has these options."""


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """What reads an option that is a whole number."""

    def read(text: str) -> int:
        try:
            number = int(text)
            check_range("", number, low, high)
        except ValueError:
            wanted = range_text(low, high)
            raise argparse.ArgumentTypeError(f"must be {wanted}, not {shown(text)!r}") from None
        return number

    return read


def add_number(
    sub: argparse._ActionsContainer,
    option: str,
    default: int | None,
    what: str,
    low: int = 1,
    high: int | None = None,
    metavar: str = "N",
) -> None:
    """An option that is a whole number. The range of one of a workload is known by its name."""
    ends = RANGES.get(option.removeprefix("--").replace("-", "_"), (low, high))
    sub.add_argument(option, type=whole(*ends), default=default, metavar=metavar, help=what)


def add_output(sub: argparse.ArgumentParser, option: str, what: str) -> None:
    sub.add_argument(option, type=os.path.expanduser, metavar="FILE", help=what)


def add_texts(sub: argparse.ArgumentParser, what: str) -> None:
    sub.add_argument("--text", type=typed_path, action="append", metavar="FILE", help=what)


def add_arm(sub: argparse.ArgumentParser, option: str = "--arm", what: str = "") -> None:
    sub.add_argument(option, default="", metavar="ARM", help=f"{what}{ARM_HELP} {NO_CHOICE}")


def add_all(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--all", action="store_true", help="every figure, the whole texts, every row of the ledgers")


def add_repeats(sub: argparse.ArgumentParser, hidden: bool = False) -> None:
    repeats = argparse.SUPPRESS if hidden else "run the arms N times in turn (A B A B)"
    add_number(sub, "--repeats", 1, repeats)
    add_proof(sub, hidden)


def add_pairs(sub: argparse.ArgumentParser) -> None:
    add_number(
        sub, "--repeats", None, f"run exactly N pairs (A B A B); default: until they decide, at most {MOST_PAIRS}"
    )
    sub.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help=f"run pairs until they decide, at most so long (default: {UNTIL_S:.0f})",
    )
    sub.add_argument(
        "--price-per-hour",
        type=float,
        default=0.0,
        metavar="X",
        help="of the machine: tells what a million tokens cost",
    )
    add_proof(sub)


def pairs_of(options: argparse.Namespace, request: Request) -> Request:
    if options.seconds is not None and (options.repeats or not options.seconds > 0):
        raise InputError(
            "--seconds is how long pairs of runs may take until they decide. Give a number above 0, and no --repeats."
        )
    work = dataclasses.replace(request.workload, repeats=options.repeats or MOST_PAIRS)
    until_s = 0.0 if options.repeats else options.seconds or UNTIL_S
    price = checked_price(options.price_per_hour)
    return msgspec.structs.replace(request, workload=work, until_s=until_s, price_per_hour=price)


def add_proof(sub: argparse.ArgumentParser, hidden: bool = False) -> None:
    no_proof = "do not find out what took effect"
    sub.add_argument("--no-proof", action="store_true", help=argparse.SUPPRESS if hidden else no_proof)


def add_model(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help="catalogue name, Hub id[@revision], folder, .gguf file or random:NAME; forward:NAME: its forward pass",
    )
    add_models_dir(sub)


def add_models_dir(sub: argparse.ArgumentParser) -> None:
    sub.add_argument(
        "--models-dir",
        type=typed_path,
        default=os.environ.get("TOKENDYNO_MODELS_DIR"),
        metavar="FOLDER",
        help="another folder in which models are looked up by name (TOKENDYNO_MODELS_DIR)",
    )


def add_workload(sub: argparse.ArgumentParser) -> None:
    add_model(sub)
    prompt = sub.add_argument_group("prompt options")
    prompt.add_argument("--prompt", help="text to continue (default: the first one in presets/prompts.toml)")
    prompt.add_argument(
        "--prompt-file", type=typed_path, metavar="FILE", help="read the prompt from a UTF-8 file; - is standard input"
    )
    add_number(prompt, "--prompt-tokens", 0, "cut or repeat the prompt to N tokens; without --prompt a synthetic one")
    add_number(prompt, "--max-new-tokens", 256, "tokens to generate at most, or forward passes of an encoder")
    add_number(prompt, "--batch-size", 1, "copies of the prompt in one batch")
    add_number(prompt, "--seed", 0, "seed for sampling")
    prompt.add_argument("--temperature", type=float, default=0.0, metavar="T", help="sampling temperature; 0 is greedy")
    top_k = "with a temperature: sample from the K most likely tokens; 0: from all"
    add_number(prompt, "--top-k", 0, top_k, metavar="K")
    prompt.add_argument(
        "--top-p",
        type=float,
        default=1.0,
        metavar="P",
        help="with a temperature: sample from the most likely tokens that add up to P",
    )
    prompt.add_argument("--chat", action="store_true", help="apply the model's chat template to the prompt")
    prompt.add_argument(
        "--system", default="", metavar="TEXT", help="with --chat: a system message, such as 'Be concise.'"
    )
    prompt.add_argument(
        "--reasoning-effort",
        "--reasoning",
        default="",
        metavar="EFFORT",
        help=f"with --chat, if the template supports it: {', '.join(EFFORTS)} (gpt-oss), "
        f"{' or '.join(THINKING)} (Qwen 3)",
    )
    prompt.add_argument("--ignore-eos", action="store_true", help="generate all tokens, past every EOS")


def workload(options: argparse.Namespace, repeats: int | None = None) -> Workload:
    """The prompt and how it is continued. `repeats`: in place of the option's."""
    prompt = options.prompt
    if prompt is not None and options.prompt_file is not None:
        raise InputError("Give --prompt or --prompt-file, not both.")
    if options.prompt_file is not None:
        prompt = read_prompt(options.prompt_file)
    if prompt is None:
        prompt = "" if options.prompt_tokens else prompts()[0].text
    repeats = options.repeats if repeats is None else repeats
    fields = [field.name for field in dataclasses.fields(Workload) if field.name != "repeats"]
    given = {name: getattr(options, name) for name in fields} | {"prompt": prompt}
    return Workload(**given, repeats=repeats)


def written_arms(
    options: argparse.Namespace, texts: Mapping[str, str], work: Workload, machine: Machine | None = None
) -> list[ArmRequest]:
    """The arms that `texts` write, by name; of a bundle what the machine (None: this one) can run. InputError where one
    cannot be read."""
    model, folder = options.model, options.models_dir
    return [
        written_arm(name, text, model, work, lambda: resolve(model, folder), machine) for name, text in texts.items()
    ]


def request_of(
    options: argparse.Namespace, arms: Mapping[str, str], repeats: int | None = None, machine: Machine | None = None
) -> Request:
    work = workload(options, repeats)
    proof = not getattr(options, "no_proof", False)  # export and sweeps have no such option
    return Request(options.model, written_arms(options, arms, work, machine), work, proof=proof)


def passages_of(options: argparse.Namespace) -> list[QualityText]:
    return [passage for path in options.text or [] for passage in passages(path.stem, read_prompt(path, "--text"))]


def add_elsewhere(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--gpu", metavar="NAME", help="on a GPU of the catalogue (default: this machine)")
    add_number(sub, "--gpus", 1, "as many of them", 1, MAX_GPUS)
