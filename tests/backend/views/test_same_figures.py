"""A figure is the same wherever it stands: terminal, Markdown and JSON show no ratio, time, size or share that the page
does not show, its slides and the report included."""

import re

import msgspec
import pytest

from tokendyno.backend.cli.run_table import run_blocks
from tokendyno.backend.cli.terminal import console_of, drawn
from tokendyno.backend.recordings.recorded_runs import shipped_names, shipped_records
from tokendyno.backend.runs.run import folded
from tokendyno.backend.views.batch_live import batch_head
from tokendyno.backend.views.document import document_of
from tokendyno.backend.views.live import head_of
from tokendyno.backend.views.share import markdown, shared

FIGURE = re.compile(r"(?<![\d.,])\d[\d,.]*(?:\u00d7| ?(?:ms|s|%|KiB|MiB|GiB|tok/s|req/s)(?!\w))")


@pytest.mark.parametrize("name", shipped_names())
def test_nothing_shows_a_figure_of_its_own(name: str) -> None:
    run = folded(shipped_records(f"recorded-{name}"))
    now = run.snapshot()
    head = batch_head(now, 0.0) if now.request.traffic else head_of(now, 0.0)
    tiles = [f"{tile.value} {tile.unit}" for arm in head.arms for tile in arm.tiles]
    page = {
        *FIGURE.findall(str(msgspec.to_builtins(head))),
        *(figure for tile in tiles for figure in FIGURE.findall(tile)),
    }
    verdict, figures = run_blocks(run)[1:3]  # behind the machine; before the parts of a step, whose shares are drawn
    for shown in (drawn([verdict, figures], console_of(None, "never")), markdown(shared(run))):
        figures_shown = set(FIGURE.findall(shown))
        assert len(figures_shown) > 5 and figures_shown <= page
    if head.card is None:
        assert len(now.arms) == 1
        return
    document = msgspec.to_builtins(document_of(run, lambda created: None))
    assert document["verdict"] == msgspec.to_builtins(head.card)
    compared = document["comparison"]
    assert [compared[key] for key in ("ratio", "low", "high")] == [head.card.ratio, head.card.low, head.card.high]
