"""How each parameter is split: transformers' own sharding of a model without memory."""

import json
from pathlib import Path

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.sharding import ShardRequest, sharding, sharding_cells
from tokendyno.backend.models import resolve
from tokendyno.backend.predict.parallel import shard
from tokendyno.backend.predict.weights import weight_bytes
from tokendyno.backend.worker import sharding as worker


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "choice", "tensor", "expert"),
    [
        pytest.param("random:Llama-3-8B", "tensor-2", 2, 1, marks=pytest.mark.full),
        ("random:gpt-oss-20b", "expert-4", 4, 4),
    ],
)
def test_the_rows_add_up_to_what_is_predicted_for_a_rank(model: str, choice: str, tensor: int, expert: int) -> None:
    facts = resolve(model)
    split = sharding(facts, choice)
    assert split.rank_bytes == weight_bytes(shard(facts, tensor, expert)) - facts.buffer_bytes
    rows = {row.name: row for row in split.rows}
    query = rows["model.layers.*.self_attn.q_proj.weight"]
    assert query.count == facts.layers and query.local == (query.whole[0] // tensor, facts.hidden)
    assert query.how.startswith("column-parallel")
    assert rows["model.layers.*.self_attn.o_proj.weight"].how.startswith("row-parallel")
    assert rows["model.norm.weight"].how == "replicated"
    if expert > 1:
        experts = rows["model.layers.*.mlp.experts.down_proj"]
        assert experts.how == "whole experts" and experts.local[0] == facts.experts // expert
        assert rows["model.layers.*.self_attn.sinks"].how == "by heads"
    assert "128,256 x 4,096" in sharding_cells(split.rows[0]) or expert > 1


@pytest.mark.full
def test_an_architecture_that_no_arm_splits_is_shown_as_transformers_splits_it(tmp_path: Path) -> None:
    shape = {"dtype": "float32", "vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    granite = {"model_type": "granite", "num_key_value_heads": 2, "intermediate_size": 128}
    (tmp_path / "config.json").write_text(json.dumps(shape | granite))
    split = sharding(resolve(f"random:{tmp_path}"), "tensor-2")
    assert split.heading.endswith("no arm runs so: granite is not modeled here")
    rows = {row.name: row for row in split.rows}
    assert rows["model.layers.*.mlp.down_proj.weight"].local == (64, 64)
    with pytest.raises(ValueError, match="it has no parallel plan for falcon"):
        worker.rows(ShardRequest(json.dumps(shape | {"model_type": "falcon"}), "float32", 2, 1))


@pytest.mark.parametrize(
    ("model", "choice", "says"),
    [
        ("random:Llama-3-8B", "tensor-100", "from 1 to 64"),
        ("random:Llama-3-8B", "off", "Give tensor-N or expert-N"),
        ("random:Llama-3-8B", "tensor-1", "splits no parameter"),
        ("random:Llama-3-8B", "device-map-2", "splits no parameter"),
        ("random:Llama-3-8B", "tensor-3", "Take one of 1, 2, 4, 8."),
        ("random:Llama-3-8B", "expert-2", "it has no experts"),
        ("random:gpt2", "tensor-2", "no parallel plan for gpt2"),
    ],
)
def test_what_splits_nothing_or_not_evenly_is_refused(model: str, choice: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        sharding(resolve(model), choice)
