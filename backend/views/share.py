"""A run as it is passed on to others: a title and a sentence, the curves of a picture, Markdown."""

import csv
import dataclasses
import io
import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

from tokendyno.backend.config import UNTIL_S, Request, Workload
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.batch_live import batch_head
from tokendyno.backend.views.live import LABELS, ArmOnPage, head_of, heading
from tokendyno.backend.views.sentences import stamp

MOST_POINTS = 600
"""Points of a curve: a picture of 1,200 pixels shows no more."""

MIN_GAIN = 1.05
"""The KV caches are drawn where they differ by more than this, and by more than the times. Our choice."""


class Curves(NamedTuple):
    """What a picture draws: a line of (x, y) for each arm, in the order of the arms."""

    title: str
    x_unit: str
    y_unit: str
    lines: list[list[tuple[float, float]]]


class Shared(NamedTuple):
    """A run in words and curves. `curves`: None where no arm has generated anything. `command`: that repeats it; "" for
    a run of many requests or given texts."""

    title: str
    model: str
    sentence: str
    notes: list[str]
    machine: str
    arms: Sequence[ArmOnPage]
    differences: dict[str, str]
    curves: Curves | None
    command: str

    @property
    def description(self) -> str:
        arms = " ".join(f"{arm.name}: {arm.label}." for arm in self.arms)
        return f"{self.sentence} {arms} {self.machine}."


def shared(run: Run, others: RunLog | None = None) -> Shared:
    """A run as it is now. `others`: runs among which there may be a reading by its arms."""
    now = run.snapshot()
    head = batch_head(now, 0.0) if now.request.traffic else head_of(now, 0.0, others)
    created, verdict = now.created, head.verdict
    one_prompt = now.request.traffic is None and now.request.quality is None
    return Shared(
        heading(created.model_label, now.status, verdict.sentence),
        created.model_label,
        verdict.sentence or f"{LABELS[now.status].capitalize()}.",
        [line for line in (verdict.basis, verdict.gate, verdict.unasked) if line],
        stamp(created),
        head.arms,
        {key: difference.text for key, difference in head.differences.items()},
        _curves(now),
        command_of(now.request) if one_prompt else "",
    )


def _curves(run: Snapshot) -> Curves | None:
    """What was generated over seconds; the KV caches over tokens where these differ more than the times."""
    arms = list(run.arms.values())
    if run.request.traffic is not None:
        times = [sorted(t_s for row in arm.batch.requests.values() for t_s in row.token_s) for arm in arms]
        return _counted("Tokens of all requests over seconds", times)
    a, b = arms if len(arms) == 2 else (None, None)
    if a and b and a.kv_full and b.kv_full:
        caches = [[s + f for s, f in zip(arm.kv_sliding, arm.kv_full, strict=True)] for arm in (a, b)]
        last = min(map(len, caches)) - 1
        ratio = caches[0][last] / caches[1][last] if caches[1][last] else 1.0
        comparison = run.comparison
        faster = max(comparison.ratio, 1 / comparison.ratio) if comparison else 1.0
        if max(ratio, 1 / ratio if ratio else 1.0) > max(MIN_GAIN, faster):
            lines = [_thinned([(i + 1, size) for i, size in enumerate(cache)]) for cache in caches]
            return Curves("KV cache over tokens", "tokens", "bytes", lines)
    return _counted("Tokens over seconds" if run.unit == "token" else "Passes over seconds", [arm.t_s for arm in arms])


def _counted(title: str, times: Sequence[Sequence[float]]) -> Curves | None:
    if not any(times):
        return None
    return Curves(title, "s", "", [_thinned([(t_s, i + 1) for i, t_s in enumerate(arm)]) for arm in times])


def _thinned(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """About `MOST_POINTS` of them, the last one included."""
    stride = -(-len(points) // MOST_POINTS)
    return points if stride < 2 else [*points[:-1:stride], points[-1]]


# --- Markdown -------------------------------------------------------------------------------------


def markdown(run: Shared) -> str:
    """The verdict, a small table of figures, the machine and the command."""
    header = [run.model, *(f"{arm.name}: {arm.label}" for arm in run.arms)]
    header += ["B against A"] if run.differences else []
    rows = [
        [first.label, *(f"{tile.value} {tile.unit}".strip() for tile in tiles), run.differences.get(first.key, "")]
        for tiles in zip(*(arm.tiles for arm in run.arms), strict=False)
        if (first := tiles[0]) and any(tile.value != "n/a" for tile in tiles)
    ]
    table = [header, ["---"] * len(header), *(row[: len(header)] for row in rows)]
    parts = [f"**{_escaped(run.sentence)}**"]
    if rows:
        parts.append("\n".join(f"| {' | '.join(map(_escaped, row))} |" for row in table))
    parts += [_escaped(line) for line in run.notes]
    parts.append(_escaped(f"{run.machine}."))
    if run.command:
        fence = "`" * max(3, 1 + max((len(ticks) for ticks in re.findall("`+", run.command)), default=0))
        parts.append(f"{fence}sh\n{run.command}\n{fence}")
    return "\n\n".join(parts) + "\n"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(text.split()))


# --- a run of one prompt as the command that repeats it --------------------------------------------


def command_of(request: Request) -> str:
    """The command line that runs the arms of a request again; what is at its default is left out."""
    alone = len(request.arms) == 1
    words = ["tokendyno", "run" if alone else "compare", "--model", request.model]
    for arm in request.arms:
        choices = ",".join(f"{axis}={choice}" for axis, choice in arm.choices.items())
        words += _option("--arm" if alone else f"--{arm.name.lower()}", choices) if choices else []
    if request.until_s and request.until_s != UNTIL_S:
        words += ["--seconds", f"{request.until_s:g}"]
    if request.price_per_hour:
        words += ["--price-per-hour", f"{request.price_per_hour:g}"]
    if not request.proof:
        words.append("--no-proof")
    for field in dataclasses.fields(Workload):
        value = getattr(request.workload, field.name)
        number_of_pairs = field.name == "repeats" and not alone
        if not request.until_s if number_of_pairs else value != field.default:
            option = f"--{field.name.replace('_', '-')}"
            words += [option] if value is True else _option(option, str(value))
    return shlex.join(words)


def _option(option: str, value: str) -> list[str]:
    return [f"{option}={value}"] if value.startswith("-") else [option, value]


# --- files: the series as CSV, and the code that Inductor generated for the graphs -----------------

_LEFT_OUT = "# {:,} characters: left out, the code of an arm's graphs is kept up to 2 MiB\n"

COLUMNS = ["arm", "series", "index", "seconds", "latency_s", "kv_sliding_bytes", "kv_full_bytes", "memory_bytes"]
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a cell that a spreadsheet would compute."""


def series_csv(run: Run) -> str:
    """One line for each token (or pass) of the first repeat, and one for each sample of memory."""
    now, text = run.snapshot(), io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    step = "pass" if now.unit == "forward" else "token"
    for name, arm in now.arms.items():
        columns = zip(arm.t_s, arm.latency_s, arm.kv_sliding, arm.kv_full, strict=True)
        writer.writerows([cell_text(name), step, i, *values, ""] for i, values in enumerate(columns))
        samples = enumerate(zip(arm.sample_t_s, arm.sample_bytes, strict=True))
        writer.writerows([cell_text(name), "sample", i, at_s, "", "", "", size] for i, (at_s, size) in samples)
    return text.getvalue()


def cell_text(text: str) -> str:
    """The text as a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULAS) else text


def code_file(run: Snapshot) -> str:
    """The code of every arm, each graph under its id as the ledger and torch's own tools name it; "" where none is."""
    parts = []
    for name, arm in run.arms.items():
        for graph in arm.finished.code if arm.finished else []:
            head = f"# {'-' * 20} arm {name}, graph {graph.id or 'without id'} {'-' * 20}\n"
            parts.append(head + (graph.text if graph.packed else _LEFT_OUT.format(graph.characters)))
    return "\n".join(parts)
