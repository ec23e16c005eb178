"""What packing asks for: every rule as a table, and held against what transformers really does on this machine."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    BitsAndBytesConfig,
    LlamaConfig,
    Mxfp4Config,
    QuantoConfig,
    TorchAoConfig,
)

from backend import hardware
from backend.arms import make_config
from backend.config import Workload
from backend.hardware import Machine
from backend.models import PRESETS_DIR, ModelFacts, resolve
from backend.optimizations import Seen
from backend.optimizations.mxfp4_rules import MXFP4_KERNELS
from backend.optimizations.quantization import AXIS, _kind
from backend.plan import ModelSource
from backend.records import Verdict
from backend.rules import Checked, check
from tests.facts import CPU, H200, facts

PACKED = str(PRESETS_DIR / "models" / "pocket-mxfp4")
EVERY = [choice.name for choice in AXIS.choices]
DENSE_ONLY = [name for name in EVERY if name.startswith(("bnb", "torchao", "quanto"))]
NF4 = {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}


def judge(model: str | ModelFacts, machine: Machine = CPU, /, **choices: str) -> Checked:
    given = facts(model) if isinstance(model, str) else model
    return check(make_config("m", choices), given, machine, Workload(prompt="Once", max_new_tokens=8))


def of(checked: Checked, level: str = "") -> list[Verdict]:
    return [v for v in checked.verdicts if v.axis == "quantization" and (not level or v.level == level)]


def gpu(*capability: int, **more: Any) -> Machine:
    return replace(H200, gpus=(replace(H200.gpus[0], capability=capability),), **more)  # type: ignore[arg-type]


def without(package: str, machine: Machine = H200) -> Machine:
    return replace(machine, packages=tuple(pair for pair in machine.packages if pair[0] != package))


# --- dense weights --------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", DENSE_ONLY)
def test_a_plain_model_on_a_current_gpu_is_packed_as_asked(choice: str) -> None:
    checked = judge("random:Llama-3-8B", H200, quantization=choice)
    assert checked.blocked == () and of(checked, "fallback") == []
    assert checked.planned["quantization"] == checked.plan.load.quantization == choice


@pytest.mark.parametrize("choice", [name for name in EVERY if not name.startswith(("torchao-int4", "mxfp4"))])
def test_a_cpu_does_all_but_what_needs_a_gpu(choice: str) -> None:
    assert judge("random:Qwen3-0.6B", quantization=choice).blocked == ()


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
        (gpu(8, 9), {"quantization": "torchao-fp8"}, "random:Qwen3-0.6B", "", {}),
        (
            gpu(8, 6), {"quantization": "torchao-fp8", "compile": "default", "cache": "static"}, "random:Qwen3-0.6B",
            "blocked", {"quantization": "torchao-int8"},
        ),
        (
            gpu(7, 0), {"quantization": "bnb-int8", "dtype": "float16"}, "random:gpt2", "blocked",
            {"quantization": "bnb-nf4"},
        ),
        (gpu(7, 5), {"quantization": "bnb-int8", "dtype": "float16"}, "random:gpt2", "", {}),
        (gpu(7, 0), {"quantization": "bnb-nf4"}, "random:gpt2", "", {}),
        (gpu(5, 2), {"quantization": "bnb-nf4"}, "random:gpt2", "blocked", {"quantization": "none"}),
        (gpu(7, 5), {"quantization": "torchao-int4"}, "random:Qwen3-0.6B", "blocked", {"quantization": "torchao-int8"}),
        (CPU, {"quantization": "torchao-int4"}, "random:Qwen3-0.6B", "blocked", {"quantization": "torchao-int8"}),
        (
            H200, {"quantization": "torchao-int4", "dtype": "float16"}, "random:Llama-3-8B", "blocked",
            {"dtype": "bfloat16"},
        ),
        (H200, {"quantization": "torchao-int4"}, "random:gpt-oss-20b", "note", {}),
        (H200, {"quantization": "torchao-int8"}, "random:gpt2", "blocked", {"quantization": "bnb-int8"}),
        (H200, {"quantization": "quanto-int4"}, "random:gpt2", "blocked", {"quantization": "bnb-int8"}),
        (H200, {"quantization": "bnb-nf4"}, "random:Llama-3-8B", "", {}),
        (H200, {"quantization": "bnb-nf4"}, "random:gpt-oss-20b", "note", {}),
        (H200, {"quantization": "quanto-int8"}, "random:bert-base-uncased", "", {}),
    ],
)  # fmt: skip
def test_what_each_needs(
    machine: Machine, choices: dict[str, str], model: str, level: str, fix: dict[str, str]
) -> None:
    found = of(judge(model, machine, **choices))
    assert {v.level for v in found} == ({level} if level else set()), found
    assert not level or found[0].fix == fix


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
    assert (verdict.level, verdict.becomes) == ("fallback", "none")
    assert "unpacked" in verdict.reason
    for choice in DENSE_ONLY:
        assert {"quantization": "none"} in [v.fix for v in of(judge(given, H200, quantization=choice), "blocked")]


@pytest.mark.parametrize("method", ["bitsandbytes", "torchao", "quanto"])
def test_a_checkpoint_that_was_packed_needs_the_package_that_packed_it(method: str) -> None:
    given = replace(facts("random:Qwen3-0.6B"), random=False, quantization=method)
    assert [v.level for v in of(judge(given))] == ["note"]
    (verdict,) = of(judge(given, replace(CPU, packages=())), "blocked")
    assert "pip install" in verdict.reason
    assert of(judge("random:Qwen3-0.6B", replace(CPU, packages=()))) == []


@pytest.mark.filterwarnings("ignore")
def test_what_the_checkpoint_had_packed_is_nones(tmp_path: Path) -> None:
    """Beside the same weights packed while they are loaded."""
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(**NF4), **again)
    packed.save_pretrained(tmp_path)
    plan = judge(replace(facts("random:Qwen3-0.6B"), random=False, quantization="bitsandbytes")).plan
    kept = AXIS.find(Seen(AutoModelForCausalLM.from_pretrained(tmp_path), None, plan))
    made = AXIS.find(Seen(packed, None, plan))
    assert (kept.effective, made.effective) == ("none", "bnb-nf4")
    assert "as the checkpoint holds them" in kept.proof and "matrices in bnb-nf4" in kept.proof


# --- MXFP4 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["none", "mxfp4"])
@pytest.mark.parametrize(
    ("machine", "choices", "says"),
    [
        (H200, {}, ""),
        (gpu(7, 5), {}, ""),
        (replace(H200, hub_offline=True, hub_kernels=(MXFP4_KERNELS,)), {}, ""),
        (CPU, {}, "NVIDIA GPU only"),
        (gpu(7, 0), {}, "capability 7.5"),
        (without("triton"), {}, "triton 3.4"),
        (replace(H200, packages=tuple((dict(H200.packages) | {"triton": "3.3.1"}).items())), {}, "triton 3.4"),
        (without("kernels"), {}, "kernels package"),
        (replace(H200, hub_offline=True), {}, "LOCAL_KERNELS"),
    ],
)
def test_a_packed_checkpoint_stays_packed_where_its_kernels_run(
    choice: str, machine: Machine, choices: dict[str, str], says: str
) -> None:
    checked = judge(PACKED, machine, quantization=choice, **choices)
    found = of(checked, "fallback")
    assert [says in verdict.reason for verdict in found] == ([True] if says else [])
    assert checked.requested["quantization"] == choice
    assert checked.planned["quantization"] == ("mxfp4-dequantized" if says else "mxfp4")
    assert checked.plan.load.quantization == ("mxfp4-dequantized" if says else "none")
    assert all(verdict.fix == {"quantization": "mxfp4-dequantized"} for verdict in found)
    settled = judge(PACKED, machine, quantization="mxfp4-dequantized", **choices)
    assert (of(settled) == [] and settled.memory.weights == checked.memory.weights) or not says


@pytest.mark.parametrize("choice", DENSE_ONLY)
def test_a_packed_checkpoint_is_not_packed_again(choice: str) -> None:
    assert {"quantization": "none"} in [v.fix for v in of(judge(PACKED, H200, quantization=choice), "blocked")]


@pytest.mark.parametrize(
    ("model", "choice", "says"),
    [
        ("pocket", "mxfp4", "dense"),
        ("pocket", "mxfp4-dequantized", "nothing to unpack"),
        ("random:Llama-3-8B", "mxfp4", "another architecture"),
        ("random:Llama-3-8B", "mxfp4-dequantized", "nothing to unpack"),
        ("random:gpt-oss-20b", "mxfp4", ""),
        ("random:gpt-oss-20b", "mxfp4-dequantized", ""),
        (PACKED, "mxfp4-dequantized", ""),
    ],
)
def test_mxfp4_is_for_what_holds_it_or_is_drawn_in_it(model: str, choice: str, says: str) -> None:
    found = of(judge(model, H200, quantization=choice))
    assert [says in verdict.reason for verdict in found] == ([True] if says else [])
    assert all(verdict.fix == {"quantization": "none"} for verdict in found)


def test_random_gpt_oss_is_dense_unless_mxfp4_is_asked_for() -> None:
    dense, packed = (judge("random:gpt-oss-20b", H200, quantization=choice) for choice in ("none", "mxfp4"))
    assert of(dense) == of(packed) == []
    assert (dense.planned["quantization"], packed.plan.load.quantization) == ("none", "mxfp4")
    assert dense.memory.weights > 3 * packed.memory.weights
    assert judge("random:gpt-oss-20b", quantization="mxfp4").planned["quantization"] == "mxfp4-dequantized"


def test_another_dtype_beside_packed_experts_is_said_to_be_untried() -> None:
    (note,) = of(judge(PACKED, H200, dtype="float16"))
    assert (note.level, note.fix) == ("note", {"dtype": "bfloat16"})
    assert of(judge(PACKED, H200, dtype="float16", quantization="mxfp4-dequantized")) == []


# --- the same, asked of transformers --------------------------------------------------------------


def llama(**more: int) -> tuple[Any, dict[str, Any]]:
    """A tiny model and the keywords that load it again."""
    shape = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(LlamaConfig(**(shape | heads | more)), dtype=torch.bfloat16)
    return model, {"config": model.config, "state_dict": model.state_dict(), "dtype": torch.bfloat16}


def packed_kinds(model: Any) -> list[str]:
    return [kind for weight in model.parameters() if (kind := _kind(weight))]


@pytest.mark.parametrize(
    "settings",
    [
        lambda: BitsAndBytesConfig(**NF4),
        lambda: QuantoConfig(weights="int8"),
        lambda: TorchAoConfig(_int8()),
    ],
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


def test_quanto_and_torchao_find_nothing_in_gpt2_and_bitsandbytes_does() -> None:
    config = AutoConfig.for_model("gpt2", n_embd=64, n_layer=1, n_head=2, vocab_size=64, n_positions=32)
    model = AutoModelForCausalLM.from_config(config)
    again = {"config": config, "state_dict": model.state_dict()}
    for settings, count in (
        (QuantoConfig(weights="int8"), 0),
        (TorchAoConfig(_int8()), 0),
        (BitsAndBytesConfig(**NF4), 4),
    ):
        assert len(packed_kinds(type(model).from_pretrained(None, quantization_config=settings, **again))) == count


def test_experts_are_left_alone_and_attention_is_not() -> None:
    model = AutoModelForCausalLM.from_pretrained(
        resolve("pocket").source.path, quantization_config=BitsAndBytesConfig(**NF4)
    )
    assert packed_kinds(model) == ["bnb-nf4"] * 4 * 8
    assert model.model.layers[0].mlp.experts.down_proj.dtype is torch.bfloat16


def test_torchao_int4_does_not_load_on_a_cpu() -> None:
    if torch.cuda.is_available():
        pytest.skip("this asks a CPU")
    from torchao.quantization import Int4WeightOnlyConfig

    model, again = llama(hidden_size=128)
    settings = TorchAoConfig(Int4WeightOnlyConfig(group_size=128, int4_packing_format="tile_packed_to_4d"))
    with pytest.raises(RuntimeError, match="conversion"):
        type(model).from_pretrained(None, quantization_config=settings, **again)


def test_int8_of_bitsandbytes_says_that_it_casts_to_float16(caplog: pytest.LogCaptureFixture) -> None:
    model, again = llama()
    packed = type(model).from_pretrained(None, quantization_config=BitsAndBytesConfig(load_in_8bit=True), **again)
    with caplog.at_level(logging.WARNING), torch.inference_mode():
        packed(torch.tensor([[1, 2, 3]]))
    assert "inputs will be cast from torch.bfloat16 to float16" in caplog.text


needs_avx512_bf16 = pytest.mark.skipif(
    not hardware.machine().avx512_bf16,
    reason="this CPU has no AVX512-BF16: bitsandbytes leaves its weights as they are",
)


@pytest.fixture(scope="module")
def knows_bf16() -> Iterator[bool]:
    from bitsandbytes.functional import has_avx512bf16

    yield bool(has_avx512bf16())


def test_the_cpu_is_read_as_bitsandbytes_reads_it(knows_bf16: bool) -> None:
    assert hardware.machine().avx512_bf16 == knows_bf16


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
