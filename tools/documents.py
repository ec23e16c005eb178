"""Writes docs/documents.md: `python -m tools.documents`.

What the four documents recommend, as it is found and was measured here. A section is a function that yields lines of
Markdown; whoever adds one names it in `SECTIONS`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.claims.declared import Figure, Form, Metric, shipped_claims
from tokendyno.backend.claims.formula import Bounds, bounds
from tokendyno.backend.claims.results import Result, machine_name, read_results
from tokendyno.backend.claims.view import claims_document
from tokendyno.backend.models import RANDOM, is_random, without
from tokendyno.backend.optimizations import all_axes, defaults
from tokendyno.backend.paths import ROOT
from tokendyno.backend.recordings.format import read_recording
from tokendyno.backend.recordings.recorded_runs import SHIPPED, shipped_id
from tokendyno.backend.runs.run import folded
from tokendyno.backend.units import plural, three
from tools.figures import table
from tools.samples import calls

FILE = ROOT / "docs" / "documents.md"
PAGE = "http://127.0.0.1:7860/"
HEAD = """# The four documents

Written by `python -m tools.documents` from shipped results and recordings; links open the page on this machine.
"""
SPEEDS: Mapping[Metric, str] = {"token_s": "", "ttft_s": " TTFT", "useful_tokens_s": " served", "load_s": " load"}
"""What may stand for the speed of a test, and how that is said."""

SAME = 0.02
"""A KV cache that differs by less is not named."""


class Row(NamedTuple):
    """What an arm B has over an arm A. `times`: by what B is faster; `peak`, `kv`: its peak memory and KV cache over
    those of A; `quality`: in words; `link`: the address of the run."""

    technique: str
    model: str
    machine: str
    times: Bounds | None
    of: str
    peak: float | None
    kv: float | None
    quality: str
    link: str

    def cells(self) -> Sequence[str]:
        """As they stand in the table."""
        speed = peak = ""
        if self.times is not None:
            ends = "\u2013".join(three(end) for end in (self.times.low, self.times.high) if end is not None)
            speed = f"{three(self.times.value)}x{self.of}" + (f" ({ends})" if ends else "")
        if self.peak is not None:
            kv = f", KV {self.kv:.0%}" if self.kv is not None and abs(self.kv - 1) > SAME else ""
            peak = f"{self.peak:.0%}{kv}"
        linked = (f"[{text}]({self.link})" if text else "" for text in (speed, peak, self.quality))
        return [f"`{self.technique}`", self.model, self.machine, *linked]


def changes(a: Mapping[str, str], b: Mapping[str, str]) -> str:
    """The choices of B that A has not; where compiled code is cached changes no figure here."""
    before, after = defaults() | dict(a), defaults() | dict(b)
    names = [axis.name for axis in all_axes() if axis.name != "compile_cache"]
    return ",".join(f"{name}={after[name]}" for name in names if before[name] != after[name])


def short(machine: str) -> str:
    """A machine in a word."""
    return machine.removeprefix("NVIDIA ").partition(" ")[0] if machine.startswith("NVIDIA") else "CPU"


def size(model: str, prompt_tokens: int, batch_size: int) -> str:
    """A model with the tokens of its prompt, and how many rows of them there are."""
    rows = f"\u00d7{batch_size}" if batch_size > 1 else ""
    return without(RANDOM, model) + (f",{prompt_tokens}{rows}" if prompt_tokens else "")


def share(a: int | None, b: int | None) -> float | None:
    """B over A."""
    return b / a if a and b else None


def of_recordings() -> Iterator[Row]:
    """The runs of two arms behind the stories."""
    for path in sorted(SHIPPED.glob("*.dyno")):
        run = folded(read_recording(path)).snapshot()
        if len(run.arms) != 2:
            continue
        request, (a, b), comparison = run.request, run.arms.values(), run.comparison
        summaries = list(run.summaries.values())
        real = a.ids and not is_random(request.model)
        times, certainty = None, ", undecided"
        if comparison:
            if comparison.decided:
                certainty = ""
            elif not comparison.bounded:
                certainty = f", {plural(comparison.pairs, 'pair')}"
            ends = (comparison.low, comparison.high) if comparison.bounded else (None, None)
            times = Bounds(comparison.ratio, *ends)
        yield Row(
            changes(*(arm.choices for arm in request.arms)),
            size(request.model, 0 if request.traffic else request.workload.prompt_tokens, request.workload.batch_size),
            short(machine_name(run.created.machine)),
            times,
            (SPEEDS["useful_tokens_s"] if request.traffic else "") + certainty,
            share(*(summary.peak_memory_bytes for summary in summaries)),
            share(*(summary.kv_bytes for summary in summaries)),
            ("same text" if a.ids == b.ids else "other text") if real else "",
            f"{PAGE}?view={'batching' if request.traffic else 'compare'}&run={shipped_id(path.stem)}",
        )


def of_claims() -> Iterator[Row]:
    """The tests of claims between two arms. Where quality is read, each arm ran once and no speed follows."""
    known = shipped_claims()
    results = read_results(known.tests)
    for claim, figure in [(c, f) for c in known.claims for f in c.figures]:
        test = known.tests[figure.test]
        if "B" not in test.arms or (test.command != "quality" and figure.metric not in SPEEDS):
            continue
        for result in results.get(test.name, ()):

            def measured(metric: Metric, form: Form, result: Result = result) -> Bounds | None:
                return bounds(Figure(result.test, "", metric, form, "x"), {result.test: result.samples})

            peak, kv = measured("peak_bytes", "share"), measured("kv_bytes", "share")
            reads = test.command == "quality"
            yield Row(
                changes(*(dict(parse_arm(test.model, text).choices) for text in test.arms.values())),
                size(test.model, test.prompt_tokens if test.command == "compare" else 0, test.batch_size),
                short(result.on),
                None if reads else measured(figure.metric, "times"),
                SPEEDS.get(figure.metric, ""),
                None if peak is None else peak.value,
                None if kv is None else kv.value,
                quality(result.samples["B"], test.model) if reads else "",
                f"{PAGE}?view=claims&name={claim.name}",
            )


def quality(samples: Mapping[Metric, Sequence[float]], model: str) -> str:
    """How near the second arm's choice of tokens is; of random weights, whose text is noise, only how near its numbers
    are."""
    agree = "" if is_random(model) else f"{mean(samples['top1_agreement']):.1%}, "
    return f"{agree}KL {three(mean(samples['kl_nats']))}"


def techniques() -> Iterator[str]:
    """Technique by speed, memory and quality, on each machine."""
    yield "## What each technique gives\n"
    yield (
        "An arm with these choices against the same without: how many times as fast per token (or as said; 95% "
        "interval), its peak memory as a share, its text or the tokens that agree, KL in nats. Figures lead to their "
        "runs.\n"
    )
    order = [axis.name for axis in all_axes()]
    rows = [*of_recordings(), *of_claims()]
    first = {(row.technique, row.model, row.machine, row.of): row for row in reversed(rows)}  # of several claims
    rows = sorted(first.values(), key=lambda row: (order.index(row.technique.partition("=")[0]), row.technique))
    yield from table("technique | model, prompt | card | speed | memory | quality", [row.cells() for row in rows])


def claims() -> Iterator[str]:
    """Each claim with the arm that tests it, and its state."""
    known = shipped_claims()
    document = claims_document(known, read_results(known.tests))
    counts = ", ".join(f"{count} {word}" for word, count in document.counts.items() if count)
    yield "## Claims\n"
    yield (
        f"Measured with 95% intervals. Of {len(document.claims)} claims: {counts}. `tokendyno claims NAME` shows "
        "source and commands; with `--run` it measures again.\n"
    )
    rows, measured = [], set[tuple[str, str]]()
    for claim, declared in zip(document.claims, known.claims, strict=True):
        test = next((known.tests[figure.test] for figure in declared.figures if figure.decides), None)
        arms = [dict(parse_arm(test.model, text).choices) for text in test.arms.values()] if test else []
        technique = changes(*arms) if len(arms) == 2 else test.a if test else ""
        view = next((view for view in claim.machines if claim.sentence.endswith(f"({view.machine})")), None)
        card = short(view.machine) if view else ""
        measured |= {(view.date, view.versions)} if view else set()
        name = f"[{claim.name}]({PAGE}?view=claims&name={claim.name})"
        rows.append([name, technique and f"`{technique}`", claim.claimed, claim.measured, claim.word, card])
    yield from table("claim | arm | claimed | measured | state | card", rows)
    dates, versions = zip(*sorted(measured), strict=True)
    yield f"Measured from {min(dates)} to {max(dates)} with {' and '.join(sorted(set(versions)))}.\n"


SECTIONS: tuple[Callable[[], Iterator[str]], ...] = (techniques, claims, calls)


def text() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for section in SECTIONS for line in section())])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
