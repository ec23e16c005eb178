"""What somebody wants of an arm: a wish, limits, and what a trial is worth by them."""

import math
import re
from collections.abc import Sequence
from typing import Literal, get_args

import msgspec

from tokendyno.backend.ablation.journal import Cost, Trial
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError, unknown
from tokendyno.backend.fit.device import parse_size, size_typed
from tokendyno.backend.optimizations.base import Wish as Serves
from tokendyno.backend.runs.statistics import mean
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.units import bytes_text, seconds_text

Wish = Literal["latency", "memory", "throughput", "quick-start"]
WISHES: tuple[Wish, ...] = get_args(Wish)

TITLES: dict[Wish, str] = {
    "latency": "the least time a token",
    "memory": "the least memory",
    "throughput": "the most tokens a second",
    "quick-start": "the quickest start",
}

SEEKS: dict[Wish, frozenset[Serves]] = {
    "latency": frozenset(("faster", "memory", "numerics")),
    "memory": frozenset(("faster", "memory", "numerics", "context")),
    "throughput": frozenset(("faster", "memory", "numerics")),
    "quick-start": frozenset(("start", "faster", "memory", "numerics")),
}
"""By wish, what the choices that are tried for it serve."""

SERVING: dict[Wish, Serves] = {"latency": "faster", "memory": "memory", "throughput": "faster", "quick-start": "start"}
"""By wish, what the choices serve that are believed to gain."""

TIME_FOR_MEMORY = 0.05
"""Where memory is wished for, the exponent of time beside it: an arm may take 1% more if it is faster by a fifth."""


class Limits(msgspec.Struct, frozen=True):
    """What an arm must keep to; None: no limit.

    latency_s    time a token
    kl_nats      KL divergence from the base on given texts; None: a cost that is not large (`views/quality.py`)
    any_quality  whether quality does not matter
    """

    memory_bytes: int | None = None
    latency_s: float | None = None
    ttft_s: float | None = None
    kl_nats: float | None = None
    any_quality: bool = False

    def exceeded(self, trial: Trial) -> str:
        """The limits that a trial is over, in words; "" within them."""
        exceeded = [
            f"{what} of {' '.join(words(value))} over {' '.join(words(limit))}"
            for what, words, value, limit in (
                ("memory", bytes_text, trial.peak_memory_bytes, self.memory_bytes),
                ("time a token", seconds_text, token_s(trial), self.latency_s),
                ("TTFT", seconds_text, trial.ttft_s, self.ttft_s),
            )
            if limit is not None and value is not None and value > limit
        ]
        return ", ".join(exceeded)

    def allows(self, cost: Cost | None) -> bool:
        """Whether an arm with this cost may win; None: nothing was to be read."""
        if cost is None or self.any_quality or cost.finer:
            return True
        return cost.kl_nats <= self.kl_nats if self.kl_nats is not None else cost.cost != "" and cost.gains

    def settings(self) -> list[tuple[str, str]]:
        """The limits as a journal's heading keeps them: names with values; those that are not set are left out."""
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, str(value)) for name, value in values if value is not None and value is not False]

    @classmethod
    def read(cls, memory: str, latency: str, ttft: str, quality: str) -> "Limits":
        """The limits as they are typed, "" for no limit. InputError where one cannot be read."""
        kl_nats, any_quality = read_quality(quality.strip())
        latency_s, ttft_s = (parse_seconds(text) if text.strip() else None for text in (latency, ttft))
        size = parse_size(memory) if memory.strip() else None
        return cls(size, latency_s, ttft_s, kl_nats, any_quality)

    def typed(self) -> tuple[str, str, str, str]:
        """The limits as `read` takes them."""
        size = size_typed(self.memory_bytes) if self.memory_bytes is not None else ""
        latency, ttft = (seconds_typed(limit) if limit else "" for limit in (self.latency_s, self.ttft_s))
        quality = "same" if self.kl_nats is None else f"{self.kl_nats:g}"
        return size, latency, ttft, "any" if self.any_quality else quality

    @classmethod
    def of_settings(cls, settings: Sequence[tuple[str, str]]) -> "Limits":
        """The limits among the settings of a journal's heading."""
        limits = {name: text for name, text in settings if name in cls.__struct_fields__}
        return msgspec.convert(limits, cls, strict=False)


class Question(msgspec.Struct, frozen=True):
    """What advice is asked for. `traffic`: many requests, whose longest lengths `work` then holds; None: one prompt."""

    model: str
    work: Workload
    wish: Wish
    limits: Limits = Limits()
    traffic: Traffic | None = None


def read_quality(text: str) -> tuple[float | None, bool]:
    """What `--quality` says: (`kl_nats`, `any_quality`). InputError where it is neither same, any nor a number."""
    if text in ("same", "any"):
        return None, text == "any"
    try:
        nats = float(text)
    except ValueError:
        raise unknown("quality", text, ("same", "any", "0.05")) from None
    if not 0 <= nats < math.inf:
        raise InputError(f"The quality {text} is no KL divergence. Give same, any, or a number of nats such as 0.05.")
    return nats, False


LEAST_BUDGET_S = 10.0
UNITS_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_seconds(text: str) -> float:
    """Seconds of a time such as 15ms or 10m. InputError where it is none: the unit is required."""
    match = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)\s*", text)
    seconds = float(match[1]) * UNITS_S[match[2]] if match and match[2] in UNITS_S else 0.0
    if seconds <= 0:
        raise InputError(f"Cannot read the time {text!r}. Write a number above 0 with a unit, such as 15ms, 1s or 10m.")
    return seconds


def seconds_typed(seconds: float) -> str:
    """The time as `parse_seconds` takes it."""
    for unit in ("h", "m"):
        if seconds >= UNITS_S[unit] and seconds % UNITS_S[unit] == 0:
            return f"{seconds / UNITS_S[unit]:g}{unit}"
    return f"{seconds:g}s" if seconds >= 1 else f"{seconds * 1e3:g}ms"


def read_budget(text: str) -> float:
    """Seconds that advice may take. InputError for less than one run takes."""
    seconds = parse_seconds(text)
    if seconds < LEAST_BUDGET_S:
        raise InputError(f"A budget of {text} is less than one run takes. Give at least {LEAST_BUDGET_S:g}s.")
    return seconds


def token_s(trial: Trial) -> float | None:
    """Mean time of a decode step of a trial."""
    return mean(trial.latency_s[1:]) or mean(trial.latency_s)


def value_of(trial: Trial, wish: Wish) -> float | None:
    """The logarithm of what is to be least; None where the trial does not say. Of many requests: time of a useful
    token."""
    if trial.useful_tokens_s and wish == "throughput":
        return -math.log(trial.useful_tokens_s)
    step_s = token_s(trial)
    if not step_s:
        return None
    match wish:
        case "memory":
            peak_bytes = trial.peak_memory_bytes
            return math.log(peak_bytes) + TIME_FOR_MEMORY * math.log(step_s) if peak_bytes else None
        case "quick-start":
            return math.log(trial.start_s + sum(trial.latency_s[1:])) if trial.start_s else None
        case _:
            return math.log(step_s)
