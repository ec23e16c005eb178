"""A run of many requests as text for a terminal."""

from backend.cli.run_table import ledger_lines, rows_of_tiles, title
from backend.runs.snapshot import Snapshot
from backend.views.batch_tiles import batch_details, batch_tiles
from backend.views.batch_verdict import batch_verdict, same_sentence, why_sentence
from backend.views.tiles import Tile


def batch_table(run: Snapshot) -> str:
    """The figures side by side, the verdict, and the ledgers."""
    traffic = run.request.traffic
    assert traffic is not None
    figures: list[list[Tile]] = []
    for name, arm in run.arms.items():
        found = run.batch_summaries[name]
        memory = arm.finished.peak_memory_bytes if arm.finished else None
        figures.append([*batch_tiles(found, traffic.limits), *batch_details(found, memory, run.memory_label)])
    lines = [*title(run), f"{traffic.label}; {traffic.concurrent} at once", ""]
    lines += rows_of_tiles(list(run.arms), figures)
    sentence = batch_verdict(run).sentence or same_sentence(run)
    lines += ["", *filter(None, (sentence, why_sentence(run)))]
    for name in run.arms:
        lines += ["", *ledger_lines(run, name)]
    return "\n".join(lines)
