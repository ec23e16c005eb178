"""Who has to wait for a count is told so."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.ui.components.counting import slow_to_resolve


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
