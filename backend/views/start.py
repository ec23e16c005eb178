"""Where the time of an arm's start went, from its process to its first token, and from how many tokens on waiting pays.

The spans come from the run's own records: phases that the worker reported, stages of the load, stages of compiling as
torch counts them, captures of CUDA graphs. A worker that was started ahead, or kept from an earlier run with its model,
has done some of that before: that is said, and left out of the spans.
"""

import math
from typing import Literal, NamedTuple

import msgspec

from tokendyno.backend.messages import Compiled, PhaseName
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.records import Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Summary
from tokendyno.backend.units import plural, three
from tokendyno.backend.views.step_time import PartText, StepText
from tokendyno.backend.views.tiles import joined, step_word

TITLES = {
    "start": "Start of the process",
    "import": "Imports",
    "download": "Download",
    "context": "CUDA context",
    "read": "Reading the files",
    "fill": "Random weights",
    "move": "Moving to the GPU",
    "quantize": "Quantizing",
    "dynamo": "Compiling: tracing (Dynamo)",
    "inductor": "Compiling: fusing (Inductor)",
    "codegen": "Compiling: generated code",
    "autotune": "Compiling: autotuning",
    "cache": "Compile cache: filled, shared",
    "capture": "Capturing CUDA graphs",
    "warmup": "Warm-up",
    "between": "Between these",
    "prefill": "First token of the first run",
}
"""What a start consists of, in the order in which it happens."""

_STAGES = {"context": "context", "fill": "fill", "move": "move", "warm_up": "move", "quantize": "quantize"}
"""Stages of a load, as a worker names them, and the spans that they belong to; the rest of it is reading."""

_OF_NO_ARM: tuple[PhaseName, ...] = ("start", "import", "download")
"""Spans that do not depend on what an arm chooses."""

_LEAST_S = 0.005
"""A shorter span is left out: nobody could see its part."""

_MOST_GRAPHS = 3
"""Graphs whose seconds are named one by one."""

_CLEAR_S = 0.1
"""Starts that differ by less are said to take the same time. Our choice: they vary by that much."""

_SAME_SPEED = 0.1
"""A gain in time a token below this, in one pair of runs, is none to count on: new workers of one arm vary as much."""


Before = Literal["", "started", "loaded"]
"""What a worker had done before its run: nothing; its imports; its imports and the load, in an earlier run."""

_BEFORE: dict[Before, tuple[str, str]] = {
    "started": ("Process and imports", "done ahead of the run"),
    "loaded": ("Process, imports and load", "kept from an earlier run"),
}
"""Which spans are missing then, and where they went."""


class Start(NamedTuple):
    """Seconds by span, in the order of TITLES; what was compiled, if anything was; the share of the weights' files that
    was in the page cache; what was done before."""

    spans_s: dict[str, float]
    compiled: Compiled | None
    cached: float | None
    before: Before = ""

    @property
    def total_s(self) -> float:
        """To the first token."""
        return sum(self.spans_s.values())

    @property
    def own_s(self) -> float:
        """The part by which arms are compared: imports and downloads fall to whichever arm happens to come first."""
        return sum(seconds for span, seconds in self.spans_s.items() if span not in _OF_NO_ARM)


class Started(NamedTuple):
    """The start of an arm, and its figures after it."""

    start: Start
    summary: Summary


def start_of(arm: ArmSeries, alone: bool) -> Start | None:
    """The start of an arm's first run; None where that has not ended. `alone`: the spans add up to all of it."""
    phases = {name: phase.seconds for name, phase in arm.first_phases.items()}
    first, loaded = arm.finishes.get(0), arm.first_loaded
    if first is None or loaded is None or "run" not in phases:
        return None
    before: Before = "loaded" if loaded.reused else "" if "start" in phases else "started"
    spans_s = dict.fromkeys(TITLES, 0.0) | {name: phases.get(name, 0.0) for name in _OF_NO_ARM}
    stages_s, load_s = loaded.stages_s, phases.get("load", 0.0) + phases.get("quantize", 0.0)
    for stage, span in _STAGES.items():
        spans_s[span] += stages_s.get(stage, 0.0)
    named_s = sum(spans_s[span] for span in set(_STAGES.values()))
    spans_s["read"] = max(0.0, load_s + stages_s.get("context", 0.0) - named_s)
    left_s = phases.get("compile", 0.0) + phases.get("warmup", 0.0)
    compiled = first.compiled if before != "loaded" or "compile" in phases else None  # else that of an earlier run
    compile_s = compiled.stages_s if compiled else {}
    for span, seconds in {**compile_s, "capture": first.counts.warmup.capture_s or 0.0}.items():
        spans_s[span] = min(seconds, left_s)
        left_s -= spans_s[span]
    spans_s["warmup"], spans_s["prefill"] = left_s, first.ttft_s
    spans_s["cache"] = (first.counts.warmup.cache_s or 0.0) if compiled or before != "loaded" else 0.0
    if alone:
        begin_s = min(phase.begin_s for phase in arm.first_phases.values())
        whole_s = arm.first_phases["run"].begin_s + first.ttft_s - begin_s
        spans_s["between"] = max(0.0, whole_s - sum(spans_s.values()))
    spans_s = {
        span: seconds for span, seconds in spans_s.items() if seconds >= _LEAST_S or (span == "prefill" and seconds)
    }
    return Start(spans_s, compiled, loaded.cached, before)


# --- in words -------------------------------------------------------------------------------------


def start_text(run: Snapshot, name: str) -> StepText | None:
    """The start of an arm as parts with shares; None where nothing is known of it."""
    start = start_of(run.arms[name], len(run.arms) == 1)
    if start is None:
        return None
    total_s = start.total_s
    parts = [
        PartText(
            span,
            TITLES[span],
            seconds,
            joined(seconds),
            seconds / total_s,
            cache_text(start) if span == "read" else _by_graph(start.compiled, span),
        )
        for span, seconds in start.spans_s.items()
    ]
    if start.before:
        parts.insert(0, PartText("start", TITLES["start"], None, _BEFORE[start.before][1], 0.0))
    steady = f"steady after {joined(total_s)}"
    if step_s := run.summaries[name].latency_mean_s:
        steady += f", then {joined(step_s)} a {step_word(run.unit)}"
    clauses = [steady, before_text(start), origin(start.compiled)]
    return StepText(total_s, joined(total_s), parts, "; ".join(filter(None, clauses)))


def before_text(start: Start) -> str:
    return "{}: {}".format(*_BEFORE[start.before]).lower() if start.before else ""


def cache_text(start: Start) -> str:
    if start.cached is None:
        return ""
    if start.cached > 0.99:
        return "from the page cache"
    return "from the disk" if start.cached < 0.01 else f"{start.cached:.0%} from the page cache, the rest from the disk"


def _by_graph(compiled: Compiled | None, stage: str) -> str:
    """How long each of several graphs took in a stage, the longest first; "" where that is not known."""
    graphs = compiled.graphs if compiled else []
    took = sorted(((graph.stages_s.get(stage, 0.0), number) for number, graph in enumerate(graphs, 1)), reverse=True)
    took = [(seconds, number) for seconds, number in took if seconds >= _LEAST_S]
    if len(graphs) < 2 or not took:
        return ""
    parts = [f"graph {number} of {len(graphs)} {joined(seconds)}" for seconds, number in took[:_MOST_GRAPHS]]
    if len(took) > _MOST_GRAPHS:
        parts.append(f"others {joined(sum(seconds for seconds, _ in took[_MOST_GRAPHS:]))}")
    return ", ".join(parts)


def origin(compiled: Compiled | None) -> str:
    if compiled is None:
        return ""
    graphs = plural(len(compiled.graphs), "graph")
    if compiled.loaded_bytes:
        return f"{graphs} from artefacts, {compiled.hits} loaded and {compiled.misses} compiled anew"
    if compiled.hits and not compiled.misses:
        return f"{graphs} from the compile cache"
    return f"{graphs} compiled" + (f", {compiled.hits} from the compile cache" if compiled.hits else "")


class BreakEven(msgspec.Struct, frozen=True):
    """When an arm that starts later, but takes less time a token, has caught up.

    later_s   by how much it starts later, from the end of its imports
    again_s   that of this which is its first token: what it takes longer in each text; negative where it takes less.
              Of passes, whose first is like the others, what it saves with that one
    tokens    from how many on, of one text, it is ahead; `low`, `high`: 95% interval; `high` is None where it has no
              end, and both where nothing was repeated
    """

    later_s: float
    saved_s: float
    tokens: float
    low: float | None = None
    high: float | None = None
    again_s: float = 0.0

    def texts(self, tokens: int) -> float:
        """From how many texts of so many tokens on it is ahead, at the least 1; infinite where it never is."""
        gained_s = (tokens - 1) * self.saved_s - self.again_s
        return max(1.0, (self.later_s - self.again_s) / gained_s) if gained_s > 0 else math.inf


def break_even(early: Started, late: Started) -> BreakEven | None:
    """When the arm that starts later catches up; None where it need not, cannot, or had its model loaded before."""
    if "loaded" in (early.start.before, late.start.before):
        return None
    later_s = late.start.own_s - early.start.own_s
    slow, fast = early.summary, late.summary
    if later_s < _CLEAR_S or not slow.latency_mean_s or not fast.latency_mean_s:
        return None
    saved_s, low, high = slow.latency_mean_s - fast.latency_mean_s, None, None
    if saved_s <= 0:
        return None
    if slow.latency_interval_s and fast.latency_interval_s:
        most_s = slow.latency_interval_s[1] - fast.latency_interval_s[0]
        least_s = slow.latency_interval_s[0] - fast.latency_interval_s[1]
        low, high = later_s / most_s, later_s / least_s if least_s > 0 else None
    elif saved_s < _SAME_SPEED * slow.latency_mean_s:
        return None
    again_s = fast.ttft_s - slow.ttft_s if fast.ttft_s and slow.ttft_s else -saved_s
    return BreakEven(later_s, saved_s, later_s / saved_s, low, high, again_s)


def pays_sentence(run: Snapshot) -> str:
    """Whether waiting for an arm pays, in a sentence; "" where neither starts later and is faster."""
    if (started := _both(run)) is None:
        return ""
    early, name = started
    pays = break_even(started[early], started[name])
    return _paid_back(name, pays, run.unit, run.request.workload.max_new_tokens) if pays else ""


class Crossing(msgspec.Struct, frozen=True):
    """Seconds from the end of each arm's imports, over tokens after its first: two lines that cross. `starts_s`,
    `steps_s`: where the line of each arm begins, and by how much it rises with each token; in the arms' order."""

    starts_s: list[float]
    steps_s: list[float]
    tokens: float
    label: str


def crossing(run: Snapshot) -> Crossing | None:
    """The lines of the arms' seconds over tokens; None where they do not cross."""
    if (started := _both(run)) is None:
        return None
    early, late = started.values()
    pays = break_even(early, late)
    if pays is None:
        return None
    arms = [started[name] for name in run.arms]
    steps_s = [arm.summary.latency_mean_s for arm in arms if arm.summary.latency_mean_s]
    steps = "tokens" if run.unit == "token" else "forward passes"
    unsettled = ", not settled" if pays.low is not None and pays.high is None else ""
    label = f"{_count(pays.tokens)} {steps}{unsettled}"
    return Crossing([arm.start.own_s for arm in arms], steps_s, pays.tokens, label)


def _both(run: Snapshot) -> dict[str, Started] | None:
    """The two arms of a run that has ended, the sooner one first; None where one is unknown, or both are equal."""
    if len(run.arms) != 2 or not run.ended or run.equal_arms:
        return None
    starts = {name: start_of(arm, alone=False) for name, arm in run.arms.items()}
    started = {name: Started(start, run.summaries[name]) for name, start in starts.items() if start is not None}
    if len(started) != 2:
        return None
    return dict(sorted(started.items(), key=lambda item: item[1].start.own_s))


def standing(first_name: str, first: Started, name: str, other: Started, unit: Unit, tokens: int) -> str:
    """Whether one of two arms pays against the other; "" where nothing tells them apart. `tokens`: of a run."""
    if "loaded" in (first.start.before, other.start.before):
        return ""
    for late_name, early, late in ((name, first, other), (first_name, other, first)):
        if pays := break_even(early, late):
            return _paid_back(late_name, pays, unit, tokens)
    later_s = other.start.own_s - first.start.own_s
    slow, fast = first.summary.latency_mean_s, other.summary.latency_mean_s
    if not slow or not fast or abs(slow - fast) < _SAME_SPEED * slow:
        return ""
    step = step_word(unit)
    if fast > slow:
        return f"{name} took longer a {step} and started no sooner: so it never pays." if later_s > -_CLEAR_S else ""
    return f"{name} took less a {step} and started no later: so it pays at once."


def _paid_back(name: str, pays: BreakEven, unit: Unit, tokens: int) -> str:
    """When waiting for an arm pays. `tokens`: of a run."""
    step, steps = ("token", "tokens") if unit == "token" else ("forward pass", "forward passes")
    lead = f"{name} starts {joined(pays.later_s)} later and saves {joined(pays.saved_s)} a {step}"
    if pays.low is not None and pays.high is None:
        return f"{lead}: whether that ever pays is not settled (from {_count(pays.low)} {steps} on at best)."
    between = f" ({_count(pays.low)} to {_count(pays.high)})" if pays.low is not None and pays.high else ""
    texts, of_one, after = pays.texts(tokens), "", ""
    if math.isinf(texts):
        of_one = " of one text"
        after = f", and never in texts of {tokens:,}, each of which begins {joined(pays.again_s)} later"
    elif texts > 1:
        after = f", in run {math.ceil(texts):,} of this length"
    once = "" if between else ", by one pair of runs"
    return f"{lead}: it pays from {_count(pays.tokens)} {steps}{of_one} on{between}{after}{once}."


def _count(tokens: float) -> str:
    return three(tokens) if tokens >= 100 else f"{tokens:.0f}"
