"""What a pass over a prompt takes, counted from the code of models: as live tensors do, at lengths not fitted to."""

from typing import Any
from unittest import mock

import pytest
from transformers import AutoConfig

from tests.support.live_tensors import peaks
from tokendyno.backend.counter import workspace
from tokendyno.backend.counter.workspace import count_workspace, fitted

SHAPES: dict[str, dict[str, Any]] = {
    "bloom": {"hidden_size": 256, "n_layer": 2, "n_head": 8, "vocab_size": 2_000},
    "mpt": {"d_model": 256, "n_layers": 2, "n_heads": 8, "vocab_size": 2_000, "max_seq_len": 2_048},
    "llama4_text": {
        "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32,
        "intermediate_size": 256, "intermediate_size_mlp": 512, "vocab_size": 2_000, "num_local_experts": 4,
        "num_experts_per_tok": 1, "attention_chunk_size": 128, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    },
}  # fmt: skip


def at(factors: list[float], rows: int, tokens: int) -> float:
    by_tokens, by_rows, squares, row_squares = factors
    return (by_tokens + by_rows * rows + (squares + row_squares * rows) * tokens) * tokens


@pytest.mark.parametrize(
    "name", ["mpt", *(pytest.param(name, marks=pytest.mark.full) for name in ("bloom", "llama4_text"))]
)
def test_longer_prompts_and_larger_batches_take_what_the_factors_say(name: str) -> None:
    factors = count_workspace(AutoConfig.for_model(name, **SHAPES[name]), False)
    assert set(factors) == {"bfloat16", "float32"}
    for rows, tokens in ((1, 900), (3, 700)):
        config = AutoConfig.for_model(name, dtype="float32", **SHAPES[name])
        assert at(factors["float32"], rows, tokens) == pytest.approx(peaks(config, None, rows, tokens).prefill, rel=0.1)


def test_the_factors_are_those_of_which_the_passes_were_made() -> None:
    factors = [40.0, 300.0, 2.0, 9.0]
    lengths = (32, 64)
    taken = {(rows, tokens): int(at(factors, rows, tokens)) for rows in (1, 2) for tokens in lengths}
    assert fitted(taken, lengths) == pytest.approx(factors)
    assert fitted(dict.fromkeys(taken, 1_000), lengths)[2:] == [0.0, 0.0], "less for each token of a longer text"


def test_a_model_that_reads_token_by_token_is_counted_with_shorter_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[tuple[int, int]]()

    def factors(config: Any, encoder: bool, dtype: Any, lengths: tuple[int, int]) -> list[float]:
        tried.append(lengths)
        if lengths == workspace.LENGTHS[0]:
            raise TimeoutError
        return [1.0, 2.0, 3.0, 4.0]

    monkeypatch.setattr(workspace, "_factors", factors)
    bloom = AutoConfig.for_model("bloom", **SHAPES["bloom"])
    assert set(count_workspace(bloom, False)) == {"bfloat16", "float32"}
    assert tried == [*workspace.LENGTHS, workspace.LENGTHS[1]]


def test_a_deep_model_is_counted_with_a_few_of_its_layers() -> None:
    shape = {"num_hidden_layers": 40, "hidden_size": 64, "num_attention_heads": 4, "sliding_window": 32}
    deep = AutoConfig.for_model("gemma3_text", **shape)
    small = workspace.shortened(deep)
    assert (small.num_hidden_layers, small.layer_types) == (8, deep.layer_types[:8]) and deep.num_hidden_layers == 40
    assert workspace.shortened(small).num_hidden_layers == 8


def test_a_pass_that_takes_too_long_ends() -> None:
    with mock.patch.object(workspace, "SECONDS", 0.0):
        assert count_workspace(AutoConfig.for_model("bloom", **SHAPES["bloom"]), False) == {}
