"""A run of one prompt as the command that repeats it."""

import dataclasses
import shlex
from collections.abc import Mapping

from tokendyno.backend.config import UNTIL_S, Request, Workload

_OPTIONS = {
    "prompt": "--prompt", "prompt_tokens": "--prompt-tokens", "max_new_tokens": "--max-new-tokens",
    "batch_size": "--batch-size", "temperature": "--temperature", "seed": "--seed", "repeats": "--repeats",
    "ignore_eos": "--ignore-eos", "top_k": "--top-k", "top_p": "--top-p", "chat": "--chat",
    "reasoning_effort": "--reasoning", "system": "--system",
}  # fmt: skip
"""Options of the command line by fields of `Workload`."""


def command_of(request: Request) -> str:
    """What is typed to run the arms of a request again; what is as by default is left out."""
    arms = {arm.name: _written(arm.choices) for arm in request.arms}
    words = ["tokendyno", "run" if len(arms) == 1 else "compare", "--model", request.model]
    for name, written in arms.items():
        words += _option("--arm" if len(arms) == 1 else f"--{name.lower()}", written) if written else []
    if request.until_s and request.until_s != UNTIL_S:
        words += ["--seconds", f"{request.until_s:g}"]
    if request.price_per_hour:
        words += ["--price-per-hour", f"{request.price_per_hour:g}"]
    for field in dataclasses.fields(Workload):
        value = getattr(request.workload, field.name)
        exactly = field.name == "repeats" and len(arms) == 2
        if not request.until_s if exactly else value != field.default:
            option = _OPTIONS[field.name]
            words += [option] if value is True else _option(option, str(value))
    return shlex.join(words)


def _option(option: str, value: str) -> list[str]:
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


def _written(choices: Mapping[str, str]) -> str:
    return ",".join(f"{axis}={choice}" for axis, choice in choices.items())
