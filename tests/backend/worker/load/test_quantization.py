"""Models quantized as planned, loaded and run as the worker does it: the ledger finds exactly what was planned."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, BertTokenizerFast, Mxfp4Config
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

from tests.sabotage.small_models import bert, llama
from tests.support.local_worker import LocalWorker
from tests.support.proof import claimed
from tests.support.quantization import PACKED
from tests.support.scripts import preamble
from tests.support.sharded import ranks
from tests.support.worker import SENTENCE
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.export.script import script
from tokendyno.backend.messages import Finished, Generate, Progress
from tokendyno.backend.models import resolve
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.axes.quantization import Quantization
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.predict.weights import weight_bytes
from tokendyno.backend.worker.load import quantization
from tokendyno.backend.worker.load.quantization import read_packed
from tokendyno.backend.worker.load.random_weights import random_checkpoint
from tokendyno.backend.worker.patch.experts import TRITON, PackedExperts
from tokendyno.backend.worker.prove.graph_calls import matrices
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import parameter_count, total_bytes, weight_tensors
from tokendyno.backend.worker.witness import find

EACH_LIBRARY = ["none", "bnb-nf4", "torchao-int8", "quanto-int4"]
MORE = [pytest.param(name, marks=pytest.mark.full) for name in ("bnb-int8", "torchao-fp8", "quanto-int8")]
NEW = 6
"""Tokens: each length costs a CPU new kernels in bfloat16."""


def small_llama(**more: bool) -> str:
    """random:FOLDER of a model whose matrices every library packs."""
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 32}
    return llama(num_hidden_layers=2, intermediate_size=128, dtype="bfloat16", **heads | more)


def checked(model: str, **choices: str) -> Checked:
    arm = check(make_config(model, choices), resolve(model), hardware.detect(), Workload(prompt=SENTENCE))
    assert arm.blocked == ()
    return arm


@functools.cache
def run(model: str, **choices: str) -> tuple[Checked, LocalWorker, Finished, int]:
    """Load and generate a few tokens: (plan, worker, its last event, bytes of the weights before the first step)."""
    arm = checked(model, **choices)
    worker = LocalWorker(arm.plan.load)
    before = worker.model.weight_bytes
    finished = worker.run(Generate(arm.plan, SENTENCE, 0, NEW, 1, 0.0, 0, ignore_eos=True, warmup=False))
    return arm, worker, finished, before


def ledger(finished: Finished) -> dict[str, str]:
    return {finding.axis: finding.effective for finding in finished.findings}


@pytest.mark.parametrize("choice", [*EACH_LIBRARY, *MORE])
def test_quantized_pocket_runs_and_the_ledger_says_so(choice: str) -> None:
    arm, worker, finished, before = run("pocket", quantization=choice)
    assert {axis: ledger(finished)[axis] for axis in ("quantization", "dtype")} == {
        axis: arm.planned[axis] for axis in ("quantization", "dtype")
    }
    assert before == arm.memory.weights == weight_bytes(resolve("pocket"), "auto", arm.plan.load.quantization)
    assert parameter_count(worker.model.model) == resolve("pocket").parameters
    observation = Observation(worker.model.model, None, arm.plan)
    assert claimed(Quantization(), observation) == {arm.planned["quantization"]}


@pytest.mark.parametrize("choice", ["bnb-int8", "torchao-int8"])
def test_a_pooler_that_the_checkpoint_lacks_is_quantized_like_the_rest(choice: str, tmp_path: Path) -> None:
    """As every checkpoint of an encoder for masked words lacks it."""
    encoder = bert(num_hidden_layers=2, num_attention_heads=2, intermediate_size=128).removeprefix("random:")
    AutoModelForMaskedLM.from_config(AutoConfig.from_pretrained(encoder)).save_pretrained(tmp_path)
    BertTokenizerFast(
        {word: i for i, word in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"))}
    ).save_pretrained(tmp_path)
    arm, worker, finished, before = run(str(tmp_path), quantization=choice)
    assert before == arm.memory.weights and "pooler" in worker.model.remark
    (quantized,) = (finding for finding in finished.findings if finding.axis == "quantization")
    assert quantized.reached == quantized.expected == 2 * 6 + 1


def test_the_experts_of_a_rank_are_cast_too() -> None:
    from torch.distributed.tensor import Shard, distribute_tensor

    model = torch.nn.Module()
    model.mlp = torch.nn.Module()
    model.mlp.experts = torch.nn.Module()
    model.dtype = torch.float32
    with ranks(2) as mesh:
        part = distribute_tensor(torch.ones(4, 2, 2, dtype=torch.bfloat16), mesh, [Shard(0)], src_data_rank=None)
        model.mlp.experts.down_proj = torch.nn.Parameter(part)
        quantization.cast_experts(model)
        assert model.mlp.experts.down_proj.to_local().dtype == torch.float32


@pytest.mark.parametrize("model", [PACKED, "random:pocket"])
def test_mxfp4_is_dequantized_on_a_cpu_and_found_so(model: str) -> None:
    if hardware.detect().device != "cpu":
        pytest.skip("this asks a CPU")
    arm, worker, finished, before = run.__wrapped__(model, quantization="mxfp4")
    assert ledger(finished)["quantization"] == arm.planned["quantization"] == "mxfp4-dequantized"
    assert before == arm.memory.weights
    (proof,) = (f.proof for f in finished.findings if f.axis == "quantization")
    assert "8 mixtures of dense experts" in proof
    observation = Observation(worker.model.model, None, arm.plan)
    assert claimed(Quantization(), observation) == {"mxfp4-dequantized"}


def test_dequantized_text_is_that_of_transformers() -> None:
    arm, worker, finished, _ = run(PACKED)
    reference = AutoModelForCausalLM.from_pretrained(PACKED)
    ids = worker.model.tokenizer(SENTENCE, return_tensors="pt")["input_ids"]
    out = reference.generate(ids, max_new_tokens=NEW, do_sample=False, eos_token_id=None, pad_token_id=0)
    assert finished.text == worker.model.tokenizer.decode(out[0, ids.shape[1] :])
    assert arm.planned["quantization"] == "mxfp4-dequantized"


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_dequantized_experts_are_cast_to_the_requested_dtype(dtype: str) -> None:
    arm = checked(PACKED, dtype=dtype)
    bench = LocalWorker(arm.plan.load).model
    dtypes = {weight.dtype for name, weight in bench.model.named_parameters() if ".experts." in name}
    assert dtypes == {getattr(torch, dtype)}
    assert bench.weight_bytes == arm.memory.weights


# --- random weights -------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["bnb-int8", "torchao-int8", "quanto-int8"])
def test_random_weights_are_those_of_the_dense_model_quantized(choice: str) -> None:
    dense, packed = (
        LocalWorker(checked(small_llama(), quantization=name).plan.load).model for name in ("none", choice)
    )
    ids = torch.tensor([[1, 2, 3, 4]])
    with torch.inference_mode():
        expected, quantized = (bench.model(ids).logits.float() for bench in (dense, packed))
    assert (expected - quantized).norm() < 0.05 * expected.norm()
    assert packed.weight_bytes < dense.weight_bytes
    assert torch.equal(dense.model.lm_head.weight, packed.model.lm_head.weight)


def test_the_dtype_is_found_in_the_weights_that_are_not_quantized() -> None:
    for dtype in ("bfloat16", "float32"):
        _, _, finished, _ = run(small_llama(), quantization="bnb-nf4", dtype=dtype)
        assert (ledger(finished)["quantization"], ledger(finished)["dtype"]) == ("bnb-nf4", dtype)


def test_random_mxfp4_experts_are_reproducible_and_as_large_as_usual() -> None:
    plan = LoadPlan(resolve("random:pocket").source, quantization="mxfp4-dequantized")
    first, second = (random_checkpoint(plan)[2] for _ in range(2))
    blocks, scales = ("model.layers.3.mlp.experts.down_proj_" + kind for kind in ("blocks", "scales"))
    assert torch.equal(first[blocks][...], second[blocks][...])
    assert not torch.equal(first[blocks][...], first[blocks.replace("3", "4")][...])
    assert (first[blocks].get_dtype(), first[scales][...].shape) == ("U8", (8, 192, 3))
    assert not any(name.endswith(("experts.down_proj", "experts.gate_up_proj")) for name in first)
    experts = LocalWorker(plan).model.model.model.layers[3].mlp.experts
    assert 0.015 < experts.down_proj.float().std() < 0.04  # initializer_range is 0.02


# --- what from_pretrained is told -----------------------------------------------------------------


@pytest.mark.parametrize("choice", [choice.name for choice in Quantization.choices])
@pytest.mark.parametrize("dtype", ["auto", "float16"])
def test_the_script_quantizes_with_the_settings_of_the_worker(choice: str, dtype: str) -> None:
    """The expression in the script, evaluated."""
    from tokendyno.backend.script.parts import Script

    plan = LoadPlan(resolve("random:pocket").source, dtype=dtype, quantization=choice)
    script = Script()
    Quantization().write(script, make_plan(plan))
    kwargs = quantization.keywords(plan, getattr(torch, "bfloat16" if dtype == "auto" else dtype))
    if choice == "none":
        assert script == Script() and kwargs == {}
        return
    names: dict[str, Any] = {"torch": torch}
    exec("\n".join([preamble(script), *script.prepare]), names)
    settings = eval(script.load["quantization_config"], names)
    assert type(settings) is type(kwargs["quantization_config"])
    assert settings.to_dict() == kwargs["quantization_config"].to_dict()
    assert getattr(settings, "dequantize", None) == getattr(kwargs["quantization_config"], "dequantize", None)


def make_plan(plan: LoadPlan) -> Any:
    from tokendyno.backend.plan import Plan

    return Plan(plan)


def test_a_gguf_file_is_dequantized_in_worker_and_script() -> None:
    plan = LoadPlan(ModelSource("gguf", path="/models/a.gguf"))
    assert quantization.keywords(plan, torch.float32)["quantization_config"].dequantize is True
    from tokendyno.backend.script.parts import Script

    script = Script()
    Quantization().write(script, make_plan(plan))
    assert script.prepare == ["quantization_config = GgufConfig(dequantize=True)"]


def test_bitsandbytes_stays_on_the_cpu_that_was_planned() -> None:
    source = resolve("pocket").source
    assert quantization.keywords(LoadPlan(source, quantization="bnb-nf4"), None)["device_map"] == "cpu"
    assert "device_map" not in quantization.keywords(LoadPlan(source, quantization="bnb-nf4", device="cuda"), None)
    assert "device_map" not in quantization.keywords(LoadPlan(source, quantization="quanto-int8"), None)


def test_torchao_leaves_the_compilers_settings_alone() -> None:
    from torch._inductor import config

    before = config.coordinate_descent_tuning
    LocalWorker(checked("pocket", quantization="torchao-int8").plan.load)
    assert config.coordinate_descent_tuning == before


def test_quantizing_is_a_phase_and_a_stage_and_a_plain_load_has_neither() -> None:
    for choice in ("none", "quanto-int8"):
        worker = LocalWorker(checked("pocket", quantization=choice).plan.load)
        begun = [event.phase for event in worker.events if isinstance(event, Progress) and event.state == "begin"]
        assert begun == ["load" if choice == "none" else "quantize"]
        assert ("quantize" in worker.model.observed.stages_s) is (choice != "none")


@pytest.mark.slow
@pytest.mark.parametrize("choice", [pytest.param("bnb-nf4", marks=pytest.mark.full), "mxfp4-dequantized"])
def test_the_script_of_random_weights_generates_the_same_tokens(choice: str, tmp_path: Path) -> None:
    import runpy

    arm, _, finished, _ = run("random:pocket", quantization=choice)
    work = Workload(prompt=SENTENCE, max_new_tokens=NEW, ignore_eos=True)
    (tmp_path / "arm.py").write_text(script(arm, resolve("random:pocket"), work))
    threads = torch.get_num_threads()
    variables = runpy.run_path(str(tmp_path / "arm.py"))
    torch.set_num_threads(threads)
    from tokendyno.backend.worker.load.random_weights import byte_tokenizer

    assert byte_tokenizer(3072).decode(variables["new_ids"], skip_special_tokens=True) == finished.text


# --- counting -------------------------------------------------------------------------------------


def test_shared_storage_is_counted_once_and_scales_are_included() -> None:
    facts = resolve(small_llama())
    bench = LocalWorker(checked(small_llama(), quantization="bnb-int8").plan.load).model
    rows = sum(m.count * m.rows for m in facts.matrices if m.kind == "linear")
    plain = sum(p.numel() * p.element_size() for p in bench.model.parameters())
    plain += sum(b.numel() * b.element_size() for b in bench.model.buffers())
    assert total_bytes(weight_tensors(bench.model)) == plain + 4 * rows
    with torch.inference_mode():
        bench.model(torch.tensor([[1, 2, 3]]))  # the scales move from the weight to the module's state
    assert bench.weight_bytes == plain + 4 * rows
    bench.model.lm_head.weight = bench.model.model.embed_tokens.weight
    assert bench.weight_bytes == plain + 4 * rows - facts.vocab * facts.hidden * 2


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    read_packed(False)


@pytest.fixture(scope="module")
def packed() -> Any:
    read_packed(True)
    model = AutoModelForCausalLM.from_pretrained(PACKED)
    read_packed(False)  # or `dense` would be read like that, if it comes later
    return model


@pytest.fixture(scope="module")
def dense() -> Any:
    return AutoModelForCausalLM.from_pretrained(PACKED, quantization_config=Mxfp4Config(dequantize=True))


def test_every_block_and_scale_is_the_files(packed: Any) -> None:
    own = dict(packed.named_parameters())
    with safe_open(f"{PACKED}/model.safetensors", "pt") as file:
        stored = set(file.keys())
        assert {name for name in own if "experts" in name} == {name for name in stored if "experts" in name}
        for name in own:
            assert torch.equal(own[name], file.get_tensor(name).to(own[name].dtype)), name


def test_they_are_the_weights_that_transformers_dequantizes(packed: Any, dense: Any) -> None:
    for packed_layer, dense_layer in zip(packed.model.layers, dense.model.layers, strict=True):
        own, theirs = packed_layer.mlp.experts, dense_layer.mlp.experts
        assert isinstance(own, PackedExperts)
        assert (own.limit, own.alpha) == (theirs.limit, theirs.alpha)
        for name in ("gate_up_proj", "down_proj"):
            blocks, scales = getattr(own, f"{name}_blocks"), getattr(own, f"{name}_scales")
            assert torch.equal(convert_moe_packed_tensors(blocks, scales), getattr(theirs, name))


def multiplied(experts: Any, hidden: Any, indices: Any, shares: Any) -> Any:
    """Both products of an expert, by transformers' reading of the blocks: the kernels need a GPU."""
    for name in ("gate_up_proj", "down_proj"):
        read = convert_moe_packed_tensors(getattr(experts, f"{name}_blocks"), getattr(experts, f"{name}_scales"))
        weight = read[indices[0, 0]].to(hidden.dtype)
        hidden = hidden[:, : weight.shape[0]] @ weight
    return hidden


def test_they_count_as_what_they_are(packed: Any, dense: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ALL_EXPERTS_FUNCTIONS._global_mapping, TRITON, multiplied)
    layers = packed.config.num_hidden_layers
    finding = find("quantization", Observation(packed, None, Plan(LoadPlan(ModelSource("random")))))
    assert (finding.effective, finding.reached, finding.expected) == ("mxfp4", 2 * layers, 2 * layers)
    assert parameter_count(packed) == parameter_count(dense)
    assert total_bytes(weight_tensors(packed)) == sum(t.nbytes for t in (*packed.parameters(), *packed.buffers()))
    assert len({tensor.data_ptr() for tensor in matrices(packed)}) == len(matrices(packed))
