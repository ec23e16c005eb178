"""All detail rows of one arm: figures, load, roofline bound, and predicted against measured memory."""

from backend.counts import RunCounts
from backend.runs.snapshot import Snapshot
from backend.runs.summary import Summary
from backend.views.memory_check import memory_checks_of
from backend.views.tiles import Tile, details, load_rows, roofline_row


def detail_rows(run: Snapshot, name: str, summary: Summary) -> list[Tile]:
    """What stands behind the tiles of one arm."""
    arm = run.arms[name]
    counts = arm.finishes[max(arm.finishes)].extra if arm.finishes else RunCounts()
    phases_s = {phase.name: phase.seconds for phase in arm.phases.values()}
    return [
        *details(summary, counts, phases_s, run.created.device, run.unit, run.memory_label),
        *load_rows(arm.loaded),
        roofline_row(summary, arm.roofline_work, arm.roofline_note, run.unit),
        *(check.tile() for check in memory_checks_of(run, name, summary)),
    ]
