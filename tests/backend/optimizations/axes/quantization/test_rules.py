"""When dense weights can be quantized, and how a checkpoint that is already quantized is treated."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.machines import CPU, H200, facts, settled
from tests.support.quantization import DENSE_ONLY, EVERY, gpu, judge, of, without
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models.facts import MatrixKind
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.quantization.rules import LATENTS_BY_HEAD

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
        (gpu(7, 5), {"quantization": "bnb-int8", "dtype": "float16"}, "random:gpt2", "", {}),
        (gpu(6, 0), {"quantization": "bnb-nf4"}, "random:gpt2", "", {}),
        (gpu(5, 2), {"quantization": "bnb-nf4"}, "random:gpt2", "blocked", {"quantization": "none"}),
        (gpu(7, 5), {"quantization": "torchao-int4"}, "random:Qwen3-0.6B", "blocked", {"quantization": "torchao-int8"}),
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
        (H200, {"quantization": "quanto-int4"}, "random:gpt2", "blocked", {"quantization": "bnb-int8"}),
        (H200, {"quantization": "bnb-nf4"}, "random:Llama-3-8B", "", {}),
        (H200, {"quantization": "bnb-nf4"}, "random:gpt-oss-20b", "note", {}),
        (H200, {"quantization": "quanto-int8"}, "random:bert-base-uncased", "", {}),
    ],
)
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
    assert "dequantized" in verdict.reason
    for choice in DENSE_ONLY:
        assert {"quantization": "none"} in [v.fix for v in of(judge(given, H200, quantization=choice), "blocked")]


@pytest.mark.parametrize("method", ["bitsandbytes", "torchao", "quanto"])
def test_a_checkpoint_that_was_packed_needs_the_package_that_packed_it(method: str) -> None:
    given = replace(facts("random:Qwen3-0.6B"), random=False, quantization=method)
    assert [v.level for v in of(judge(given))] == ["note"]
    (verdict,) = of(judge(given, replace(CPU, packages=())), "blocked")
    assert "pip install" in verdict.reason
    assert of(judge("random:Qwen3-0.6B", replace(CPU, packages=()))) == []


@pytest.mark.parametrize(("machine", "noted"), [(gpu(8, 6), True), (gpu(8, 9), False), (gpu(9, 0), False), (CPU, True)])
def test_a_checkpoint_in_fp8_says_where_it_becomes_dense(machine: Machine, noted: bool) -> None:
    given = replace(facts("random:Qwen3-0.6B"), random=False, quantization="fp8")
    assert any("FP8 arithmetic needs" in v.reason for v in of(judge(given, machine), "note")) is noted
    assert not any("FP8" in v.reason for v in of(judge("random:Qwen3-0.6B", machine)))


@pytest.mark.parametrize(
    ("kind", "refused"), [("linear", True), ("conv1d", True), ("embedding", False), ("expert", False)]
)
def test_only_matrices_that_bitsandbytes_packs_need_even_sizes(kind: MatrixKind, refused: bool) -> None:
    given = facts("random:Qwen3-0.6B")
    even = next(m for m in given.matrices if m.kind == "linear")
    odd = replace(even, kind=kind, rows=48, columns=40)
    found = judge(replace(given, matrices=(even, odd)), replace(CPU, avx512_bf16=True), quantization="bnb-nf4").blocked
    assert any("multiple of 32 rows" in v.reason for v in found) is refused


@pytest.mark.parametrize(
    ("model", "quantization", "noted"),
    [("random:gpt-oss-20b", None, True), ("random:gpt-oss-20b", "gptq", False), ("random:Qwen3-0.6B", None, False)],
)
def test_that_experts_stay_dense_is_said_of_dense_mixtures_alone(
    model: str, quantization: str | None, noted: bool
) -> None:
    found = judge(replace(facts(model), quantization=quantization), H200, quantization="torchao-int8")
    assert (
        any("experts, and with them most of the bytes, stay as they are" in v.reason for v in of(found, "note"))
        is noted
    )


@pytest.mark.parametrize(
    ("method", "package"), [("aqlm", "aqlm"), ("quark", "amd-quark"), ("auto-round", "auto-round"), ("sinq", "sinq")]
)
def test_the_package_of_a_rare_format_is_asked_for_before_loading(method: str, package: str) -> None:
    given = replace(facts("random:Qwen3-0.6B"), random=False, quantization=method)
    reasons = [v.reason for v in judge(given, without(package, H200)).blocked]
    assert any(f"pip install {package}" in reason for reason in reasons)
    there = replace(H200, packages=(*H200.packages, (package, "1.0")))
    assert judge(given, there).blocked == ()


@pytest.mark.parametrize("method", ["eetq", "bitnet", "spqr"])
def test_a_format_that_needs_a_gpu_says_so_on_a_cpu(method: str) -> None:
    given = replace(facts("random:Qwen3-0.6B"), random=False, quantization=method)
    assert any("on a GPU only" in v.reason for v in judge(given, CPU).blocked)
    assert not any("on a GPU only" in v.reason for v in judge(given, H200).blocked)


def test_what_hqq_has_packed_is_refused_everywhere() -> None:
    given = replace(facts("random:Qwen3-0.6B"), random=False, quantization="hqq")
    for machine in (CPU, H200):
        assert any("cannot load weights that HQQ has packed" in v.reason for v in judge(given, machine).blocked)


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
