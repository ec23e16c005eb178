"""When dense weights can be quantized, and how a checkpoint that is already quantized is treated."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, Mxfp4Config

from tests.support.machines import CPU, H200, facts, settled
from tests.support.quantization import DENSE_ONLY, PACKED, gpu, judge, of, packed_kinds, without
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.quantization.rules import LATENTS_BY_HEAD
from tokendyno.backend.optimizations.routed import KERNELS as MXFP4_KERNELS

# --- dense weights --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "prefix"), [("bitsandbytes", "bnb"), ("torchao", "torchao"), ("optimum-quanto", "quanto")]
)
def test_a_missing_package_is_named_with_its_install_line_and_stops_only_its_own(package: str, prefix: str) -> None:
    for choice in DENSE_ONLY:
        reasons = [v.reason for v in judge("random:Qwen3-0.6B", without(package), quantization=choice).blocked]
        assert any(package in reason and "pip install" in reason for reason in reasons) == choice.startswith(prefix)


@pytest.mark.parametrize(
    ("machine", "choices", "model", "level", "fix"),
    [
        (gpu(8, 6), {"quantization": "torchao-fp8"}, "random:Qwen3-0.6B", "note", {"quantization": "torchao-int8"}),
        (
            gpu(8, 6),
            {"quantization": "torchao-fp8", "compile": "default", "cache": "static"},
            "random:Qwen3-0.6B",
            "blocked",
            {"quantization": "torchao-int8"},
        ),
        (
            gpu(7, 0),
            {"quantization": "bnb-int8", "dtype": "float16"},
            "random:gpt2",
            "blocked",
            {"quantization": "bnb-nf4"},
        ),
        (CPU, {"quantization": "torchao-int4"}, "random:Qwen3-0.6B", "blocked", {"quantization": "torchao-int8"}),
        (
            H200,
            {"quantization": "torchao-int4", "dtype": "float16"},
            "random:Llama-3-8B",
            "blocked",
            {"dtype": "bfloat16"},
        ),
        (H200, {"quantization": "torchao-int4"}, "random:gpt-oss-20b", "note", {}),
        (H200, {"quantization": "torchao-int8"}, "random:gpt2", "blocked", {"quantization": "bnb-int8"}),
        (H200, {"quantization": "bnb-nf4"}, "random:gpt-oss-20b", "note", {}),
    ],
)
def test_what_each_needs(
    machine: Machine, choices: dict[str, str], model: str, level: str, fix: dict[str, str]
) -> None:
    verdicts = of(judge(model, machine, **choices))
    assert {v.level for v in verdicts} == ({level} if level else set()), verdicts
    assert not level or verdicts[0].fix == fix


@pytest.mark.parametrize("avx512_bf16", [True, False])
def test_double_quantization_is_single_on_a_cpu_that_lays_weights_out_anew(avx512_bf16: bool) -> None:
    machine = replace(CPU, avx512_bf16=avx512_bf16)
    for table in ("nf4", "fp4"):
        checked = judge("random:Qwen3-0.6B", machine, quantization=f"bnb-{table}-double")
        assert checked.planned["quantization"] == (f"bnb-{table}" if avx512_bf16 else f"bnb-{table}-double")
        assert len(of(checked, "fallback")) == avx512_bf16
    on_gpu = judge("random:Qwen3-0.6B", replace(H200, avx512_bf16=True), quantization="bnb-nf4-double")
    assert of(on_gpu) == []


def test_packing_of_a_gguf_file_is_refused_and_its_unpacking_is_amber() -> None:
    given = replace(facts("random:gpt2"), random=False, source=ModelSource("gguf", path="/models/a.gguf"))
    (verdict,) = of(judge(given))
    assert (verdict.level, verdict.becomes, judge(given).replaced) == ("fallback", "none", [])
    assert "dequantized" in verdict.reason
    for choice in DENSE_ONLY:
        assert {"quantization": "none"} in [v.fix for v in of(judge(given, H200, quantization=choice), "blocked")]


def test_on_a_cpu_llm_int8_is_refused_where_a_layer_reads_latents_of_four_dimensions() -> None:
    torch, bnb, transformers = (pytest.importorskip(name) for name in ("torch", "bitsandbytes", "transformers"))
    sources = Path(transformers.__file__).parent.glob("models/*/modeling_*.py")
    reads = {s.parent.name for s in sources if "self.kv_b_proj(kv_nope).view" in s.read_text(encoding="utf-8")}
    assert reads == {name.removesuffix("_text") for name in LATENTS_BY_HEAD}

    layer = bnb.nn.Linear8bitLt(16, 24, bias=False, has_fp16_weights=False).to("cpu").eval()
    with torch.no_grad():
        assert layer(torch.ones(1, 5, 16)).shape == (1, 5, 24)
        with pytest.raises(RuntimeError, match="must match"):
            layer(torch.ones(1, 1, 5, 16))

    latents = replace(facts("random:Qwen3-0.6B"), architecture="deepseek_v3")
    (refused,) = settled(latents, {"quantization": "bnb-int8"}, CPU).blocked
    assert dict(refused.fix) == {"quantization": "torchao-int8"}
    assert not settled(latents, dict(refused.fix), CPU).blocked
    assert not settled(latents, {"quantization": "bnb-int8"}, H200).blocked


# --- MXFP4 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["none", "mxfp4"])
@pytest.mark.parametrize(
    ("machine", "choices", "says"),
    [
        (H200, {}, ""),
        (gpu(7, 5), {}, ""),
        (replace(H200, hub_offline=True, hub_kernels=(MXFP4_KERNELS,)), {}, ""),
        (CPU, {}, "NVIDIA GPUs only"),
        (gpu(7, 0), {}, "capability 7.5"),
        (replace(H200, hub_offline=True), {"experts": "eager"}, "LOCAL_KERNELS"),
        (H200, {"experts": "eager"}, "wrong numbers"),
        (replace(gpu(7, 5), hub_offline=True), {}, "LOCAL_KERNELS"),
    ],
)
def test_a_packed_checkpoint_stays_packed_where_its_kernels_run(
    choice: str, machine: Machine, choices: dict[str, str], says: str
) -> None:
    checked = judge(PACKED, machine, quantization=choice, **choices)
    fallbacks = of(checked, "fallback")
    assert [says in verdict.reason for verdict in fallbacks] == ([True] if says else [])
    assert checked.requested["quantization"] == choice
    assert checked.planned["quantization"] == ("mxfp4-dequantized" if says else "mxfp4")
    assert checked.plan.load.quantization == ("mxfp4-dequantized" if says else "none")
    assert all(verdict.fix == {"quantization": "mxfp4-dequantized"} for verdict in fallbacks)
    settled = judge(PACKED, machine, quantization="mxfp4-dequantized", **choices)
    assert (of(settled) == [] and settled.memory.weights == checked.memory.weights) or not says


@pytest.mark.parametrize("choice", ["none", "mxfp4"])
def test_our_kernels_stand_in_where_the_hubs_cannot_be_had(choice: str) -> None:
    offline = replace(H200, hub_offline=True)
    checked = judge(PACKED, offline, quantization=choice)
    assert (checked.planned["quantization"], checked.planned["experts"]) == ("mxfp4", "triton")
    assert checked.plan.load.experts == "triton"
    (note,) = of(checked)
    assert note.level == "note" and "experts=triton" in note.reason
    requested = judge(PACKED, offline, quantization=choice, experts="triton")
    assert of(requested) == [] and requested.plan == checked.plan
    for machine in (gpu(8, 0), gpu(10, 0)):
        assert judge(PACKED, machine, quantization=choice).plan.load.experts is None, "the Hub's come first"


@pytest.mark.parametrize(("width", "own"), [(96, True), (128, False), (2880, False)])
def test_our_kernels_stand_in_on_hopper_for_experts_whose_width_the_hubs_compute_wrongly(width: int, own: bool) -> None:
    wide = tuple(replace(m, columns=width) if m.kind == "expert" else m for m in facts(PACKED).matrices)
    checked = judge(replace(facts(PACKED), matrices=wide), H200, quantization="mxfp4")
    assert (checked.planned["quantization"], checked.plan.load.experts) == ("mxfp4", "triton" if own else None)
    assert [verdict.level for verdict in of(checked)] == ["note"] * own


def test_transformers_unpacks_mxfp4_on_a_cpu_and_takes_no_dense_model_for_it() -> None:
    if torch.cuda.is_available():
        pytest.skip("this asks a CPU")
    model = AutoModelForCausalLM.from_pretrained(PACKED)
    assert packed_kinds(model) == []
    assert model.model.layers[0].mlp.experts.down_proj.dtype is torch.bfloat16
    with pytest.raises(ValueError, match="MXFP4"):
        AutoModelForCausalLM.from_pretrained(resolve("pocket").source.path, quantization_config=Mxfp4Config())


def test_unpacked_experts_are_bfloat16_whatever_the_dtype() -> None:
    """What the worker mends after loading."""
    model = AutoModelForCausalLM.from_pretrained(
        PACKED, dtype=torch.float32, quantization_config=Mxfp4Config(dequantize=True)
    )
    dtypes = {weight.dtype for name, weight in model.named_parameters() if ".experts." in name and "bias" not in name}
    assert dtypes == {torch.bfloat16}
    assert model.lm_head.weight.dtype is torch.float32


@pytest.mark.parametrize(("machine", "dense"), [(CPU, True), (gpu(8, 6), True), (gpu(8, 9), False), (H200, False)])
def test_fp8_weights_are_said_to_become_dense_where_nothing_computes_in_fp8(machine: Machine, dense: bool) -> None:
    saved = replace(facts("random:Qwen3-0.6B"), quantization="fp8")
    assert any("makes these weights dense" in verdict.reason for verdict in of(judge(saved, machine), "note")) is dense
