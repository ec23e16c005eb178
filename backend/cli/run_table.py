"""A run as text for a terminal: the verdict, the figures side by side, the texts, the ledgers."""

from collections.abc import Mapping, Sequence

from msgspec.structs import astuple

from tokendyno.backend.cli.terminal import Block, Cell, Column, Line, Row, Styled, Table
from tokendyno.backend.evidence import Status
from tokendyno.backend.optimizations import defaults
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.quality import FindReading, gate_of, readings, whole_reading
from tokendyno.backend.runs.records import Created
from tokendyno.backend.runs.row import choices_text, gpus_of
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import plural, seconds_text
from tokendyno.backend.views.card import Card, card_of
from tokendyno.backend.views.comparison import Difference, differences
from tokendyno.backend.views.details import detail_rows
from tokendyno.backend.views.ledger import LedgerRow, ledger_digest, rows_of
from tokendyno.backend.views.quality import quality_sentence, reading_row, tolerances
from tokendyno.backend.views.sentences import annotations, diagnoses, interference_of, texts_sentence, whole_note
from tokendyno.backend.views.step_time import step_text, step_tiles
from tokendyno.backend.views.tiles import Tile, arm_tiles
from tokendyno.backend.views.verdict import same_sentence, unasked_sentence, verdict_of, why_sentence

_MAX_ANNOTATIONS = 5
CUT_SHORT = ("cancelled", "failed", "interrupted")
MAX_TEXT = 3_000
"""Characters of a text that a terminal gets without being asked for all: some 700 tokens."""

BESIDE = 100
"""From this many columns on, notes stand beside the figures; on a narrower terminal they stand under them."""


def no_reading(run: Created) -> None:
    """Find none: no other runs are known."""


def run_blocks(run: Run, everything: bool = False, find: FindReading = no_reading) -> list[Block]:
    """A run of any kind as it is now. `everything`: all figures, texts and rows; `find`: looks for a reading of texts
    by the same arms."""
    now = run.snapshot()
    if now.request.quality is not None:
        return _quality_blocks(now, everything)
    if now.request.traffic is not None:
        return _batch_blocks(now, everything)
    gate = gate_of(now, find) if now.ended else None
    verdict, card = verdict_of(now, gate), card_of(now, gate)
    return [
        title(now),
        _verdict(
            verdict.sentence,
            *_advice(card),
            "" if card else verdict.basis,
            f"{verdict.gate}." if verdict.gate else "",
            verdict.pays,
            verdict.unasked,
        ),
        _figures(now, [[*arm_tiles(now, name), _steps_tile(now, name)] for name in now.arms], differences(now)),
        _figures(now, [step_tiles(step_text(now, name)) for name in now.arms]),
        _figures(now, [detail_rows(now, name) for name in now.arms]) if everything else [],
        _texts(now, everything) if now.unit == "token" else [],
        _remarks(now),
        _ledgers(now, everything),
    ]


def title(run: Snapshot) -> list[Line]:
    created, (device, *_) = run.created, [*gpus_of(run.created.machine), run.created.machine.get("cpu", "this machine")]
    lines = [f"{created.model_label} on {device}", whole_note(created)]
    lines += [f"{arm.name}: {choices_text(arm.choices)}" for arm in created.request.arms]
    if run.status in CUT_SHORT:
        lines.append("It ended early: the figures are of what each arm had done by then.")
    return [line for line in lines if line]


def _advice(card: Card | None) -> list[str]:
    return [f"{card.recommendation}. {card.reason}".strip(), card.confidence, card.cost] if card else []


def _verdict(sentence: str, *below: str) -> Block:
    lines = [Styled(sentence, "bold"), *(Styled(line, "dim") for line in below)]
    return [line for line in lines if line.text]


# --- figures --------------------------------------------------------------------------------------


def _steps_tile(run: Snapshot, name: str) -> Tile:
    return Tile("steps", "Tokens" if run.unit == "token" else "Forward passes", str(len(run.arms[name].t_s)), "")


def _figures(run: Snapshot, figures: Sequence[Sequence[Tile]], deltas: Mapping[str, Difference] | None = None) -> Block:
    """A line for each figure, a column for each arm. A note that all arms share stands beside them, others below.
    `figures`: of each arm; `deltas`: between the arms, by key of the figure."""
    arms, by_key = list(run.arms), [{tile.key: tile for tile in tiles} for tiles in figures]
    labels = {tile.key: tile.label for tiles in figures for tile in tiles}
    rows: list[Row] = []
    for key, label in labels.items():
        row_tiles = [tiles.get(key, Tile(key, label, "n/a", "")) for tiles in by_key]
        values: list[Cell] = [f"{tile.value} {tile.unit}".strip() for tile in row_tiles]
        difference = (deltas or {}).get(key)
        if difference is not None and difference.better in arms:
            best = arms.index(difference.better)
            values[best] = Styled(str(values[best]), "green")
        notes = [tile.note for tile in row_tiles]
        shared = notes[0] if len(set(notes)) == 1 else ""
        each = "; ".join(f"{name}: {note}" for name, note in zip(arms, notes, strict=True) if note and not shared)
        rows.append([label, *values, difference.text if difference else "", shared, each])
    columns = [
        Column(prose=True),
        *(Column(name, right=True) for name in arms),
        Column(),
        Column(prose=True, below_under=BESIDE),
        Column(below=True),
    ]
    return [Table(columns, rows)] if rows else []


# --- texts and remarks ----------------------------------------------------------------------------


def _texts(run: Snapshot, everything: bool) -> Block:
    texts = {name: without_controls(arm.text) for name, arm in run.arms.items()}
    if len(texts) == 2 and len(set(texts.values())) == 1:
        return ["Both arms generated the same text:", *_text(next(iter(texts.values())), everything)]
    lines: list[Line] = []
    for name, text in texts.items():
        lines += [*([""] if lines else []), f"Text of arm {name}:", *_text(text, everything)]
    difference = texts_sentence(run.texts)
    return [*lines, "", difference] if difference else lines


def _text(text: str, everything: bool) -> list[Line]:
    if everything or len(text) <= MAX_TEXT:
        return [text]
    return [text[:MAX_TEXT], Styled(f"({plural(len(text) - MAX_TEXT, 'more character')}; --all shows them)", "dim")]


def _remarks(run: Snapshot) -> Block:
    """What the worker noted, what may have disturbed the run, what the figures reveal, and the first annotations."""
    step, lines = "token" if run.unit == "token" else "pass", []
    for name, arm in run.arms.items():
        notes = arm.started.notes if arm.started else []
        remarks = (*notes, *diagnoses(run.summaries[name], run.unit), *interference_of(run, name))
        lines += [f"Arm {name}: {without_controls(remark)}" for remark in remarks]
        marks = annotations(arm.annotations)
        lines += [
            f"Arm {name}, {step} {mark.token}: {without_controls(mark.text)}" for mark in marks[:_MAX_ANNOTATIONS]
        ]
        if len(marks) > _MAX_ANNOTATIONS:
            lines.append(f"Arm {name}: {plural(len(marks) - _MAX_ANNOTATIONS, 'more annotation')} in the JSON document")
    return lines


# --- ledgers --------------------------------------------------------------------------------------

_STATUS: dict[Status, tuple[str, str]] = {
    "verified": ("verified", "green"),
    "unchecked": ("unchecked", "dim"),
    "partial": ("PARTIAL", "yellow"),
    "no_effect": ("NO EFFECT", "yellow"),
    "fallback": ("FALLBACK", "yellow"),
    "failed": ("NOT IN EFFECT", "red"),
    "off": ("off", "dim"),
    "not_applicable": ("not applicable", "dim"),
}


def _ledgers(run: Snapshot, everything: bool) -> Block:
    """One line for all ledgers, then the rows that need a look, or with `everything` all rows, those first."""
    arms = {name: rows_of(run, name) for name in run.ledgers}
    digest = ledger_digest(arms)
    if digest is None:
        return []
    rows = [row for ledger in arms.values() for row in ledger]
    default = defaults()
    chosen = {row.axis for row in rows if row.requested != default.get(row.axis, row.requested)}
    axes = list(dict.fromkeys(row.axis for row in rows))
    first = [axis for axis in axes if axis in digest.shown or (len(arms) == 1 and axis in chosen)]
    shown = [*first, *(axis for axis in axes if axis not in first)] if everything else first
    lines: list[Line] = [f"Ledger: {digest.line}"]
    if shown:
        lines.append(_ledger_rows(arms, shown))
    hidden = len(axes) - len(shown)
    if hidden == 1:
        lines.append(Styled("1 more row is as planned; --all shows it.", "dim"))
    elif hidden:
        lines.append(Styled(f"{hidden} more rows are as planned; --all shows them.", "dim"))
    return lines


def _ledger_rows(arms: Mapping[str, Sequence[LedgerRow]], axes: Sequence[str]) -> Table:
    heading = "requested -> planned -> effective"
    columns = [Column("axis"), Column("arm"), Column(heading, prose=True), Column("status"), Column(below=True)]
    rows: list[Row] = []
    for axis in axes:
        axis_cell = axis  # once, in the first row
        for name, ledger in arms.items():
            for row in (row for row in ledger if row.axis == axis):
                below = "\n".join(filter(None, [row.proof, row.reason]))
                rows.append([axis_cell, name, _steps(row), Styled(*_STATUS[row.status]), below])
                axis_cell = ""
    return Table(columns, rows, indent=2)


def _steps(row: LedgerRow) -> str:
    """What was requested, planned and found; what is the same to the end is written once."""
    if row.requested == row.planned == row.effective:
        return row.effective
    if row.planned == row.effective:
        return f"{row.requested} -> {row.effective}"
    return f"{row.requested} -> {row.planned} -> {row.effective}"


# --- many requests, given texts -------------------------------------------------------------------


def _batch_blocks(run: Snapshot, everything: bool) -> list[Block]:
    traffic = run.request.traffic
    assert traffic is not None
    verdict, card = verdict_of(run), card_of(run)
    same = "" if run.status in CUT_SHORT else same_sentence(run)
    return [
        [*title(run), f"{traffic.label}; at most {traffic.concurrent} in work"],
        _verdict(verdict.sentence or same, *_advice(card), why_sentence(run), verdict.unasked),
        _figures(run, [arm_tiles(run, name) for name in run.arms], differences(run)),
        _figures(run, [detail_rows(run, name) for name in run.arms]) if everything else [],
        _ledgers(run, everything),
    ]


_TEXT_COLUMNS = (
    Column("Text"),
    Column("Positions", right=True, optional=True),
    Column("Perplexity A", right=True),
    Column("Perplexity B", right=True),
    Column("B / A", right=True, optional=True),
    Column("KL, nats", right=True),
    Column("Largest KL", right=True, optional=True),
    Column("Agreement", right=True),
    Column("First divergence", right=True, optional=True),
)


def _quality_blocks(run: Snapshot, everything: bool) -> list[Block]:
    """A row for each text and one for all; the verdict goes by tolerances, beside what a token takes in each arm."""
    whole, limits = whole_reading(run), tolerances(run)
    rows = [*readings(run), *([whole] if whole else [])] if len(run.arms) > 1 else []
    means = {name: summary.latency_mean_s for name, summary in run.summaries.items()}
    times = ", ".join(f"{name} {' '.join(seconds_text(mean_s))}" for name, mean_s in means.items() if mean_s)
    basis = [
        f"Tolerances: {limits}." if limits else "",
        f"Time per token when they generate (mean, one run): {times}." if times else "",
    ]
    return [
        title(run),
        _verdict(quality_sentence(run), " ".join(filter(None, basis)), unasked_sentence(run)),
        [Table(_TEXT_COLUMNS, [astuple(reading_row(reading.name, reading)) for reading in rows])] if rows else [],
        _ledgers(run, everything),
    ]
