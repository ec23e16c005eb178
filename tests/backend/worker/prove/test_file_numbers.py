"""A model's tensors are told from those of the files that it was loaded from."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from backend.worker.patch.projections import fuse
from backend.worker.prove.file_numbers import Numbers, held_to_files
from backend.worker.prove.plain_code import plain_copy
from tests.support.tiny_models import build, tiny


@pytest.fixture(scope="module", params=["llama", "gpt_oss", "gpt2"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In several files, as large checkpoints are."""
    path = tmp_path_factory.mktemp(request.param)
    tiny(request.param, dtype="bfloat16").save_pretrained(path, max_shard_size="40KB")
    assert len([*path.glob("*.safetensors")]) > 1
    return path


def held(folder: Path, model: Any) -> Numbers:
    return held_to_files(folder, model, plain_copy(model))


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_loaded_model_holds_what_its_files_hold(folder: Path, dtype: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    found = held(folder, model)
    assert found.other == () and found.compared >= len({one.data_ptr() for one in model.parameters()})
    if fuse(model):
        assert held(folder, model) == found, "fused matrices are taken apart"


def first_row(weight: Any) -> None:
    weight[0] = 0


def last_number(weight: Any) -> None:
    weight.view(-1)[-1] += 1


def fewer_bits(weight: Any) -> None:
    weight.copy_(weight.to(torch.float8_e4m3fn).to(weight.dtype))


def swapped_rows(weight: Any) -> None:
    weight.copy_(weight.flip(0))


def rows_between(weight: Any) -> None:
    """Neither the first, nor the middle one, nor the last."""
    weight[..., 1 : weight.shape[-2] // 2, :] = 0


CHANGES: list[Callable[[Any], None]] = [first_row, last_number, fewer_bits, swapped_rows, rows_between]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_another_number_is_found(folder: Path, change: Callable[[Any], None]) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="bfloat16")
    name, weight = next((n, one) for n, one in model.named_parameters() if one.ndim > 1 and ".1." in n)
    with torch.no_grad():
        change(weight)
    assert held(folder, model).other == (name,)


def test_every_expert_is_compared(tmp_path: Path) -> None:
    build("gpt_oss", dtype="bfloat16").save_pretrained(tmp_path)
    for expert in range(4):
        model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype="bfloat16")
        with torch.no_grad():
            model.model.layers[1].mlp.experts.down_proj[expert] = 0
        assert held(tmp_path, model).other == ("model.layers.1.mlp.experts.down_proj",)


def test_a_vector_is_compared_as_a_whole(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="bfloat16")
    name, weight = next((n, one) for n, one in model.named_parameters() if one.ndim == 1)
    with torch.no_grad():
        weight[len(weight) // 3] += 1
    assert held(folder, model).other == (name,)


def test_fused_matrices_that_were_put_together_in_another_order_are_found(tmp_path: Path) -> None:
    model = build("llama")
    model.save_pretrained(tmp_path)
    mlp = model.model.layers[2].mlp
    mlp.gate_proj, mlp.up_proj = mlp.up_proj, mlp.gate_proj
    fuse(model)
    assert held(tmp_path, model).other == (
        "model.layers.2.mlp.gate_proj.weight", "model.layers.2.mlp.up_proj.weight"
    )  # fmt: skip


def test_packed_tensors_other_shapes_and_names_are_left_out(tmp_path: Path) -> None:
    model = build("llama")
    model.save_pretrained(tmp_path)
    every = held(tmp_path, model).compared
    other = copy.deepcopy(model)
    other.model.layers[0].mlp.up_proj.weight = torch.nn.Parameter(torch.zeros(4, 4, dtype=torch.int8), False)
    other.model.layers[1].mlp.up_proj.weight = torch.nn.Parameter(torch.zeros(4, 4))
    assert held(tmp_path, other) == (every - 2, ())
    assert held(tmp_path / "nothing", model) == Numbers()


def test_what_transformers_computes_of_stored_tensors_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as rows in another order, under the same name."""
    from transformers.core_model_loading import Transpose, WeightConverter

    from backend.worker.prove import file_numbers

    model = build("llama")
    model.save_pretrained(tmp_path)
    every = held(tmp_path, model).compared
    made = WeightConverter(["q_proj.weight"], ["q_proj.weight"], operations=[Transpose(0, 1)])
    monkeypatch.setattr(file_numbers, "get_model_conversion_mapping", lambda model: [made])
    assert held(tmp_path, model).compared == every - 4
