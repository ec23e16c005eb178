"""A run of many requests as text for a terminal."""

from backend.cli.figures import figures_table
from backend.cli.ledger_table import ledger_table
from backend.cli.run_table import joined, title, verdict_lines
from backend.runs.snapshot import Snapshot
from backend.terminal import Screen, fold
from backend.views.batch_tiles import batch_details, batch_differences, batch_tiles
from backend.views.batch_verdict import batch_verdict, same_sentence, why_sentence


def batch_table(run: Snapshot, screen: Screen, everything: bool = False) -> str:
    """The verdict, the figures side by side, and the ledgers. `everything`: as in `run_table.table`."""
    traffic = run.request.traffic
    assert traffic is not None
    arms, found = list(run.arms), [run.batch_summaries[name] for name in run.arms]
    tiles = [batch_tiles(one, traffic.limits) for one in found]
    memory = [arm.finished.peak_memory_bytes if arm.finished else None for arm in run.arms.values()]
    behind = [batch_details(one, size, run.memory_label) for one, size in zip(found, memory, strict=True)]
    against = batch_differences(*found) if len(found) == 2 else {}
    verdict = batch_verdict(run)
    asked = fold(f"{traffic.label}; {traffic.concurrent} at once", screen.columns)
    blocks = [
        [*title(run, screen), *asked],
        verdict_lines(verdict.sentence or same_sentence(run), why_sentence(run), screen, unasked=verdict.unasked),
        figures_table(arms, tiles, screen, against),
        figures_table(arms, behind, screen, {}) if everything else [],
        ledger_table(run, screen, everything),
    ]
    return joined(blocks)
