"""Random weights as a checkpoint: the numbers of the dense model, each read once, from host memory if it has room."""

import json
from pathlib import Path

import pytest
import torch

from backend.models import resolve
from backend.plan import LoadPlan
from backend.worker import host, noise
from backend.worker.drawn import Packed, draw, load_packed
from backend.worker.loader import Bench
from backend.worker.loading import Observed
from tests.backend.worker.test_quantize import SHAPE

GB = 10**9
HERE = host.Places("cpu")
TO_HOST = host.Places("cpu", copied=True)


@pytest.fixture
def plan(tmp_path: Path) -> LoadPlan:
    (tmp_path / "config.json").write_text(json.dumps(SHAPE))
    return LoadPlan(resolve(f"random:{tmp_path}").source, quantization="quanto-int8")


@pytest.mark.parametrize("where", [None, HERE, TO_HOST])
def test_the_numbers_are_those_of_the_dense_model(where: host.Places | None, plan: LoadPlan) -> None:
    dense = noise.random_model(plan.source.config_json, "auto", None, "cpu").state_dict()
    found = {name: part[...] for name, part in draw(plan, where).state.items()}
    assert set(found) == set(dense)
    assert all(torch.equal(found[name], dense[name]) and found[name].dtype == dense[name].dtype for name in dense)


@pytest.mark.parametrize("where", [HERE, TO_HOST])
def test_each_tensor_is_read_once_and_then_nobody_holds_it(where: host.Places, plan: LoadPlan) -> None:
    drawn = draw(plan, where)
    name, first = next(iter(drawn.state.items()))
    left = first._tensors  # type: ignore[union-attr]
    assert len(left) == len(drawn.state)
    first[...]
    assert name not in left and len(left) == len(drawn.state) - 1
    with pytest.raises(KeyError):
        first[...]


def test_tied_weights_are_copied_once(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SHAPE | {"tie_word_embeddings": True}))
    tied = LoadPlan(resolve(f"random:{tmp_path}").source, quantization="quanto-int8")
    names = set(draw(tied, TO_HOST).state)
    assert "model.embed_tokens.weight" in names and "lm_head.weight" not in names
    model = load_packed(tied, Observed(), TO_HOST)
    assert model.lm_head.weight is model.model.embed_tokens.weight


def test_packed_by_way_of_the_host_it_answers_the_same(plan: LoadPlan) -> None:
    ids = torch.tensor([[1, 2, 3, 4]])
    with torch.inference_mode():
        one, other = (load_packed(plan, Observed(), where)(ids).logits for where in (HERE, TO_HOST))
    assert torch.equal(one, other)


def test_experts_of_mxfp4_are_drawn_when_they_are_read() -> None:
    oss = LoadPlan(resolve("random:pocket").source, quantization="mxfp4-dequantized")
    one, other = draw(oss, HERE).state, draw(oss, TO_HOST).state
    assert set(one) == set(other)
    layers = json.loads(oss.source.config_json)["num_hidden_layers"]
    assert sum(isinstance(part, Packed) for part in other.values()) == 4 * layers
    assert all(torch.equal(one[name][...], other[name][...]) for name in one)


@pytest.mark.parametrize("staging_bytes", [0, 6, 64, 1 << 20])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.uint8, torch.int64])
def test_copies_are_equal_have_memory_of_their_own_and_no_more(staging_bytes: int, dtype: torch.dtype) -> None:
    tensors = {
        "whole": torch.arange(60).reshape(3, 4, 5).to(dtype),
        "turned": torch.arange(60).reshape(6, 10).to(dtype).t(),
        "part": torch.arange(60).to(dtype)[7:11],
        "one": torch.tensor(7).to(dtype),
        "none": torch.empty(0, 3, dtype=dtype),
    }
    found = host.copied(tensors, staging_bytes)
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor) and found[name].dtype == dtype and found[name].is_contiguous()
        assert found[name].untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
        assert tensor.numel() == 0 or found[name].data_ptr() != tensor.data_ptr()


@pytest.mark.parametrize(
    ("gpu_free", "host_free", "drawn", "copied", "says"),
    [
        (140, 100, "cuda", True, ""),
        (20, 100, "cuda", True, ""),  # the packed ones come when the dense ones are gone
        (140, 17, "cuda", False, "host memory has no room for 16.0 GB"),
        (16, 100, "cpu", False, "the GPU has no room for 16.0 GB"),
        (16, 17, "cpu", False, "the GPU has no room for 16.0 GB"),
        (20, 17, "cpu", False, "the GPU has no room for 16.0 GB"),
    ],
)
def test_where_there_is_room(gpu_free: int, host_free: int, drawn: str, copied: bool, says: str) -> None:
    found = host.places(16 * GB, "cuda", gpu_free * GB, host_free * GB)
    assert (found.drawn, found.copied) == (drawn, copied)
    assert found.note.startswith(says) and bool(found.note) == bool(says)


def test_what_was_not_the_usual_way_is_a_remark_of_the_run(plan: LoadPlan) -> None:
    for note in ("", "host memory has no room"):
        observed = Observed()
        model = load_packed(plan, observed, host.Places("cpu", note=note))
        remark = Bench(plan, model, noise.byte_tokenizer(300), observed).remark
        assert (note in remark) and remark.startswith(note or "one CPU thread")
