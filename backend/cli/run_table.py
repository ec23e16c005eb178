"""A run as text for a terminal: the verdict, the figures side by side, the texts, the ledgers."""

from collections.abc import Mapping, Sequence

from msgspec.structs import astuple

from tokendyno.backend.cli.terminal import Block, Cell, Column, Line, Row, Styled, Table
from tokendyno.backend.evidence import Status
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.quality import FindReading, gate_of, readings, whole_reading
from tokendyno.backend.runs.records import Created
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import seconds_text
from tokendyno.backend.views.card import Card, card_of
from tokendyno.backend.views.comparison import Difference, differences
from tokendyno.backend.views.details import detail_rows
from tokendyno.backend.views.ledger import LedgerRow, ledger_digest, prompt_rows
from tokendyno.backend.views.quality import quality_sentence, reading_row, tolerances
from tokendyno.backend.views.sentences import annotations, diagnoses, interference_of, texts_sentence, whole_note
from tokendyno.backend.views.step_time import step_text, step_tiles
from tokendyno.backend.views.tiles import Tile, arm_tiles
from tokendyno.backend.views.verdict import same_sentence, unasked_sentence, verdict_of, why_sentence

_MAX_ANNOTATIONS = 5
MAX_TEXT = 3_000
"""Characters of a text that a terminal gets without being asked for all: some 700 tokens."""

BESIDE = 100
"""From this many columns on, notes stand beside the figures; on a narrower terminal they stand under them."""


def no_reading(run: Created) -> None:
    """Where no other runs are known."""


def run_blocks(run: Run, everything: bool = False, find: FindReading = no_reading) -> list[Block]:
    """A run of any kind as it is now. `everything`: all figures, texts and rows. `find`: a reading."""
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
        _main_figures(now),
        _figures(now, [step_tiles(step_text(now, name)) for name in now.arms]),
        _figures(now, [detail_rows(now, name) for name in now.arms]) if everything else [],
        _texts(now, everything) if now.unit == "token" else [],
        _remarks(now),
        _ledgers(now, everything),
    ]


def title(run: Snapshot) -> list[Line]:
    """The model and the machine; a remark about the model; what each arm was asked for."""
    created = run.created
    gpu = next((value for name, value in created.machine.items() if name[:3] == "gpu" and name[3:].isdecimal()), None)
    lines = [f"{created.model_label} on {gpu or created.machine.get('cpu', 'this machine')}", whole_note(created)]
    for arm in created.request.arms:
        asked = ", ".join(f"{axis}={choice}" for axis, choice in arm.choices.items()) or "defaults"
        lines.append(f"{arm.name}: {asked}")
    return [line for line in lines if line]


def _advice(card: Card | None) -> list[str]:
    """What a card says beside its figures."""
    return [f"{card.recommendation}. {card.reason}".strip(), card.confidence, card.cost] if card else []


def _verdict(sentence: str, *below: str) -> Block:
    """The verdict, and under it what it is based on, what is known of quality, and what else differs."""
    lines = [Styled(sentence, "bold"), *(Styled(line, "dim") for line in below)]
    return [line for line in lines if line.text]


# --- figures --------------------------------------------------------------------------------------


def _main_figures(run: Snapshot) -> Block:
    label = "Tokens" if run.unit == "token" else "Forward passes"
    figures = [[*arm_tiles(run, name), Tile("steps", label, str(len(arm.t_s)), "")] for name, arm in run.arms.items()]
    return _figures(run, figures, differences(run))


def _figures(
    run: Snapshot, figures: Sequence[Sequence[Tile]], against: Mapping[str, Difference] | None = None
) -> Block:
    """A line for each figure, a column for each arm. What notes have in common stands beside them."""
    arms, known = list(run.arms), [{tile.key: tile for tile in found} for found in figures]
    labels = {tile.key: tile.label for found in figures for tile in found}
    rows: list[Row] = []
    for key, label in labels.items():
        shown = [found.get(key, Tile(key, label, "n/a", "")) for found in known]
        values: list[Cell] = [f"{tile.value} {tile.unit}".strip() for tile in shown]
        said = (against or {}).get(key)
        if said is not None and said.better in arms:
            best = arms.index(said.better)
            values[best] = Styled(str(values[best]), "green")
        notes = [tile.note for tile in shown]
        common = notes[0] if len(set(notes)) == 1 else ""
        apart = "; ".join(f"{name}: {note}" for name, note in zip(arms, notes, strict=True) if note and not common)
        rows.append([label, *values, said.text if said else "", common, apart])
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
    """What the arms wrote; one text where both wrote the same."""
    texts = {name: without_controls(arm.text) for name, arm in run.arms.items()}
    if len(texts) == 2 and len(set(texts.values())) == 1:
        return ["Both arms generated the same text:", *_text(next(iter(texts.values())), everything)]
    lines: list[Line] = []
    for name, text in texts.items():
        lines += [*([""] if lines else []), f"Text of arm {name}:", *_text(text, everything)]
    difference = texts_sentence(run.texts())
    return [*lines, "", difference] if difference else lines


def _text(text: str, everything: bool) -> list[Line]:
    """A text: whole, or its beginning and how much more there is."""
    more = 0 if everything else len(text) - MAX_TEXT
    if more <= 0:
        return [text]
    return [text[:MAX_TEXT], Styled(f"({more:,} more characters; --all shows them)", "dim")]


def _remarks(run: Snapshot) -> Block:
    """What the worker noted, what may have disturbed the run, what the figures reveal, and the first annotations."""
    word, said = "token" if run.unit == "token" else "pass", []
    for name, arm in run.arms.items():
        summary = run.summary(name)
        noted = arm.started.notes if arm.started else []
        remarks = (*noted, *diagnoses(summary, run.unit), *interference_of(run, name))
        said += [f"Arm {name}: {without_controls(text)}" for text in remarks]
        found = annotations(arm.annotations)
        said += [f"Arm {name}, {word} {one.token}: {without_controls(one.text)}" for one in found[:_MAX_ANNOTATIONS]]
        if len(found) > _MAX_ANNOTATIONS:
            said.append(f"Arm {name}: {len(found) - _MAX_ANNOTATIONS} more annotations in the JSON document")
    return said


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
    arms = {name: prompt_rows(run.ledger(name)) for name in run.arms}
    digest = ledger_digest(arms)
    if digest is None:
        return []
    defaults = {one.name: one.default for one in all_axes()}

    def chosen(axis: str) -> bool:
        """Whether an arm asked for something other than the default."""
        return any(
            r.axis == axis and r.requested != defaults.get(axis, r.requested) for rows in arms.values() for r in rows
        )

    axes = list(dict.fromkeys(row.axis for rows in arms.values() for row in rows))
    first = [axis for axis in axes if axis in digest.shown or (len(arms) == 1 and chosen(axis))]
    shown = [*first, *(axis for axis in axes if axis not in first)] if everything else first
    lines: list[Line] = [f"Ledger: {digest.line}"]
    if shown:
        lines.append(_ledger_rows(arms, shown))
    more = len(axes) - len(shown)
    if more:
        rest = f"{more} more rows are as planned; --all shows them."
        lines.append(Styled(rest if more > 1 else "1 more row is as planned; --all shows it.", "dim"))
    return lines


def _ledger_rows(arms: Mapping[str, Sequence[LedgerRow]], axes: Sequence[str]) -> Table:
    steps_heading = "requested -> planned -> effective"
    columns = [Column("axis"), Column("arm"), Column(steps_heading, prose=True), Column("status"), Column(below=True)]
    cells: list[Row] = []
    for axis in axes:
        name_of_axis = axis
        for name, rows in arms.items():
            for row in (row for row in rows if row.axis == axis):
                below = "\n".join(filter(None, [row.proof, row.reason]))
                cells.append([name_of_axis, name, steps(row), Styled(*_STATUS[row.status]), below])
                name_of_axis = ""
    return Table(columns, cells, indent=2)


def steps(row: LedgerRow) -> str:
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
    return [
        [*title(run), f"{traffic.label}; {traffic.concurrent} at once"],
        _verdict(verdict.sentence or same_sentence(run), *_advice(card), why_sentence(run), verdict.unasked),
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
    found = [*readings(run), *([whole] if whole else [])] if len(run.arms) > 1 else []
    means = {name: run.summary(name).latency_mean_s for name in run.arms}
    said = ", ".join(f"{name} {' '.join(seconds_text(mean_s))}" for name, mean_s in means.items() if mean_s)
    basis = [
        f"Tolerances: {limits}." if limits else "",
        f"Time per token when they generate (mean, one run): {said}." if said else "",
    ]
    return [
        title(run),
        _verdict(quality_sentence(run), " ".join(filter(None, basis)), unasked_sentence(run)),
        [Table(_TEXT_COLUMNS, [astuple(reading_row(one.name, one)) for one in found])] if found else [],
        _ledgers(run, everything),
    ]
