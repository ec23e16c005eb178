"""All detail rows of one arm: figures, load, roofline bound, and predicted against measured memory."""

from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import RankMemory
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import bytes_text
from tokendyno.backend.views.memory_check import memory_checks_of
from tokendyno.backend.views.prompt_pass import prompt_pass, prompt_pass_rows
from tokendyno.backend.views.tile import Tile
from tokendyno.backend.views.tiles import details, load_rows, prefill_rows, roofline_row


def detail_rows(run: Snapshot, name: str) -> list[Tile]:
    """What stands behind the tiles of one arm."""
    arm, summary = run.arms[name], run.summary(name)
    counts = arm.finishes[max(arm.finishes)].counts if arm.finishes else RunCounts()
    phases_s = {phase.name: phase.seconds for phase in arm.phases.values()}
    return [
        *details(summary, counts, phases_s, run.created.device, run.unit, run.memory_label),
        *load_rows(arm.loaded),
        roofline_row(summary, arm.roofline_work, arm.roofline_note, run.unit),
        *prompt_pass_rows(prompt_pass(run, name), arm.prefill),
        *prefill_rows(arm.prefill),
        *(check.tile() for check in memory_checks_of(run, name)),
        *_rank_rows(arm.finished.ranks if arm.finished else []),
    ]


def _rank_rows(ranks: list[RankMemory]) -> list[Tile]:
    """Memory of each rank, where several run the model, or of each device over which its layers are spread."""
    found = []
    for i, rank in enumerate(ranks):
        peak, weights, kv = (bytes_text(size) for size in (rank.peak_bytes, rank.weight_bytes, rank.kv_bytes))
        note = f"weights {' '.join(weights)}, KV cache {' '.join(kv)}"
        found.append(Tile(f"rank-{i}", f"Peak memory of {rank.of} {i}", *peak, note))
    return found
