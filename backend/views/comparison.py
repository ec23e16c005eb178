"""Two arms against each other, for all that says it: their names, the headline, and the difference in each figure.

Nothing is called faster or slower unless the whole interval says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import ArmRequest
from tokendyno.backend.optimizations import all_axes, choice_title
from tokendyno.backend.optimizations.base import Optimization
from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.records import OfRun
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison, Summary
from tokendyno.backend.units import three, times

ABOUT_SAME = 0.01
"""One pair of runs whose times differ by less than this is said to have taken the same time. Our choice."""

SAME_BYTES = 0.01
"""GPU memory and KV caches that differ by less are called equal. Our choice."""

SAME_RESIDENT = 0.05
"""Resident memory on a CPU that differs by less is called equal: the allocator keeps more or less from run to run. Our
choice."""

TIMES_FROM = 1.1
"""From this ratio on "1.5x as fast" is said, below it "9% less time"."""

CLOSE = 0.2
"""Ends of an interval that are closer to each other have two decimals."""

USEFUL = "useful tokens/s"
"""What is compared of runs of many requests."""

LETTERS: Mapping[str, str] = {"A": "A", "B": "B"}


class Headline(NamedTuple):
    """The comparison of speed around its one number: `lead`, `figure` and `tail` make a sentence; `ends`: the interval,
    "" without one."""

    lead: str
    figure: str = ""
    tail: str = ""
    ends: str = ""

    @property
    def text(self) -> str:
        sentence = f"{self.lead}{'' if self.tail else ':'} {self.figure} {self.tail}".strip()
        return f"{sentence} ({self.ends})" if self.ends else sentence


class Bytes(NamedTuple):
    """The same figure of arm A and of arm B, in bytes, and the share by which both may differ by chance."""

    a: int
    b: int
    noise: float

    def change(self, name: str) -> float:
        """By what share arm `name` ("A" or "B") takes more than the other one; 0.0 within the noise."""
        change = self.b / self.a - 1
        if abs(change) < self.noise:
            return 0.0
        return change if name == "B" else self.a / self.b - 1


class Difference(msgspec.Struct, frozen=True):
    """The better arm against the other in one figure; B against A where neither is better beyond noise: `better` ""."""

    text: str
    better: str = ""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms of a run against each other, as far as they are.

    comparison   of their speed, None until both have ended a run
    memory, kv   bytes, None where one is not known, or one text is longer and takes more for that alone
    """

    comparison: Comparison | None
    names: Mapping[str, str]
    memory: Bytes | None
    kv: Bytes | None


def pair_of(run: Snapshot) -> Pair | None:
    """The two arms of a run; None where it has another number of them."""
    if len(run.arms) != 2:
        return None
    if run.request.traffic is None:
        a, b = run.summaries.values()
        memory = bytes_of(_peaks(a, b, memory_noise(run)), memory_noise(run))
        kv = bytes_of(_kv_sizes(a, b), SAME_BYTES)
    else:
        memory, kv = bytes_of([arm.peak_memory_bytes for arm in run.arms.values()], memory_noise(run)), None
    return Pair(run.comparison, arm_names(run), memory, kv)


def _kv_sizes(a: Summary, b: Summary) -> tuple[int | None, int | None]:
    """Bytes of both KV caches; None after texts of different lengths: the longer one takes more for that alone."""
    return (a.kv_bytes, b.kv_bytes) if a.tokens == b.tokens else (None, None)


def _peaks(a: Summary, b: Summary, noise: float) -> tuple[int | None, int | None]:
    """Peak memory of both arms; None where they differ by no more than the KV caches of texts of different lengths."""
    peak_a, peak_b = a.peak_memory_bytes, b.peak_memory_bytes
    if a.tokens != b.tokens and peak_a and peak_b:
        longer = abs((a.kv_bytes or 0) - (b.kv_bytes or 0)) + noise * max(peak_a, peak_b)
        if abs(peak_a - peak_b) <= longer:
            return None, None
    return peak_a, peak_b


def memory_noise(run: Snapshot) -> float:
    """The share by which peak memory varies between equal runs on this run's device."""
    return SAME_RESIDENT if run.created.device == "cpu" else SAME_BYTES


def bytes_of(sizes: Sequence[int | None], noise: float) -> Bytes | None:
    """The sizes of both arms; None where one is not known."""
    a, b = sizes
    return Bytes(a, b, noise) if a and b else None


# --- the headline -----------------------------------------------------------------------------------


def headline(comparison: Comparison, names: Mapping[str, str], serves: bool = False) -> Headline:
    """How fast B is against A: from `TIMES_FROM` on as a factor, else in percent. `serves`: many requests."""
    a, b = names["A"], names["B"]
    ratio, low, high = comparison.ratio, comparison.low, comparison.high
    ends = range_text(low, high) if comparison.bounded and low and high else ""
    shown = times(ratio)
    match comparison.outcome:
        case "no_difference":
            what = USEFUL if serves else "speed"
            return Headline(f"No difference in {what} between {b} and {a}", shown, "", ends)
        case "undecided":
            may = f"serve more or fewer {USEFUL}" if serves else "be faster or slower"
            return Headline(f"Not decided: {b} may {may} than {a}", shown, "", ends)
        case "unknown":
            came = "ran as fast" if abs(ratio - 1) < ABOUT_SAME else f"came out {'ahead' if ratio > 1 else 'behind'}"
            return Headline(capitalized(f"{b} {came} in the first pair"), shown)
    assert low is not None and high is not None
    slower, verb = comparison.outcome == "a_faster", "served" if serves else "took"
    if max(ratio, 1 / ratio) < TIMES_FROM or (serves and slower):
        percent, *both = _percents([abs(value - 1 if serves else 1 - 1 / value) for value in (ratio, low, high)])
        what = f"{'fewer' if slower else 'more'} {USEFUL}" if serves else f"{'more' if slower else 'less'} time"
        return Headline(capitalized(f"{b} {verb}"), percent, f"{what} than {a}", " to ".join(sorted(both, key=_number)))
    if slower:
        ratio, low, high = 1 / ratio, 1 / high, 1 / low
    what = f"the {USEFUL} of" if serves else "the time of" if slower else "as fast as"
    verb = verb if serves or slower else "ran"
    shown = times(ratio)
    if times(low) == times(high):  # the ratio has as many digits as its interval
        shown = f"{ratio:.2f}\u00d7" if ratio < 10 else f"{three(ratio)}\u00d7"
    return Headline(capitalized(f"{b} {verb}"), shown, f"{what} {a}", range_text(low, high))


def less_or_more(change: float) -> str:
    """A change by a share as "13% less", from twice as much on as "2.6\u00d7"; "" where it is shown as 0%."""
    if change >= 1:
        return times(1 + change)
    shown = f"{abs(change):.1%}" if abs(change) < 0.01 else f"{abs(change):.0%}"
    return "" if float(shown[:-1]) == 0 else f"{shown} {'more' if change > 0 else 'less'}"


def range_text(low: float, high: float, word: str = "to") -> str:
    """Both ends of an interval of ratios, with as many digits as tell them apart, and from 1 where it lies beyond."""
    ends, decimals, excludes_1 = [times(low)[:-1], times(high)[:-1]], 1, low > 1 or high < 1
    if ends[0] == ends[1] or high - low < CLOSE:
        ends, decimals = [f"{end:.2f}" if 0.1 <= end < 10 else three(end) for end in (low, high)], 2
    while excludes_1 and decimals < 4 and any(float(end.replace(",", "")) == 1 for end in ends):
        decimals += 1
        ends = [f"{end:,.{decimals}f}" for end in (low, high)]
    return f" {word} ".join(ends)


def _percents(shares: Sequence[float]) -> list[str]:
    """A value and both ends of its interval, with as few decimals as tell the ends apart, and all from 0%."""
    percents: list[str] = []
    for decimals in (0, 1, 2):
        percents = [f"{100 * share:.{decimals}f}%" for share in shares]
        if percents[1] != percents[2] and min(map(_number, percents)) > 0:
            break
    return percents


def _number(percent: str) -> float:
    return float(percent.removesuffix("%"))


# --- the difference in each figure ------------------------------------------------------------------

Interval = tuple[float, float]


def differences(run: Snapshot) -> Mapping[str, Difference]:
    """By the key of the tile, once both arms have ended a run. Of one prompt only once the whole run is over: before,
    they are not at the same token. Times per token and rates differ by the ratio of the verdict. Of equal arms neither
    is better in anything."""
    if len(run.arms) != 2 or not all(arm.completed(0) for arm in run.arms.values()):
        return {}
    if run.request.traffic is not None:
        batch_a, batch_b = run.batch_summaries.values()
        return _of_requests(batch_a, batch_b, run.comparison)
    if not run.ended:
        return {}
    a, b = run.summaries.values()
    compared, equal = run.comparison, run.equal_arms
    outcome, ratio = (compared.outcome, compared.ratio) if compared else ("unknown", None)
    faster = {"a_faster": "A", "b_faster": "B"}.get(outcome, "")
    noise = equal or outcome in ("no_difference", "undecided")
    sooner = "" if equal else _apart(a.ttft_interval_s, b.ttft_interval_s)
    known = a.ttft_interval_s is not None and b.ttft_interval_s is not None
    by_key = {
        "ttft": _of(a.ttft_s, b.ttft_s, sooner, equal or (known and not sooner)),
        "latency": _of(ratio, 1.0, faster, noise),
        "rate": _of(1.0, ratio, faster, noise),
        "share": _of(a.roofline_share, b.roofline_share, "", noise),
        "memory": _bytes(*_peaks(a, b, memory_noise(run)), memory_noise(run), equal),
        "kv": _bytes(*_kv_sizes(a, b), SAME_BYTES, equal),
    }
    return {key: difference for key, difference in by_key.items() if difference is not None}


def _of(a: float | None, b: float | None, better: str, noise: bool) -> Difference | None:
    if not a or not b:
        return None
    text = less_or_more(a / b - 1 if better == "A" else b / a - 1)
    if not text:
        return Difference("B the same")
    return Difference(f"{_than(better or 'B', text)}{', within noise' if noise else ''}", better)


def _bytes(a: int | None, b: int | None, noise: float, equal: bool) -> Difference | None:
    sizes = bytes_of([a, b], noise)
    if sizes is None:
        return None
    change = sizes.change("B")
    if not change:
        return Difference("B the same")
    better = "B" if change < 0 else "A"
    text = _than(better, less_or_more(sizes.change(better)))
    return Difference(f"{text}, within noise") if equal else Difference(text, better)


def _than(arm: str, text: str) -> str:
    """ "B 16% less", "B 11\u00d7 that of A"."""
    return f"{arm} {text} that of {'A' if arm == 'B' else 'B'}" if text.endswith("\u00d7") else f"{arm} {text}"


def _apart(a: Interval | None, b: Interval | None) -> str:
    """The arm that takes less time; "" where the intervals of both overlap, or one is not known."""
    if a is None or b is None:
        return ""
    return "B" if b[1] < a[0] else "A" if a[1] < b[0] else ""


def _of_requests(a: BatchSummary, b: BatchSummary, compared: Comparison | None) -> Mapping[str, Difference]:
    """B against A, by the key of the tile. Figures of one run tell no noise, so only the ratio is called better."""
    ahead = {"a_faster": "A", "b_faster": "B"}.get(compared.outcome, "") if compared else ""
    unclear = compared is not None and compared.outcome in ("no_difference", "undecided")
    pairs = {
        "useful": (1.0, compared.ratio if compared else None),
        "ttft": (a.ttft.median_s, b.ttft.median_s),
        "token": (a.token.median_s, b.token.median_s),
        "request": (a.request.median_s, b.request.median_s),
        "goodput": (a.goodput_s, b.goodput_s),
        "busy": (a.busy_share, b.busy_share),
    }
    by_key = {}
    for key, (of_a, of_b) in pairs.items():
        if of_a and of_b is not None:
            text = less_or_more(of_b / of_a - 1)
            better = "B" if key == "busy" and text and of_b > of_a else ahead if key == "useful" else ""
            noise = ", within noise" if key == "useful" and unclear else ""
            by_key[key] = Difference(f"B {text}{noise}" if text else "B the same", better)
    return by_key


# --- what the arms are called, never by more than a few words ---------------------------------------

NAMED_BY_CHOICE = ("dtype", "parallel")
MOST_AXES = 2
"""Arms that differ in more axes and are no presets are called by their letters."""


def arm_names(run: OfRun) -> dict[str, str]:
    """By letter, for the middle of a sentence: titles of presets, else the choices that differ, else the letters."""
    arms = run.request.arms
    letters = {arm.name: arm.name for arm in arms}
    if len(arms) != 2:
        return letters
    presets = {arm.name: _preset(arm) for arm in arms}
    for names in (presets, _differing(*arms)):
        if all(names.values()) and len(set(names.values())) == len(names):
            return names
    return letters


def capitalized(text: str) -> str:
    """A sentence that may begin with a name: ordinary words get a capital, names such as float32 stay."""
    word = text.partition(" ")[0].rstrip(",:")
    return text[:1].upper() + text[1:] if word.isalpha() and word.islower() else text


def _preset(arm: ArmRequest) -> str:
    presets = sorted(arm_presets(), key=lambda preset: (preset.name != arm.preset, preset.bundle))
    same = (preset for preset in presets if preset.name == arm.preset or preset.choices == arm.choices)
    return next((lowered(preset.title) for preset in same), "")


def lowered(title: str) -> str:
    """A title inside a sentence: "Static cache" without its capital, "FlashAttention 2" as it is."""
    first = title.partition(" ")[0]
    return title[0].lower() + title[1:] if first.isalpha() and first[1:].islower() and len(first) > 1 else title


def _differing(a: ArmRequest, b: ArmRequest) -> dict[str, str]:
    """By the choices in which they differ; an arm that has none but defaults there is "the default"."""

    def choice(arm: ArmRequest, axis: Optimization) -> str:
        return arm.choices.get(axis.name, axis.default)

    axes = [axis for axis in all_axes() if choice(a, axis) != choice(b, axis)]
    if not 0 < len(axes) <= MOST_AXES:
        return {a.name: "", b.name: ""}
    plain = {arm.name: all(choice(arm, axis) == axis.default for axis in axes) for arm in (a, b)}
    names = {arm.name: ", ".join(_choice_name(axis, choice(arm, axis)) for axis in axes) for arm in (a, b)}
    if not all(plain.values()):
        names |= {name: "the default" for name in names if plain[name]}
    return names


def _choice_name(axis: Optimization, choice: str) -> str:
    """The title of the preset that is this choice alone, else the choice with its axis."""
    for preset in arm_presets():
        if preset.choices == {axis.name: choice}:
            return lowered(preset.title)
    title = choice_title(axis.name, choice)
    if title in ("off", "none"):
        return "one device" if axis.name == "parallel" else f"no {lowered(axis.title)}"
    if axis.name == "batching" and title != axis.off:
        return f"{title} batching"
    return title if axis.name in NAMED_BY_CHOICE else f"{title} {lowered(axis.title)}"
