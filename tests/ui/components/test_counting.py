"""Who has to wait for a count is told so."""

import json
from pathlib import Path

import pytest

from tokendyno.backend.engine.bench import Bench
from tokendyno.ui.components.counting import slow_to_resolve


def test_only_an_architecture_that_must_be_counted_is_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_bench: Bench
) -> None:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "falcon", "num_hidden_layers": 2}))
    assert slow_to_resolve(str(tmp_path), warm_bench)
    for quick in ("pocket", "gpt-oss-20b", "no such model", "", None, 7):
        assert not slow_to_resolve(quick, warm_bench)
