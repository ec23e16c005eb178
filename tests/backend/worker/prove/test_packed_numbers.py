"""Packed matrices are told from those that hold other numbers than their files."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torchao.quantization import Int8WeightOnlyConfig, quantize_
from transformers.pytorch_utils import Conv1D

from backend.worker.patch.projections import fuse
from backend.worker.prove.packed_numbers import packed_beside_files
from backend.worker.prove.plain_code import plain_copy
from tests.support.tiny_models import build

PARTS = [f"self_attn.{name}_proj" for name in "qkvo"] + [f"mlp.{name}_proj" for name in ("gate", "up", "down")]
EVERY = {f"model.layers.{layer}.{part}" for layer in range(4) for part in PARTS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llama")
    build("llama").save_pretrained(path)
    return path


def packed() -> Any:
    model = build("llama")
    quantize_(model.model.layers, Int8WeightOnlyConfig())
    return model


def found(folder: Path, model: Any) -> dict[str, float]:
    return packed_beside_files(folder, model, plain_copy(model))


@pytest.mark.parametrize("fused", [False, True])
def test_packed_matrices_multiply_as_their_files_do_up_to_roundings(folder: Path, fused: bool) -> None:
    model = packed()
    assert fuse(model) if fused else True
    apart = found(folder, model)
    assert apart.keys() == EVERY
    assert min(apart.values()) > 1e-4 and max(apart.values()) < 0.03


def test_dense_matrices_are_none_of_them(folder: Path) -> None:
    model = build("llama")
    assert found(folder, model) == {}
    quantize_(model.model.layers[2].mlp, Int8WeightOnlyConfig())
    assert found(folder, model).keys() == {name for name in EVERY if "layers.2.mlp" in name}


def test_what_was_a_conv1d_is_stored_the_other_way_round(folder: Path) -> None:
    model = packed()
    model.model.layers[0].self_attn.q_proj.source_cls = Conv1D  # as transformers' bitsandbytes leaves it in GPT-2
    assert EVERY - found(folder, model).keys() == {"model.layers.0.self_attn.q_proj"}


def test_other_scales_numbers_and_layers_are_far(folder: Path) -> None:
    model = packed()
    scaled, swapped = model.model.layers[1].self_attn.q_proj, model.model.layers[2].mlp
    with torch.no_grad():
        scaled.weight.scale.mul_(1.5)
    swapped.up_proj, swapped.gate_proj = swapped.gate_proj, swapped.up_proj
    half = model.model.layers[3].mlp.down_proj
    plain = half.forward
    half.forward = lambda x: plain(x) * (torch.arange(half.out_features) % 2)
    apart = found(folder, model)
    assert apart.pop("model.layers.1.self_attn.q_proj") == pytest.approx(0.5, abs=0.05)
    assert min(apart.pop(f"model.layers.2.mlp.{name}_proj") for name in ("gate", "up")) > 0.5
    assert apart.pop("model.layers.3.mlp.down_proj") > 0.3
    assert max(apart.values()) < 0.03


def test_a_bias_is_no_part_of_the_product(tmp_path: Path) -> None:
    model = build("gpt_oss")
    with torch.no_grad():
        for layer in model.model.layers:
            layer.self_attn.q_proj.bias.fill_(5.0)
    model.save_pretrained(tmp_path)
    for layer in model.model.layers:
        quantize_(layer.self_attn, Int8WeightOnlyConfig())
    apart = found(tmp_path, model)
    assert len(apart) == 16 and max(apart.values()) < 0.03
