"""A run as text for a terminal: the verdict, the figures side by side, the texts, the ledgers."""

from collections.abc import Sequence

from backend.cli.figures import figures_table
from backend.cli.ledger_table import ledger_table
from backend.redact import plain
from backend.runs.gate import FindReading, gate_of
from backend.runs.records import Created, Unit
from backend.runs.run import Run
from backend.runs.snapshot import Snapshot
from backend.terminal import Screen, fold
from backend.views.arm_details import detail_rows
from backend.views.differences import differences
from backend.views.origin import whole_note
from backend.views.sentences import annotations, diagnoses, interference_of, texts_sentence
from backend.views.step_time import step_text, step_tiles
from backend.views.tile import Tile
from backend.views.tiles import tiles
from backend.views.verdict import ELSEWHERE, verdict_of

_MAX_ANNOTATIONS = 5
MAX_TEXT = 3_000
"""Characters of a text that a terminal gets without being asked for all: some 700 tokens."""


def no_reading(run: Created) -> None:
    """Where no other runs are known."""


def table(run: Run, screen: Screen, everything: bool = False, find: FindReading = no_reading) -> str:
    """The run as it is now. `everything`: also the figures behind the main ones, and every row of the ledgers.
    `find`: a reading of texts by the same arms."""
    now = run.snapshot()
    gate = gate_of(now, find) if now.ended else None
    verdict = verdict_of(now, ELSEWHERE, gate)
    blocks = [
        title(now, screen),
        verdict_lines(verdict.sentence, verdict.basis, screen, verdict.gate, verdict.unasked),
        _figures(now, screen),
        _step_time(now, screen),
        _details(now, screen) if everything else [],
        _texts(now, screen, everything) if now.unit == "token" else [],
        _remarks(now, screen),
        ledger_table(now, screen, everything),
    ]
    return joined(blocks)


def joined(blocks: Sequence[Sequence[str]]) -> str:
    """Blocks of lines, with an empty line between two."""
    return "\n\n".join("\n".join(block) for block in blocks if block)


def title(run: Snapshot, screen: Screen) -> list[str]:
    """The model and the machine; a remark about the model; what each arm was asked for."""
    created = run.created
    gpu = next((value for name, value in created.machine.items() if name[:3] == "gpu" and name[3:].isdecimal()), None)
    named = f"{created.model_label} on {gpu or created.machine.get('cpu', 'this machine')}"
    notes = whole_note(created)
    lines = [*fold(named, screen.columns), *(fold(notes, screen.columns) if notes else [])]
    for arm in created.request.arms:
        asked = ", ".join(f"{axis}={choice}" for axis, choice in arm.choices.items()) or "defaults"
        lines += fold(f"{arm.name}: {asked}", screen.columns)
    return lines


def verdict_lines(sentence: str, basis: str, screen: Screen, gate: str = "", unasked: str = "") -> list[str]:
    """The verdict, and under it what it is based on, what is known of quality, and what else differs."""
    lines = [screen.paint(line, "bold") for line in fold(sentence, screen.columns)] if sentence else []
    whole = (basis, f"{gate}." if gate else "", unasked)
    below = [line for said in whole if said for line in fold(said, screen.columns)]
    return lines + [screen.paint(line, "dim") for line in below]


def _figures(run: Snapshot, screen: Screen) -> list[str]:
    """One line per figure, one column per arm."""
    label = "Tokens" if run.unit == "token" else "Forward passes"
    figures: list[list[Tile]] = []
    for name, arm in run.arms.items():
        found = tiles(
            run.summary(name),
            run.memory_label,
            run.request.workload.batch_size,
            run.unit,
            arm.roofline_note,
            arm.prefill,
        )
        figures.append([*found, Tile("steps", label, str(len(arm.t_s)), "")])
    return figures_table(list(run.arms), figures, screen, differences(run))


def _step_time(run: Snapshot, screen: Screen) -> list[str]:
    """Where the time of a step goes."""
    figures = [step_tiles(step_text(run, name, run.summary(name))) for name in run.arms]
    return figures_table(list(run.arms), figures, screen, {}) if any(figures) else []


def _details(run: Snapshot, screen: Screen) -> list[str]:
    """The figures behind the main ones."""
    figures = [detail_rows(run, name, run.summary(name)) if arm.finishes else [] for name, arm in run.arms.items()]
    return figures_table(list(run.arms), figures, screen, {}) if any(figures) else []


def _remarks(run: Snapshot, screen: Screen) -> list[str]:
    """What the worker noted, what may have disturbed the run, what the figures reveal, and the first annotations; the
    document has all."""
    word, said = _word(run.unit), []
    for name, arm in run.arms.items():
        summary = run.summary(name)
        noted = arm.started.notes if arm.started else []
        told = (*noted, *diagnoses(summary, run.unit), *interference_of(run, name, summary))
        said += [f"Arm {name}: {plain(text)}" for text in told]
        found = annotations(arm.annotations)
        said += [f"Arm {name}, {word} {one.token}: {plain(one.text)}" for one in found[:_MAX_ANNOTATIONS]]
        if len(found) > _MAX_ANNOTATIONS:
            said.append(f"Arm {name}: {len(found) - _MAX_ANNOTATIONS} more annotations in the JSON document")
    return [line for one in said for line in fold(one, screen.columns)]


def _word(unit: Unit) -> str:
    return "token" if unit == "token" else "pass"


def _texts(run: Snapshot, screen: Screen, everything: bool) -> list[str]:
    """What the arms wrote; one text where both wrote the same."""
    plain_texts = {name: plain(arm.text) for name, arm in run.arms.items()}
    texts = {name: _text(text, screen, everything) for name, text in plain_texts.items()}
    if len(texts) == 2 and len(set(plain_texts.values())) == 1:
        return ["Both arms generated the same text:", *next(iter(texts.values()))]
    lines: list[str] = []
    for name, text in texts.items():
        lines += [*([""] if lines else []), f"Text of arm {name}:", *text]
    difference = texts_sentence(run.texts())
    return [*lines, "", *fold(difference, screen.columns)] if difference else lines


def _text(text: str, screen: Screen, everything: bool) -> list[str]:
    """A text in lines: whole, or its beginning and how much more there is."""
    more = 0 if everything else len(text) - MAX_TEXT
    if more <= 0:
        return fold(text, screen.columns)
    return [
        *fold(text[:MAX_TEXT], screen.columns),
        screen.paint(f"({more:,} more characters; --all shows them)", "dim"),
    ]
