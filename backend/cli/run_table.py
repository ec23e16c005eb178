"""A run as text for a terminal: the figures side by side, the ledgers, the texts."""

from backend.config import MEASURE_REPEATS
from backend.evidence import Status
from backend.redact import plain
from backend.runs.records import Unit
from backend.runs.run import Run
from backend.runs.snapshot import Snapshot
from backend.views.arm_details import detail_rows
from backend.views.ledger import ledger_summary, prompt_rows
from backend.views.sentences import annotations, diagnoses, interference_of, texts_sentence
from backend.views.tiles import Tile, tiles
from backend.views.verdict import verdict_of

_LABEL_WIDTH = 40
_COLUMN_WIDTH = 26
_MAX_ANNOTATIONS = 5
_STATUS: dict[Status, str] = {
    "verified": "verified", "partial": "PARTIAL", "no_effect": "NO EFFECT", "fallback": "FALLBACK",
    "failed": "NOT IN EFFECT", "off": "off", "not_applicable": "not applicable",
}  # fmt: skip


def table(run: Run) -> str:
    """The run as it is now."""
    now = run.snapshot()
    lines = [*title(now), "", *_figures(now)]
    verdict = verdict_of(now, f"--repeats {MEASURE_REPEATS}")
    lines += ["", verdict.sentence] if verdict.sentence else []
    lines += [verdict.basis] if verdict.basis else []
    for name in now.arms:
        summary = now.summary(name)
        sentences = [*diagnoses(summary, now.unit), *interference_of(now, name, summary)]
        lines += [f"Arm {name}: {sentence}" for sentence in sentences]
        lines += _annotations(now, name)
    for name in now.arms:
        lines += ["", *ledger_lines(now, name)]
    if now.unit == "token":
        lines += _texts(now)
    return "\n".join(lines)


def title(run: Snapshot) -> list[str]:
    """The model and the machine; a remark about the model."""
    created = run.created
    gpu = next((value for name, value in created.machine.items() if name[:3] == "gpu" and name[3:].isdecimal()), None)
    named = f"{created.model_label} on {gpu or created.machine.get('cpu', 'this machine')}"
    return [named, created.model_note] if created.model_note else [named]


def _figures(run: Snapshot) -> list[str]:
    """One line per figure, one column per arm."""
    figures: list[list[Tile]] = []
    for name, arm in run.arms.items():
        summary = run.summary(name)
        found = tiles(summary, run.memory_label, run.request.workload.batch_size, run.unit, arm.roofline_note)
        found += detail_rows(run, name, summary) if arm.finishes else []
        figures.append(found)
    steps = [Tile("", "", str(len(arm.t_s)), "") for arm in run.arms.values()]
    return [
        *rows_of_tiles(list(run.arms), figures),
        *_row("Tokens" if run.unit == "token" else "Forward passes", steps),
    ]


def rows_of_tiles(arms: list[str], figures: list[list[Tile]]) -> list[str]:
    """A line for each figure that some arm has, under the names of the arms."""
    known = [{tile.key: tile for tile in found} for found in figures]
    lines = [" " * _LABEL_WIDTH + "".join(f"{'arm ' + name:<{_COLUMN_WIDTH}}" for name in arms)]
    for key, label in {tile.key: tile.label for found in figures for tile in found}.items():
        lines += _row(label, [found.get(key, Tile(key, label, "n/a", "")) for found in known])
    return lines


def _row(label: str, tiles: list[Tile]) -> list[str]:
    """One figure of all arms; notes that are equal are printed once, at the end of the line."""
    values = "".join(f"{(tile.value + ' ' + tile.unit).strip():<{_COLUMN_WIDTH}}" for tile in tiles)
    line, notes = f"{label:<{_LABEL_WIDTH}}{values}", [tile.note for tile in tiles]
    if len(set(notes)) == 1:
        return [(line + notes[0]).rstrip()]
    below = " " * _LABEL_WIDTH + "".join(f"{note + ' ':<{_COLUMN_WIDTH}}" for note in notes)
    return [line.rstrip(), below.rstrip()]


def _annotations(run: Snapshot, name: str) -> list[str]:
    """The first annotations of an arm; the document has all."""
    word = _word(run.unit)
    found = annotations(run.arms[name].annotations)
    lines = [f"Arm {name}, {word} {one.token}: {plain(one.text)}" for one in found[:_MAX_ANNOTATIONS]]
    more = len(found) - _MAX_ANNOTATIONS
    return [*lines, f"Arm {name}: {more} more annotations in the JSON document"] if more > 0 else lines


def _word(unit: Unit) -> str:
    return "token" if unit == "token" else "pass"


def ledger_lines(run: Snapshot, name: str) -> list[str]:
    """The ledger of one arm."""
    rows = prompt_rows(run.ledger(name))
    lines = [f"Arm {name}: requested -> planned -> effective" + (f" ({ledger_summary(rows)})" if rows else "")]
    for row in rows:
        steps = f"{row.requested} -> {row.planned} -> {row.effective}"
        lines.append(f"  {row.axis:<10} {steps}  [{_STATUS[row.status]}] {row.proof}")
        if row.reason:
            lines.append(f"             {row.reason}")
    return lines


def _texts(run: Snapshot) -> list[str]:
    """What the arms wrote; one text where both wrote the same."""
    texts = {name: plain(arm.text) for name, arm in run.arms.items()}
    if len(texts) == 2 and len(set(texts.values())) == 1:
        return ["", "Both arms generated the same text:", next(iter(texts.values()))]
    lines = [line for name, text in texts.items() for line in ("", f"Text of arm {name}:", text)]
    difference = texts_sentence(run.texts())
    return [*lines, "", difference] if difference else lines
