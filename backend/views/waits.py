"""What to expect of a phase that is under way, in words: how long it took the last time, how much has arrived."""

from collections.abc import Mapping

from tokendyno.backend.messages import Amount, PhaseName
from tokendyno.backend.runs.arm_series import Phase
from tokendyno.backend.units import bytes_text, three

UNKNOWN = "no earlier run of this shape tells how long"

WORTH_A_WORD_S = 1.0
"""A phase that took less the last time is not mentioned."""


def wait_text(phase: Phase, expected_s: Mapping[PhaseName, float]) -> str:
    """The words after the seconds of a phase, "" for none; a finished download keeps its size."""
    over = phase.state in ("end", "broken")
    parts = [_amount(phase.amount, over)] if phase.amount is not None else []
    seconds = expected_s.get(phase.name)
    if not over:
        if seconds is not None and seconds >= WORTH_A_WORD_S:
            parts.append(f"about {duration(seconds)} expected")
        elif seconds is None and phase.name == "compile":
            parts.append(UNKNOWN)
    return ", ".join(part for part in parts if part)


def start_cost_text(seconds: float) -> str:
    """What a choice adds to the seconds before a run."""
    if abs(seconds) < WORTH_A_WORD_S:
        return "no longer to start here"
    sign = "+" if seconds > 0 else "\u2212"
    return f"{sign}{duration(abs(seconds))} to start here"


def _amount(amount: Amount, over: bool) -> str:
    """ "1.20 of 14.9 GiB, 85.0 MiB/s, 2 min 45 s left"; what is not known is left out."""
    done, unit = bytes_text(amount.done_bytes)
    if over:
        return f"{done} {unit}" if amount.done_bytes else ""
    if amount.total_bytes:
        total, total_unit = bytes_text(amount.total_bytes)
        parts = [f"{done}{'' if unit == total_unit else f' {unit}'} of {total} {total_unit}"]
    else:
        parts = [f"{done} {unit}"]
    rate = amount.bytes_per_s
    if rate is not None:
        parts.append(f"{' '.join(bytes_text(rate))}/s")
        left_bytes = (amount.total_bytes or 0) - amount.done_bytes
        if rate and left_bytes > 0:
            parts.append(f"{duration(left_bytes / rate)} left")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds in the units that one waits in: "0.42 s", "8.1 s", "61 s", "2 min 45 s", "1 h 20 min"."""
    if seconds < 10:
        return f"{three(seconds) if seconds < 1 else f'{seconds:.1f}'} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"
