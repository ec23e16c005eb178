"""What the Fit page's table of a split model is made from: the controls, read as untrusted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.fit import sharding as of_model
from tokendyno.backend.fit.sharding import Asked, ShardRow
from tokendyno.ui.fit.sharding import encode, split, unless_of


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bench]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    made = open_bench()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("kind", "model", "gpus", "says"),
    [
        ("tensor", "Llama-3-8B", 1, "Set GPUs to 2 or more"),
        ("tensor", "Llama-3-8B", 3, "Take one of 1, 2, 4, 8."),
        ("expert", "Llama-3-8B", 2, "it has no experts"),
        ("expert", "gpt-oss-20b", 5, "Take one of 1, 2, 4, 8."),
        ("tensor", None, 2, "The model is missing"),
        ("tensor", "Llama-3-8B", None, "GPUs is empty"),
        ("tensor", "Llama-3-8B", 2.5, "Enter a whole number"),
    ],
)
def test_what_cannot_be_split_is_one_sentence(bench: Bench, kind: str, model: object, gpus: object, says: str) -> None:
    with pytest.raises(InputError, match=says):
        split(bench, kind, model, gpus)


def test_a_model_by_its_catalogue_name_is_split_as_random_weights_of_its_shape(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ShardRow("model.norm.weight", 1, "replicated", (4096,), (4096,), 8192)
    asked: list[tuple[str, int, int]] = []

    def found(label: str, choice: str, of: Asked) -> tuple[ShardRow, ...]:
        asked.append((choice, of.tensor, of.expert))
        return (row,)

    monkeypatch.setattr(of_model, "_split", found)
    shown = encode(split(bench, "tensor", " Llama-3-8B ", 2), (" Llama-3-8B ", 2))
    assert asked == [("tensor-2", 2, 1)]
    assert "as parallel=tensor-2: 8.00 KiB" in shown and "replicated" in shown
    kept = unless_of(" Llama-3-8B ", 2, shown)
    assert [part["__type__"] for part in kept] == ["update", "update"] and "value" not in kept[0] | kept[1]
    for model, gpus in ((" Llama-3-8B ", 4), ("gpt2", 2), (None, None)):
        assert unless_of(model, gpus, shown) == ("", "")
