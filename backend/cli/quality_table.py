"""A comparison over given texts as text for a terminal."""

from backend.cli.ledger_table import ledger_table
from backend.cli.run_table import joined, title, verdict_lines
from backend.runs.quality import TextReading, readings, whole_reading
from backend.runs.snapshot import Snapshot
from backend.terminal import Column, Screen, table
from backend.units import seconds_text, three
from backend.views.quality import quality_sentence, tolerances
from backend.views.verdict import unasked_sentence

_COLUMNS = (
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


def quality_table(run: Snapshot, screen: Screen, everything: bool = False) -> str:
    """The verdict, a row for each text and one for all, and the ledgers. `everything`: as in `run_table.table`."""
    whole = whole_reading(run)
    found = [*readings(run), *([whole] if whole else [])] if len(run.arms) > 1 else []
    blocks = [
        title(run, screen),
        verdict_lines(quality_sentence(run), _basis(run), screen, unasked=unasked_sentence(run)),
        table(_COLUMNS, [_row(one) for one in found], screen) if found else [],
        ledger_table(run, screen, everything),
    ]
    return joined(blocks)


def _basis(run: Snapshot) -> str:
    """What the verdict goes by, where there is one, and the speeds."""
    limits = tolerances(run)
    return " ".join(filter(None, [f"Tolerances: {limits}." if limits else "", _speeds(run)]))


def _speeds(run: Snapshot) -> str:
    """What each arm takes for a token when it generates."""
    means = {name: run.summary(name).latency_mean_s for name in run.arms}
    said = [f"{name} {' '.join(seconds_text(mean_s))}" for name, mean_s in means.items() if mean_s]
    return f"Time per token when they generate (mean, one run): {', '.join(said)}." if said else ""


def _row(one: TextReading) -> list[str]:
    found = one.difference
    assert found is not None
    a, b = one.arms.values()
    apart = "none" if found.first_divergence is None else f"{found.first_divergence:,}"
    return [
        one.name, f"{one.positions:,}", three(a.perplexity), three(b.perplexity), three(found.perplexity_ratio),
        three(found.kl_nats), three(found.kl_max_nats), f"{100 * found.top1_agreement:.1f}%", apart,
    ]  # fmt: skip
