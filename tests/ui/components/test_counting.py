"""Who has to wait for a count is told so, and how long it has taken."""

import json
from collections.abc import Iterator
from pathlib import Path

import gradio as gr
import pytest

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.models import counting
from tokendyno.ui.components.counting import COUNTING, next_sentence, slow_to_resolve


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "falcon", "num_hidden_layers": 2}))
    opened = open_bench(None)
    yield opened
    opened.close()


def test_only_an_architecture_that_must_be_counted_is_announced(tmp_path: Path, bench: Bench) -> None:
    assert slow_to_resolve(str(tmp_path), bench)
    for quick in ("pocket", "gpt-oss-20b", "no such model", "", None, 7):
        assert not slow_to_resolve(quick, bench)


@pytest.mark.parametrize(
    ("said", "counted", "goes_on", "shown"),
    [
        (COUNTING, False, True, f"{COUNTING} 2 min 5 s so far."),
        (COUNTING, True, False, ""),  # the answer came before this sentence
        ("It does not fit.", False, True, None),
    ],
)
def test_the_sentence_says_how_long_a_count_has_taken_and_goes_with_it(
    said: str,
    counted: bool,
    goes_on: bool,
    shown: str | None,
    tmp_path: Path,
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if goes_on:
        monkeypatch.setattr(counting, "_progress", counting.Progress(125.0, 40.0))
    message, timer = gr.HTML(), gr.Timer(active=False)
    found = next_sentence("pocket" if counted else str(tmp_path), said, bench, message, timer)
    assert found.get(message) == shown
    assert (timer in found) is (counted or not said.startswith(COUNTING))
