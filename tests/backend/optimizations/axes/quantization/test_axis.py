"""What packing asks for: every rule as a table, and held against what transformers really does on this machine."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, QuantoConfig, TorchAoConfig

from tests.support.machines import CPU, facts
from tests.support.quantization import NF4, PACKED, judge, llama, packed_kinds
from tokendyno.backend import hardware
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.quantization.axis import AXIS
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find
from tokendyno.backend.worker.witness.quantization import _dense_experts, _magnitudes, kind_of


@pytest.mark.filterwarnings("ignore")
def test_what_the_checkpoint_had_packed_is_nones(tmp_path: Path) -> None:
    """Beside the same weights packed while they are loaded."""
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    packed.save_pretrained(tmp_path)
    plan = judge(replace(facts("random:Qwen3-0.6B"), random=False, quantization="bitsandbytes")).plan
    kept = find("quantization", Observation(AutoModelForCausalLM.from_pretrained(tmp_path), None, plan))
    made = find("quantization", Observation(packed, None, plan))
    assert (kept.effective, made.effective) == ("none", "bnb-nf4")
    assert "as the checkpoint holds them" in kept.proof and "matrices in bnb-nf4" in kept.proof


# --- the same, asked of transformers --------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [lambda: BitsAndBytesConfig(**NF4), lambda: QuantoConfig(weights="int8"), lambda: TorchAoConfig(_int8())],
    ids=["bitsandbytes", "quanto", "torchao"],
)
def test_transformers_refuses_to_pack_a_packed_checkpoint_or_a_gguf_file(settings: Callable[[], Any]) -> None:
    from transformers.quantizers.auto import get_hf_quantizer

    with pytest.raises(ValueError, match="quantized with Mxfp4Config"):
        AutoModelForCausalLM.from_pretrained(PACKED, quantization_config=settings())
    with pytest.raises(ValueError, match="cannot combine Quantization"):
        get_hf_quantizer(LlamaConfig(), settings(), None, True, {}, gguf_file="a.gguf")


def _int8() -> Any:
    from torchao.quantization import Int8WeightOnlyConfig

    return Int8WeightOnlyConfig(set_inductor_config=False)


def test_experts_are_left_alone_and_attention_is_not() -> None:
    model = AutoModelForCausalLM.from_pretrained(
        resolve("pocket").source.path, quantization_config=BitsAndBytesConfig(**NF4)
    )
    assert packed_kinds(model) == ["bnb-nf4"] * 4 * 8
    assert model.model.layers[0].mlp.experts.down_proj.dtype is torch.bfloat16


needs_avx512_bf16 = pytest.mark.skipif(
    not hardware.detect().avx512_bf16, reason="this CPU has no AVX512-BF16: bitsandbytes leaves its weights as they are"
)


@pytest.fixture(scope="module")
def knows_bf16() -> Iterator[bool]:
    from bitsandbytes.functional import has_avx512bf16

    yield bool(has_avx512bf16())


def test_the_cpu_is_read_as_bitsandbytes_reads_it(knows_bf16: bool) -> None:
    assert hardware.detect().avx512_bf16 == knows_bf16


@needs_avx512_bf16
def test_the_second_level_of_scales_is_gone_after_one_step() -> None:
    model, again = llama()
    settings = BitsAndBytesConfig(**NF4, bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16)
    packed = type(model).from_pretrained(None, quantization_config=settings, **again)
    assert set(packed_kinds(packed)) == {"bnb-nf4-double"}
    with torch.inference_mode():
        packed(torch.tensor([[1, 2, 3]]))
    assert set(packed_kinds(packed)) == {"bnb-nf4"}


@needs_avx512_bf16
@pytest.mark.parametrize(("width", "fits"), [(64, True), (48, False)])
def test_four_bits_on_this_cpu_need_even_sizes(width: int, fits: bool) -> None:
    model, again = llama(intermediate_size=width)
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    matrices = replace(facts("random:Qwen3-0.6B").matrices[1], rows=width, columns=64)
    given = replace(facts("random:Qwen3-0.6B"), matrices=(matrices,))
    assert (judge(given, replace(CPU, avx512_bf16=True), quantization="bnb-nf4").blocked == ()) is fits
    with torch.inference_mode():
        if fits:
            packed(torch.tensor([[1, 2, 3]]))
            return
        with pytest.raises((AssertionError, RuntimeError)):
            packed(torch.tensor([[1, 2, 3]]))


def mixture(weight: torch.Tensor, *names: str) -> Any:
    """A module whose parameters are `down_proj` and others of these names."""
    module = torch.nn.Module()
    module.register_parameter("down_proj", torch.nn.Parameter(weight))
    for name in names:
        module.register_parameter(name, torch.nn.Parameter(torch.zeros(1)))
    return module


def test_experts_are_told_by_their_dimensions_and_their_bias() -> None:
    stacked, flat = torch.zeros(2, 64, 3), torch.zeros(2, 64)
    model = torch.nn.ModuleList(
        [
            mixture(stacked, "gate_up_proj_bias"),
            mixture(stacked),
            mixture(flat, "gate_up_proj_bias"),
            torch.nn.Linear(2, 2),
        ]
    )
    assert [weight.shape for weight in _dense_experts(model)] == [stacked.shape]


def test_magnitudes_are_counted_in_blocks_of_32_along_the_inputs() -> None:
    """Of the last expert; what is left beyond whole blocks is not looked at, and a sign makes no other magnitude."""
    weight = torch.zeros(2, 70, 5)
    assert _magnitudes(weight) == 1
    weight[0] = torch.rand(70, 5)
    weight[1, 64:] = torch.rand(6, 5)
    assert _magnitudes(weight) == 1
    weight[1, :4, 2] = torch.tensor([1.0, -1.0, 2.0, 3.0])  # and 0
    assert _magnitudes(weight) == 4
    weight[1, 32:38, 2] = torch.arange(10.0, 16.0)
    assert _magnitudes(weight) == 7


@pytest.mark.parametrize(("magnitudes", "effective"), [(8, "mxfp4-dequantized"), (9, "none")])
def test_experts_with_more_magnitudes_than_a_4_bit_float_are_not_from_mxfp4(magnitudes: int, effective: str) -> None:
    weight = (torch.arange(64.0) % magnitudes).view(1, 64, 1)
    model = torch.nn.ModuleList([mixture(weight, "gate_up_proj_bias")])
    plan = Plan(LoadPlan(ModelSource("random"), quantization="mxfp4-dequantized"))
    assert find("quantization", Observation(model, None, plan)).effective == effective


@pytest.mark.parametrize(("revision", "argument"), [("refs/pr/1", ', revision="refs/pr/1"'), ("", "")])
def test_a_script_reads_the_dtype_of_the_revision_that_it_loads(revision: str, argument: str) -> None:
    script = Script()
    source = ModelSource("hub", repo="org/name", revision=revision)
    AXIS.write(script, Plan(LoadPlan(source, quantization="bnb-nf4")))
    assert f"AutoConfig.from_pretrained(MODEL{argument}).dtype" in "".join(script.prepare)


@pytest.mark.parametrize(
    ("name", "device", "dtype", "stays", "casts"),
    [
        ("bnb-nf4", "cpu", "auto", True, False),
        ("bnb-nf4", "cuda", "auto", False, False),
        ("torchao-int8", "cpu", "float16", False, False),
        ("mxfp4-dequantized", "cpu", "auto", False, False),
        ("mxfp4-dequantized", "cpu", "bfloat16", False, False),
        ("mxfp4-dequantized", "cpu", "float16", False, True),
    ],
)
def test_a_script_loads_where_and_as_the_plan_says(
    name: str, device: Any, dtype: Any, stays: bool, casts: bool
) -> None:
    """bitsandbytes would take a GPU if there is one, and transformers dequantizes MXFP4 to bfloat16."""
    script = Script()
    source = ModelSource("folder", path="/m")
    AXIS.write(script, Plan(LoadPlan(source, device=device, dtype=dtype, quantization=name)))
    assert (script.load.get("device_map") == "DEVICE") is stays
    assert ("cast_experts(model)" in script.patch) is casts


def fake(name: str, module: str = __name__, **fields: Any) -> Any:
    return type(name, (), {"__module__": module, **fields})()


def state(code: tuple[float, ...], **more: Any) -> Any:
    return SimpleNamespace(code=torch.tensor(code), **more)


NF4_CODE, FP4_CODE = (-1.0, -0.6961928), (0.0, 0.0052083)
"""The first two of the 16 values (bitsandbytes 0.50: functional.get_4bit_type)."""


@pytest.mark.parametrize(
    ("weight", "kind"),
    [
        (fake("Int8Params", dtype=torch.int8), "bnb-int8"),
        (fake("Int8Params", dtype=torch.bfloat16), None),  # on the CPU until it is moved
        (fake("Params4bit", quant_state=None), None),
        (fake("Params4bit", quant_state=state(NF4_CODE)), "bnb-nf4"),
        (fake("Params4bit", quant_state=state(FP4_CODE)), "bnb-fp4"),
        (fake("Params4bit", quant_state=state(NF4_CODE, state2=object())), "bnb-nf4-double"),
        (fake("Params4bit", quant_state=state(FP4_CODE, state2=object())), "bnb-fp4-double"),
        (torch.zeros(4), None),
    ],
)
def test_a_weight_is_known_by_its_class_and_its_table(weight: Any, kind: str | None) -> None:
    assert kind_of(weight) == kind


@pytest.mark.parametrize(
    ("library", "dtype", "kind"),
    [
        ("torchao.quantization.linear", torch.int8, "torchao-int8"),
        ("torchao.float8", torch.float8_e4m3fn, "torchao-fp8"),
        ("torchao.prototype", torch.int32, "torchao-int4"),
        ("torchao.prototype", torch.uint8, "torchao-int4"),
        ("optimum.quanto.tensor", torch.int8, "quanto-int8"),
        ("optimum.quanto.tensor", torch.int16, "quanto-int4"),
        ("else.where", torch.int8, "unknown-int8"),
        ("torchao.new", torch.int64, "torchao-torch.int64"),
    ],
)
def test_a_packed_tensor_is_known_by_its_library_and_its_largest_part(library: str, dtype: Any, kind: str) -> None:
    parts = {"scale": torch.zeros(2), "data": torch.zeros(64, dtype=dtype), "zero": torch.zeros(2)}
    packed = fake("Packed", library, **parts, __tensor_flatten__=lambda self: (list(parts), None))
    assert kind_of(packed) == kind


@pytest.mark.filterwarnings("ignore")
def test_each_packed_matrix_is_counted() -> None:
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    with torch.inference_mode():
        packed(torch.tensor([[1, 2, 3]]))  # on some CPUs weights are repacked then
    packed.beside = torch.nn.MultiheadAttention(8, 2)  # multiplies by its output matrix itself, which stays dense
    plan = Plan(LoadPlan(ModelSource("random"), quantization="bnb-nf4", packed=8))
    intact = find("quantization", Observation(packed, None, plan))
    assert (intact.effective, intact.reached, intact.expected) == ("bnb-nf4", 7, 7)
    assert intact.proof.startswith("7 of 7 matrices in bnb-nf4: ")


@pytest.mark.parametrize(("choice", "packed"), [("none", 0), ("bnb-nf4", 28 * 7)])
def test_the_plan_counts_the_matrices_that_will_be_packed(choice: str, packed: int) -> None:
    assert judge(facts("random:Qwen3-0.6B"), quantization=choice).plan.load.packed == packed


@pytest.mark.parametrize(("planned", "effective"), [("mxfp4", "mxfp4-dequantized"), ("none", "none")])
def test_coarse_experts_were_dequantized_only_where_the_plan_has_mxfp4(planned: Any, effective: str) -> None:
    """Dense ones whose values happen to be few are none of a run that asked for no MXFP4."""
    model = torch.nn.ModuleList([mixture((torch.arange(64.0) % 8).view(1, 64, 1), "gate_up_proj_bias")])
    found = find("quantization", Observation(model, None, Plan(LoadPlan(ModelSource("random"), quantization=planned))))
    assert (found.effective, found.reached) == (effective, 1 if effective != "none" else None)


@pytest.mark.parametrize(("dense", "counted"), [(0, (4, 4)), (1, (4, 5))])
def test_of_experts_in_mxfp4_those_that_are_dense_are_missed(dense: int, counted: tuple[int, int]) -> None:
    def packed() -> Any:
        module = torch.nn.Module()
        for name in ("gate_up_proj", "down_proj"):
            for part, width in (("blocks", 16), ("scales", 1)):
                codes = torch.nn.Parameter(torch.zeros(2, 4, width, dtype=torch.uint8), requires_grad=False)
                module.register_parameter(f"{name}_{part}", codes)
        return module

    beside = [mixture(torch.rand(2, 64, 3), "gate_up_proj_bias") for _ in range(dense)]
    model = torch.nn.ModuleList([packed(), packed(), torch.nn.Linear(4, 4), *beside])
    model.dtype = torch.float32
    found = find("quantization", Observation(model, None, Plan(LoadPlan(ModelSource("random"), quantization="mxfp4"))))
    assert (found.effective, found.reached, found.expected) == ("mxfp4", *counted)
    assert f"4 of {counted[1]} matrices in mxfp4: {2 * 2 * 2 * 4 * 17:,} bytes with scales" in found.proof


def test_without_a_plan_for_it_packed_weights_are_named_and_not_counted() -> None:
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    found = find("quantization", Observation(packed, None, Plan(LoadPlan(ModelSource("random")))))
    assert (found.effective, found.reached, found.expected) == ("bnb-nf4", None, None)
    assert found.proof.startswith("7 matrices in bnb-nf4: ")
