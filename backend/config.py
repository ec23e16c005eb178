"""What a user asks for, as frozen values that validate themselves: an arm (`Config`) and its workload (`Workload`)."""

import hashlib
import json
import math
from dataclasses import dataclass

import msgspec

from tokendyno.backend.errors import InputError, shown, unknown
from tokendyno.backend.quality.texts import Quality, QualityText
from tokendyno.backend.traffic.requests import Traffic

MAX_NEW_TOKENS = 32_768
MAX_BATCH_SIZE = 1_024
MAX_PROMPT_BYTES = 1 << 20
RANGES = {
    "max_new_tokens": (1, MAX_NEW_TOKENS),
    "batch_size": (1, MAX_BATCH_SIZE),
    "repeats": (1, 50),
    "prompt_tokens": (0, 1_000_000),
    "seed": (0, 2**63 - 1),
    "top_k": (0, 1_000_000),
}
"""The least and the most of a whole number of a `Workload`."""

MIN_TEMPERATURE = 0.001
"""Logits are divided by it: those of float16 and bfloat16 must not become infinite."""
EFFORTS = ("low", "medium", "high")
THINKING = ("on", "off")
REASONING = (*EFFORTS, *THINKING)
"""How long a model may reason, by its chat template: an effort (gpt-oss), or thinking as a switch (Qwen 3)."""

STOCK_SENTENCE = "The quick brown fox jumps over the lazy dog. "
"""A synthetic prompt repeats this sentence."""


@dataclass(frozen=True, slots=True)
class Config:
    """One arm: a model and, axis by axis, the choices that differ from the default.

    `choices` is sorted and without defaults, so arms that mean the same are equal and have the same `id`.
    Build it with `tokendyno.backend.arms.parse.parse_arm`, which knows the axes.
    """

    model: str
    choices: tuple[tuple[str, str], ...] = ()

    @property
    def id(self) -> str:
        """Twelve hex digits, the same for the same model and choices."""
        text = json.dumps([self.model, self.choices], ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Workload:
    """The prompt and how it is continued.

    prompt_tokens     above 0: the prompt is repeated or cut to this many tokens (a synthetic prompt if it is empty)
    temperature       0 is greedy decoding
    top_k, top_p      0 and 1 sample from the whole distribution
    system            of a chat: the system message before it; "": none
    reasoning_effort  of a chat: one of `REASONING`; "": as the template sets it
    ignore_eos        generate exactly `max_new_tokens` tokens, past any EOS token
    """

    prompt: str = ""
    prompt_tokens: int = 0
    max_new_tokens: int = 256
    batch_size: int = 1
    temperature: float = 0.0
    seed: int = 0
    repeats: int = 1
    ignore_eos: bool = False
    top_k: int = 0
    top_p: float = 1.0
    chat: bool = False
    reasoning_effort: str = ""
    system: str = ""

    def __post_init__(self) -> None:
        for field, ends in RANGES.items():
            check_range(field, getattr(self, field), *ends)
        check_temperature("temperature", self.temperature)
        check_top_p("top_p", self.top_p)
        if self.reasoning_effort and self.reasoning_effort not in REASONING:
            raise unknown("reasoning effort", self.reasoning_effort, REASONING)
        if self.reasoning_effort and not self.chat:
            raise InputError("Reasoning effort is part of the chat template. Turn chat on as well.")
        if self.system.strip() and not self.chat:
            raise InputError("A system message is part of a chat. Turn chat on as well, or leave it empty.")
        if self.chat and self.prompt_tokens:
            raise InputError(
                "A chat template adds tokens, so a chat cannot have a fixed number of prompt tokens. "
                "Remove one of the two."
            )
        if not self.temperature and (self.top_k or self.top_p < 1):
            raise InputError(
                "top_k and top_p have no effect at temperature 0, which is greedy. Set a temperature, or remove them."
            )
        if not self.prompt.strip() and not self.prompt_tokens:
            raise InputError(
                "The prompt is empty. Write some text to continue, or set a number of prompt tokens "
                "(--prompt-tokens) for a synthetic prompt."
            )
        check_text("The prompt", self.prompt)
        check_text("The system message", self.system)


def check_text(name: str, text: str) -> None:
    """InputError for a text that is too long, or cannot be encoded."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError:
        raise InputError(f"{name} is not valid UTF-8. Save it as UTF-8.") from None
    if size_bytes > MAX_PROMPT_BYTES:
        raise InputError(f"{name} has {size_bytes:,} bytes, over the limit of {MAX_PROMPT_BYTES:,}. Shorten it.")


def check_range(name: str, value: int, low: int, high: int | None = None) -> None:
    """InputError where a number is outside. `name`: by which whoever gave it knows it."""
    if value < low or (high is not None and value > high):
        raise InputError(f"{name} is {shown(value)}; it must be {range_text(low, high)}.")


def range_text(low: int, high: int | None = None) -> str:
    return f"a whole number from {low:,} {'on' if high is None else f'to {high:,}'}"


def check_temperature(name: str, value: float) -> None:
    if not (value == 0 or MIN_TEMPERATURE <= value <= 10.0):
        raise InputError(f"{name} is {value}; it must be 0 (greedy), or from {MIN_TEMPERATURE:g} to 10.")


def check_top_p(name: str, value: float) -> None:
    if not 0.0 < value <= 1.0:
        raise InputError(f"{name} is {value}; it must be above 0 and at most 1 (1 turns it off).")


class ArmRequest(msgspec.Struct, frozen=True):
    """An arm as requested: the choices that differ from the default, by axis. `preset`: the bundle they came from, with
    what was written beside it."""

    name: str
    choices: dict[str, str] = {}
    preset: str = ""


class Request(msgspec.Struct, frozen=True):
    """A run as requested: one or two arms on one model with one workload.

    traffic  many requests instead of one prompt: `workload` then holds the longest lengths, the batch size that both
             arms may reach, and how tokens are chosen
    quality  given texts instead of a prompt: `workload` then holds their context and positions
    trial    id of the ablation that this run is a trial of, "" for others
    proof    find out after the last repeat what was in effect
    until_s  of two arms: above 0, pairs of runs until they decide, for at most about so many seconds and at most
             `workload.repeats` pairs; 0: exactly so many
    reading  after the pairs, where the arms may differ in what they predict, both are given these texts; empty: those
             of tokendyno; None: none
    price_per_hour  of the machine, in any currency, so that tokens have a cost; 0: not known
    """

    model: str
    arms: list[ArmRequest]
    workload: Workload
    traffic: Traffic | None = None
    quality: Quality | None = None
    trial: str = ""
    proof: bool = True
    until_s: float = 0.0
    reading: list[QualityText] | None = None
    price_per_hour: float = 0.0


def checked_price(price_per_hour: float) -> float:
    """The price as it was given; InputError where it is none."""
    if not 0 <= price_per_hour < math.inf:
        raise InputError(f"The price of an hour is {price_per_hour:g}; it must be a number from 0 on (0: not known).")
    return price_per_hour


def workload_of(traffic: Traffic, seed: int = 0, repeats: int = 1, ignore_eos: bool = False) -> Workload:
    """What memory and rules need of many requests: the longest lengths, in as many rows as run at once."""
    rows = min(traffic.concurrent, len(traffic.requests))
    return Workload(
        prompt_tokens=traffic.longest_prompt,
        max_new_tokens=traffic.longest_output,
        batch_size=rows,
        seed=seed,
        repeats=repeats,
        ignore_eos=ignore_eos,
    )


def reading_of(quality: Quality) -> Workload:
    """The workload of given texts: the context of the first as a prompt, each position as a new token."""
    return Workload(
        quality.texts[0].text, prompt_tokens=quality.context, max_new_tokens=quality.positions, ignore_eos=True
    )


LEAST_PAIRS, MOST_PAIRS = 2, 9
UNTIL_S = 60.0
"""What Run of two arms takes unless something else is asked for: pairs of runs, and at most so many seconds of them."""
