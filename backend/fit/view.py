"""The fit table as the page draws it: bars, lines for the memory of GPUs, rows with their texts, and curves of the KV
cache."""

from collections.abc import Mapping, Sequence

import msgspec

from tokendyno.backend.fit.row import FitRow, Margin
from tokendyno.backend.fit.smallest import Arrangement
from tokendyno.backend.fit.table import Fit, table_axes
from tokendyno.backend.fit.text import answer, arm_text, cells, columns, heading, remarks
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.optimizations import Optimization, titles_text
from tokendyno.backend.plan import DYNAMIC, UNWINDOWED
from tokendyno.backend.predict.kv import kv_bytes, kv_polyline
from tokendyno.backend.predict.weights import itemsize
from tokendyno.backend.units import bytes_text

ALIKE = 0.02
"""GPUs whose memory differs by less than this share are one line of the chart."""

WORDS: dict[Margin, str] = {
    "comfortable": "\u2713 comfortable",
    "tight": "\u25b2 tight",
    "does not fit": "\u2715 does not fit",
}
"""What the page says of a margin: a sign and a word, besides the colour."""

BESIDE = ("gpt-oss-20b", "Mistral-7B-v0.1", "Gemma-3-1b")
"""Models with a window in every other layer, in all layers, and in five of six."""

MOST_TOKENS = 32_768
"""The last context of the curves, the positions that Mistral and Gemma have, unless more is asked about."""


class RowView(msgspec.Struct, frozen=True):
    """A row. `parts`: bytes on the device, in the order of `FitView.parts`; `not_here`: why it cannot be run, or ""."""

    choices: dict[str, str]
    title: str
    margin: Margin
    cells: list[str]
    parts: list[int]
    peak: str
    main: bool
    not_here: str


class CardLine(msgspec.Struct, frozen=True):
    """A line of the chart. `names`: GPUs with about that memory; `chosen`: the device that was asked for."""

    names: list[str]
    memory_bytes: int
    size: str
    chosen: bool = False


class Curve(msgspec.Struct, frozen=True):
    """Bytes of each device over the context; `most`: the longest one that fits."""

    title: str
    contexts: list[int]
    bytes: list[int]
    most: int


class AnswerView(msgspec.Struct, frozen=True):
    """The smallest arrangement that fits, as words and as figures; without figures where none does.

    arm       it as an arm is written, "" for every axis at its default
    curves    memory over the context: of what fits, and of the model as it is where that is something else
    """

    words: str
    tried: int
    room_bytes: int
    arm: str | None = None
    gpus: int | None = None
    choices: dict[str, str] | None = None
    needed_bytes: int | None = None
    max_context: int | None = None
    curves: list[Curve] = []


def answer_view(fit: Fit) -> AnswerView:
    """The answer for a device."""
    first, unchanged = fit.smallest.found, fit.smallest.as_it_is
    curves = [_curve("as it is", unchanged)] if unchanged else []
    words, tried = answer(fit), fit.smallest.tried
    if first is None:
        return AnswerView(words, tried, fit.device.memory_bytes, curves=curves)
    if first != unchanged:
        title = titles_text(first.choices) if first.choices else "as it is"  # but not on this machine yet
        curves.insert(0, _curve(title, first))
    return AnswerView(
        words,
        tried,
        first.room_bytes,
        arm_text(first.choices),
        first.gpus,
        dict(first.choices),
        first.needed_bytes,
        first.max_context,
        curves,
    )


def _curve(title: str, arrangement: Arrangement) -> Curve:
    contexts, sizes = zip(*arrangement.curve, strict=True)
    return Curve(title, list(contexts), list(sizes), arrangement.max_context)


class WindowCurve(msgspec.Struct, frozen=True):
    """Bytes of one sequence's cache at the corners of the curve. `said`: its end, in words."""

    title: str
    contexts: list[int]
    windowed: list[int]
    unwindowed: list[int]
    said: str


class KindCurves(msgspec.Struct, frozen=True):
    """Bytes of one sequence's cache by kind, at the corners of the curves. `said`: their ends, in words."""

    contexts: list[int]
    kinds: dict[str, list[int]]
    said: str


class FitView(msgspec.Struct, frozen=True):
    """The whole answer. `most`: positions of the model; `not_here`: the reason that all rows share, or ""; `run`: the
    id of the run that measured what fits, and `measured` says so, or ""."""

    label: str
    heading: str
    answer: AnswerView
    remarks: list[str]
    context: int
    most: int
    encoder: bool
    columns: list[str]
    parts: list[str]
    rows: list[RowView]
    cards: list[CardLine]
    not_here: str
    run: str
    measured: str
    kinds: KindCurves
    windows: Sequence[WindowCurve]


def view(fit: Fit, run: str = "", measured: str = "") -> FitView:
    """The answer for a table."""
    parts = ["Weights", "KV cache", "Workspace", "Runtime"]
    if fit.encoder:
        parts = ["Weights", "Activations", "Runtime"]
    reasons = {row.not_here for row in fit.rows}
    dtype = fit.rows[0].dtype if fit.rows else fit.facts.dtype
    return FitView(
        label=fit.facts.label,
        heading=heading(fit),
        answer=answer_view(fit),
        remarks=remarks(fit),
        context=fit.context,
        most=fit.facts.max_positions,
        encoder=fit.encoder,
        columns=columns(fit),
        parts=parts,
        rows=[_row(fit, row) for row in fit.rows],
        cards=card_lines(fit),
        not_here=reasons.pop() if len(reasons) == 1 else "",
        run=run,
        measured=measured,
        kinds=kind_curves(fit.facts, dtype, fit.context),
        windows=window_curves(fit.facts, dtype, fit.context),
    )


def _row(fit: Fit, row: FitRow) -> RowView:
    parts = [row.weights_bytes, row.kv_bytes - row.kv_host_bytes, row.workspace_bytes, row.runtime_bytes]
    if fit.encoder:
        del parts[1]
    axes = table_axes(fit.facts)
    chosen = [axis.choice(row.choices[axis.name]).title for axis in axes]
    return RowView(
        choices=dict(row.choices),
        title="; ".join([row_title(axes, row.choices), *([titles_text(row.beside)] if row.beside else [])]),
        margin=row.margin,
        cells=[WORDS[row.margin], *chosen, *cells(fit, row)[1 + len(axes) :]],
        parts=parts,
        peak=" ".join(bytes_text(row.peak_bytes)),
        main=row.main,
        not_here=row.not_here,
    )


def row_title(axes: Sequence[Optimization], choices: Mapping[str, str]) -> str:
    """A row beside its bar: the choice of the first axis, and what else is not the default."""
    first, *rest = axes
    name = choices[first.name]
    words = [f"no {first.title.lower()}" if name == "none" else first.choice(name).title]
    words += [
        f"{axis.title} {axis.choice(choices[axis.name]).title}" for axis in rest if choices[axis.name] != axis.default
    ]
    return "; ".join(words)


def card_lines(fit: Fit) -> list[CardLine]:
    """The memory of the device that was asked for, and of the GPUs of the catalogue, the smallest first."""
    name = "this machine" if fit.device.here else fit.device.name
    lines = [_line([name], fit.device.memory_bytes, chosen=True)]
    for spec in sorted(gpus(), key=lambda spec: spec.memory_bytes):
        if spec.name == fit.device.name:
            continue
        at = next((i for i, line in enumerate(lines) if not line.chosen and _alike(line, spec.memory_bytes)), None)
        if at is None:
            lines.append(_line([spec.name], spec.memory_bytes))
        else:
            lines[at] = _line([*lines[at].names, spec.name], lines[at].memory_bytes)
    return sorted(lines, key=lambda line: line.memory_bytes)


def _alike(line: CardLine, memory_bytes: int) -> bool:
    return abs(line.memory_bytes - memory_bytes) < ALIKE * memory_bytes


def _line(names: list[str], memory_bytes: int, *, chosen: bool = False) -> CardLine:
    return CardLine(names, memory_bytes, " ".join(bytes_text(memory_bytes)), chosen)


# --- the KV cache over the context: by kind, with and without a window -----------------------------


def kind_curves(facts: ModelFacts, dtype: str, context: int) -> KindCurves:
    """A curve for each kind of layer that the model has, with numbers of that dtype; none for an encoder."""
    size = itemsize(facts, dtype)
    last = min(max(MOST_TOKENS, context), facts.max_positions)
    contexts = [corner.length for corner in kv_polyline(facts, DYNAMIC, 1, last, 1, size, 0)]
    sizes = [kv_bytes(facts, DYNAMIC, length, 1, size).by_kind() for length in contexts]
    kinds = {kind: [one[kind] for one in sizes] for kind, most in sizes[-1].items() if most}
    ends = [f"{kind} {' '.join(bytes_text(curve[-1]))}" for kind, curve in kinds.items()]
    said = f"{facts.label} in {dtype}, after {last:,} tokens: {', '.join(ends)}."
    return KindCurves(contexts, kinds, said if kinds else "")


def window_curves(facts: ModelFacts, dtype: str, context: int) -> Sequence[WindowCurve]:
    """The curve of the model, where it has a window, before those of `BESIDE`, each in the dtype of its checkpoint."""
    own = [_window_curve(facts, dtype, context)] if any(layers.window for layers in facts.cache_layers) else []
    beside = (
        _window_curve(model, model.dtype, context) for model in map(resolve, BESIDE) if model.label != facts.label
    )
    return [*own, *beside]


def _window_curve(facts: ModelFacts, dtype: str, context: int) -> WindowCurve:
    size = itemsize(facts, dtype)
    last = min(max(MOST_TOKENS, context), facts.max_positions)
    corners = kv_polyline(facts, DYNAMIC, 1, last, 1, size, 0)
    contexts = [corner.length for corner in corners]
    windowed = [corner.sliding + corner.full for corner in corners]
    unwindowed = [kv_bytes(facts, UNWINDOWED, length, 1, size).total for length in contexts]
    ends = [" ".join(bytes_text(sizes[-1])) for sizes in (windowed, unwindowed)]
    said = f"{facts.label} in {dtype}: {ends[0]} after {last:,} tokens; {ends[1]} without its window."
    return WindowCurve(facts.label, contexts, windowed, unwindowed, said)
