"""Weights with NaN or infinity are refused, whatever they are loaded into; what may be meant is not."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM

from tests.support.changed_weights import changed_copy, one_number
from tests.support.command_line import POCKET
from tests.support.quantization import PACKED
from tests.support.worker import request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.channel import QueueChannel
from tokendyno.backend.worker.load import check
from tokendyno.backend.worker.load.check import refuse_broken
from tokendyno.backend.worker.load.loader import load
from tokendyno.backend.worker.load.quantization import read_packed

MATRIX = "model.layers.1.self_attn.q_proj.weight"
BIAS, SINKS = "model.layers.1.self_attn.q_proj.bias", "model.layers.1.self_attn.sinks"
QUICK = ("none", "bnb-nf4-double", "torchao-int8", "quanto-int4")
"""A kind of scales each."""


def loaded(folder: Path | str, **plan: Any) -> Any:
    return load(LoadPlan(ModelSource("folder", path=str(folder)), **plan), QueueChannel(lambda event: None)).model


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("quantization", QUICK)
def test_one_broken_number_is_found_in_every_format(quantization: str, value: float, tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "model", {MATRIX: one_number(value)})
    with pytest.raises(InputError, match=rf"^1 of the model's \d+ weight tensors .* first {MATRIX} \("):
        loaded(folder, quantization=quantization)


@pytest.mark.parametrize("quantization", QUICK)
def test_weights_that_are_whole_load_in_every_format(quantization: str) -> None:
    loaded(POCKET, quantization=quantization)


def test_the_first_of_many_are_named_and_all_are_counted(tmp_path: Path) -> None:
    names = [f"model.layers.{n}.self_attn.k_proj.weight" for n in range(5)]
    folder = changed_copy(tmp_path / "model", {name: one_number(math.nan) for name in names})
    with pytest.raises(InputError) as error:
        loaded(folder)
    said = str(error.value)
    assert said.startswith("5 of the model's ")
    assert [name in said for name in names] == [True, True, True, False, False]
    assert said.endswith("Copy or download the weights again, or choose another model.")


def test_numbers_beyond_float16_are_told_from_broken_ones(tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "model", {MATRIX: one_number(1e5)})
    with pytest.raises(InputError, match=r"\(infinity\).* or use dtype=bfloat16 or dtype=float32: float16 ends at"):
        loaded(folder, dtype="float16")
    loaded(folder, dtype="bfloat16")


@pytest.mark.parametrize("name", [BIAS, SINKS])
@pytest.mark.parametrize(("value", "refused"), [(-math.inf, False), (math.inf, True), (math.nan, True)])
def test_minus_infinity_may_rule_a_token_or_a_sink_out(name: str, value: float, refused: bool, tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "model", {name: one_number(value, 3)})
    if not refused:
        loaded(folder)
        return
    with pytest.raises(InputError, match=f"first {name} "):
        loaded(folder)


@pytest.mark.parametrize(("value", "refused"), [(-math.inf, False), (math.inf, False), (math.nan, True)])
def test_a_buffer_may_hold_a_mask(value: float, refused: bool) -> None:
    model = nn.Linear(4, 4)
    model.dtype = torch.float32
    model.register_buffer("mask", torch.tensor([0.0, value]))
    if not refused:
        refuse_broken(model)
        return
    with pytest.raises(InputError, match=r"first mask \(NaN\)"):
        refuse_broken(model)


FORMATS = (
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.complex64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.float8_e8m0fnu,
)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("place", [0, 1, 37, 99, 100])
def test_it_is_found_at_every_place_in_every_number_format(dtype: torch.dtype, place: int) -> None:
    """In three chunks where a format is converted in chunks."""
    values = torch.ones(101, dtype=torch.complex64 if dtype.is_complex else torch.float32)
    with mock.patch.object(check, "CHUNK", 50):
        refuse_broken(_holding(values.to(dtype)))
        values[place] = math.nan
        with pytest.raises(InputError, match=r"first weight \(NaN\)"):
            refuse_broken(_holding(values.to(dtype)))


def _holding(weight: Any) -> Any:
    model = nn.Module()
    model.register_parameter("weight", nn.Parameter(weight, requires_grad=False))
    model.dtype = weight.dtype
    return model


@pytest.fixture
def packed() -> Iterator[None]:
    read_packed(True)
    yield
    read_packed(False)


SCALES = "model.layers.1.mlp.experts.down_proj_scales"


@pytest.mark.usefixtures("packed")
@pytest.mark.parametrize("value", [254, 255])
def test_a_scale_of_mxfp4_that_is_no_number_is_found_while_packed(value: int, tmp_path: Path) -> None:
    """255 is NaN in the format of the scales (OCP Microscaling, 5.4.1), 254 is the largest number."""
    folder = changed_copy(tmp_path / "model", {SCALES: one_number(value, 5)}, Path(PACKED))
    model = AutoModelForCausalLM.from_pretrained(folder)
    if value < 255:
        refuse_broken(model)
        return
    with pytest.raises(InputError, match=rf"first {SCALES.removesuffix('_scales')}\S* \(NaN\)"):
        refuse_broken(model)


def test_a_scale_of_mxfp4_that_is_no_number_is_found_once_unpacked(tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "model", {SCALES: one_number(255, 5)}, Path(PACKED))
    with pytest.raises(InputError, match=rf"first {SCALES.removesuffix('_scales')} "):
        loaded(folder, quantization="mxfp4-dequantized")


def test_a_run_of_such_a_model_fails_and_says_why(warm_bench: Bench, tmp_path: Path) -> None:
    folder = changed_copy(tmp_path / "model", {MATRIX: one_number(math.nan)})
    assert json.loads((folder / "config.json").read_text())["model_type"] == resolve(str(folder)).architecture
    run = warm_bench.wait(warm_bench.submit(request({}, model=str(folder))), 120)
    assert run.status == "failed"
    assert f"first {MATRIX} (NaN). Copy or download the weights again" in run.message
    assert warm_bench.wait(warm_bench.submit(request({}, model=str(POCKET))), 120).status == "done"
