"""Random weights as a checkpoint: the dense model's numbers, each read once, from host memory where there is room."""

import json

import msgspec
import pytest
import torch

from tests.backend.worker.load.test_quantization import small_llama
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import LoadPlan, ParallelPlan
from tokendyno.backend.worker.load import loader, random_weights
from tokendyno.backend.worker.load.device import Observed
from tokendyno.backend.worker.load.loader import LoadedModel
from tokendyno.backend.worker.load.random_weights import (
    Drawn,
    RandomBytes,
    Staging,
    load_as_checkpoint,
    random_checkpoint,
)

GB = 10**9
HERE = Staging("cpu")
TO_HOST = Staging("cpu", to_host=True)


@pytest.fixture
def plan() -> LoadPlan:
    return LoadPlan(resolve(small_llama()).source, quantization="quanto-int8")


@pytest.mark.parametrize("where", [None, HERE, TO_HOST])
def test_the_numbers_are_those_of_the_dense_model(where: Staging | None, plan: LoadPlan) -> None:
    dense = random_weights.random_model(plan.source.config_json, "auto", None, "cpu").state_dict()
    found = {name: part[...] for name, part in random_checkpoint(plan, where).state.items()}
    assert set(found) == set(dense)
    assert all(torch.equal(found[name], dense[name]) and found[name].dtype == dense[name].dtype for name in dense)


def test_no_rank_draws_a_large_model_whole(plan: LoadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four copies of 61 GB for a quarter of them each: the ranks of Qwen3-30B-A3B were given up meanwhile."""
    monkeypatch.setattr(random_weights, "COPIED_BYTES", 1)
    for ranks, drawn in ((1, False), (2, True)):
        parallel = ParallelPlan("tensor" if drawn else "off", ranks=ranks)
        found = random_checkpoint(msgspec.structs.replace(plan, quantization="none", parallel=parallel))
        assert ("too much to copy for each rank" in found.note) is drawn
        assert all(isinstance(one, Drawn) for one in found.state.values()) is drawn


def test_the_bytes_that_a_rank_reads_are_those_of_the_whole_tensor() -> None:
    whole = RandomBytes("experts.blocks", (4, 6, 2, 16), 0, 255, "cpu")
    assert whole[...].shape == (4, 6, 2, 16) and len(whole[...].unique()) > 200
    for part in (
        (slice(2, 4), slice(0, 6), slice(0, 2), slice(0, 16)),
        (slice(0, 4), slice(3, 6), slice(0, 2), slice(0, 16)),
    ):
        assert torch.equal(whole[part], whole[...][part]) and whole[part].is_contiguous()


def test_tied_weights_are_copied_once() -> None:
    tied = LoadPlan(resolve(small_llama(tie_word_embeddings=True)).source, quantization="quanto-int8")
    names = set(random_checkpoint(tied, TO_HOST).state)
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    model = load_as_checkpoint(tied, Observed(), TO_HOST)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_mxfp4_experts_are_generated_when_they_are_read() -> None:
    oss = LoadPlan(resolve("random:pocket").source, quantization="mxfp4-dequantized")
    one, other = random_checkpoint(oss, HERE).state, random_checkpoint(oss, TO_HOST).state
    assert set(one) == set(other)
    layers = json.loads(oss.source.config_json)["num_hidden_layers"]
    assert sum(isinstance(part, RandomBytes) for part in other.values()) == 4 * layers
    assert all(torch.equal(one[name][...], other[name][...]) for name in one)


@pytest.mark.parametrize(
    ("gpu_free", "host_free", "device", "to_host", "says"),
    [
        (140, 100, "cuda", True, ""),
        (20, 100, "cuda", True, ""),  # the quantized ones arrive when the dense ones are gone
        (140, 17, "cuda", False, "no room in host memory for 16.0 GB"),
        (16, 100, "cpu", False, "no room on the GPU for 16.0 GB"),
        (16, 17, "cpu", False, "no room on the GPU for 16.0 GB"),
        (20, 17, "cpu", False, "no room on the GPU for 16.0 GB"),
    ],
)
def test_staging_follows_the_free_memory(gpu_free: int, host_free: int, device: str, to_host: bool, says: str) -> None:
    found = random_weights.choose_staging(16 * GB, "cuda", gpu_free * GB, host_free * GB)
    assert (found.device, found.to_host) == (device, to_host)
    assert found.note.startswith(says) and bool(found.note) == bool(says)


def test_unusual_staging_is_a_remark_of_the_run(plan: LoadPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_THREADS", 2)  # tests in several processes have one each
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for note in ("", "no room in host memory"):
        observed = Observed()
        model = load_as_checkpoint(plan, observed, Staging("cpu", note=note))
        remark = LoadedModel(plan, model, random_weights.byte_tokenizer(300), observed).remark
        assert (note in remark) and remark.startswith(note or "1 CPU thread")
