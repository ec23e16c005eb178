"""What packing asks for: every rule as a table, and held against what transformers really does on this machine."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig, QuantoConfig, TorchAoConfig

from tests.support.machines import CPU, facts
from tests.support.quantization import NF4, PACKED, judge, llama, packed_kinds
from tokendyno.backend import hardware
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.quantization import (
    Quantization,
)
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script

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


def test_the_cpu_is_read_as_bitsandbytes_reads_it() -> None:
    from bitsandbytes.functional import has_avx512bf16

    assert hardware.detect().avx512_bf16 == bool(has_avx512bf16())


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


@pytest.mark.parametrize(("revision", "argument"), [("refs/pr/1", ', revision="refs/pr/1"'), ("", "")])
def test_a_script_reads_the_dtype_of_the_revision_that_it_loads(revision: str, argument: str) -> None:
    script = Script()
    source = ModelSource("hub", repo="org/name", revision=revision)
    Quantization().write(script, Plan(LoadPlan(source, quantization="bnb-nf4")))
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
    Quantization().write(script, Plan(LoadPlan(source, device=device, dtype=dtype, quantization=name)))
    assert (script.load.get("device_map") == "DEVICE") is stays
    assert ("cast_experts(model)" in script.patch) is casts


@pytest.mark.parametrize(("choice", "packed"), [("none", 0), ("bnb-nf4", 28 * 7)])
def test_the_plan_counts_the_matrices_that_will_be_packed(choice: str, packed: int) -> None:
    assert judge(facts("random:Qwen3-0.6B"), quantization=choice).plan.load.packed == packed


SETTINGS = {
    "none": "",
    "bnb-int8": "BitsAndBytesConfig(load_in_8bit=True)",
    "bnb-nf4": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float16)',
    "bnb-nf4-double": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", '
    "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float16)",
    "bnb-fp4": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="fp4", bnb_4bit_compute_dtype=torch.float16)',
    "bnb-fp4-double": 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="fp4", '
    "bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float16)",
    "torchao-int8": "TorchAoConfig(Int8WeightOnlyConfig(set_inductor_config=False))",
    "torchao-fp8": "TorchAoConfig(Float8WeightOnlyConfig(set_inductor_config=False))",
    "torchao-int4": 'TorchAoConfig(Int4WeightOnlyConfig(group_size=128, int4_packing_format="tile_packed_to_4d", '
    "set_inductor_config=False))",
    "quanto-int8": 'QuantoConfig(weights="int8")',
    "quanto-int4": 'QuantoConfig(weights="int4")',
    "mxfp4": "Mxfp4Config()",
    "mxfp4-dequantized": "Mxfp4Config(dequantize=True)",
}


def prepared(name: str, source: ModelSource) -> Script:
    script = Script()
    Quantization().write(script, Plan(LoadPlan(source, device="cuda", dtype="float16", quantization=name)))
    return script


@pytest.mark.parametrize("name", SETTINGS)
def test_a_script_quantizes_with_these_settings(name: str) -> None:
    script = prepared(name, ModelSource("folder", path="/m"))
    said = "".join("".join(script.prepare).split()).replace(",)", ")")
    wanted = "".join(SETTINGS[name].split())
    assert said == (f"quantization_config={wanted}" if wanted else "")
    assert ("quantization_config" in script.load) is bool(wanted)


def test_every_choice_has_its_settings() -> None:
    assert list(SETTINGS) == [choice.name for choice in Quantization.choices]


def test_a_gguf_file_is_dequantized_whatever_kernels_the_hub_has() -> None:
    script = prepared("none", ModelSource("gguf", path="/m.gguf"))
    assert script.prepare == ["quantization_config = GgufConfig(dequantize=True)"]


@pytest.mark.parametrize(
    ("name", "kind", "random"),
    [
        ("mxfp4", "random", True),
        ("mxfp4-dequantized", "random", True),
        ("mxfp4", "folder", False),
        ("bnb-int8", "random", False),
    ],
)
def test_only_random_experts_are_made_in_mxfp4(name: str, kind: str, random: bool) -> None:
    script = prepared(name, ModelSource(kind, path="/m", config_json="{}"))  # type: ignore[arg-type]
    assert ("experts" in script.state) is random and bool(script.empty) is random
