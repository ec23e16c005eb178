"""Two processes that share a model: what they hand on is held against their parts, and the parts against files."""

import json
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist

from backend.counts import RunCounts
from backend.messages import Failed
from backend.optimizations.axes.parallel.proof import _joined
from backend.optimizations.tensor_bytes import local_part
from backend.worker.load.parallel import distributed_config
from backend.worker.patch.shards import make_local
from backend.worker.prove.plain_parts import OF_FORMATS, tolerance
from backend.worker.prove.rank_parts import held_on_ranks
from tests.support.tiny_models import build

RANKS, LAYERS, IDS = 2, 4, list(range(3, 30))


class Together:
    """The group, by what this process took before anything was broken."""

    size = RANKS

    def __init__(self) -> None:
        self.rank, self._gather = dist.get_rank(), dist.all_gather_object

    def agree(self, answer: bool) -> bool:
        return answer

    def exchange(self, mine: bytes) -> Sequence[bytes]:
        every: list[Any] = [None] * RANKS
        self._gather(every, mine)
        return every

    def settle(self, failed: Failed) -> Failed:
        return failed


@contextmanager
def summed_as(other: Callable[[Any, Any], Any]) -> Iterator[None]:
    """`other` gets the tensor and torch's own function."""
    plain = dist.all_reduce
    with mock.patch.object(dist, "all_reduce", lambda tensor, *args, **more: other(tensor, plain)):
        yield


def halved(tensor: Any, plain: Any) -> None:
    plain(tensor)
    tensor.div_(2)


BROKEN: dict[str, Callable[[Any, Any], Any]] = {
    "thrown away": lambda tensor, plain: plain(tensor.clone()),
    "halved": halved,
    "the largest": lambda tensor, plain: plain(tensor, op=dist.ReduceOp.MAX),
    "on one rank": lambda tensor, plain: plain(tensor.clone() if dist.get_rank() else tensor),
}


@contextmanager
def multiplied(model: Any, path: str, *factors: float) -> Iterator[None]:
    """Each rank's part of a tensor, by its own factor."""
    part = local_part(model.get_parameter(path))
    before = part.detach().clone()
    with torch.no_grad():
        part.mul_(factors[dist.get_rank()])
    try:
        yield
    finally:
        with torch.no_grad():
            part.copy_(before)


def in_a_rank(rank: int, port: int, folder: str) -> None:
    from transformers import AutoModelForCausalLM

    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=RANKS)
    group = Together()
    found: dict[str, list[float | None]] = {}
    failed: dict[str, str] = {}
    for kind in ("llama", "gpt_oss"):
        path = Path(folder, kind)
        with torch.inference_mode(False):
            model = AutoModelForCausalLM.from_pretrained(
                path, dtype=torch.float32, distributed_config=distributed_config(kind, RANKS, 1)
            ).eval()

        found[f"{kind}: tolerance"] = [tolerance(model)]

        def counts(name: str, files: bool = True, kind: str = kind, model: Any = model, path: Path = path) -> None:
            made, failed[name] = held_on_ranks(model, IDS, path if files else None, group)
            found[f"{kind}: {name}"] = [made.joined_modules, made.odd_joined, made.held_shards, made.other_shards]

        if kind == "llama":
            counts("intact")
            counts("without files", False)
            for name, other in BROKEN.items():
                with summed_as(other):
                    counts(name)
            for tensor in ("layers.1.mlp.down_proj", "layers.2.self_attn.q_proj", "embed_tokens", "norm"):
                with multiplied(model, f"model.{tensor}.weight", 1, 2):
                    counts(f"changed {tensor}")
            with multiplied(model, "model.layers.1.self_attn.o_proj.weight", 0, 0):
                counts("emptied", False)
            for part in ("model.embed_tokens", "lm_head"):
                hook = model.get_submodule(part).register_forward_hook(lambda _, args, output: output * 1.1)
                counts(f"{part} gives something else")
                hook.remove()
            with mock.patch.object(type(model), "forward", side_effect=RuntimeError("no") if rank else None):
                counts("failed")
            assert failed["failed"] == "rank 1: RuntimeError: no" and not any(failed[one] for one in BROKEN)
            make_local(model)
            counts("local")
            with summed_as(BROKEN["halved"]):
                counts("local, halved")
            with multiplied(model, "model.layers.1.mlp.down_proj.weight", 1, 2):
                counts("local, changed")
        else:
            counts("intact")
            for name in ("halved", "on one rank"):
                with summed_as(BROKEN[name]):
                    counts(name)
    if rank == 0:
        Path(folder, "found.json").write_text(json.dumps(found), encoding="utf-8")
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[float]]:
    """Modules that were held, those that give something else, parts, and those with other numbers."""
    folder = tmp_path_factory.mktemp("ranks")
    for kind in ("llama", "gpt_oss"):
        build(kind).save_pretrained(folder / kind)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(in_a_rank, args=(port, str(folder)), nprocs=RANKS)
    made: dict[str, list[float]] = json.loads((folder / "found.json").read_text(encoding="utf-8"))
    return made


@pytest.mark.parametrize("name", ["intact", "local"])
def test_an_intact_model_hands_on_what_its_parts_make(found: dict[str, list[float]], name: str) -> None:
    """Two sums of each layer, the embedding and the head; parts of tensors on both ranks."""
    assert found[f"llama: {name}"] == [2 * LAYERS + 2, 0, 2 * 39, 0]
    assert found["llama: without files"] == [2 * LAYERS + 2, 0, 0, 0]
    assert found["gpt_oss: intact"][0] == 2 * LAYERS + 2 and found["gpt_oss: intact"][1::2] == [0, 0]


@pytest.mark.parametrize(
    "case", [*(f"llama: {name}" for name in BROKEN), "llama: local, halved", "gpt_oss: halved", "gpt_oss: on one rank"]
)
def test_every_sum_that_is_none_is_odd(found: dict[str, list[float]], case: str) -> None:
    assert found[case][1] == 2 * LAYERS and found[case][3] == 0


@pytest.mark.parametrize("part", ["model.embed_tokens", "lm_head"])
def test_what_is_not_made_of_a_ranks_part_is_odd(found: dict[str, list[float]], part: str) -> None:
    assert found[f"llama: {part} gives something else"][1] == 1


@pytest.mark.parametrize(
    "tensor",
    ["changed layers.1.mlp.down_proj", "changed layers.2.self_attn.q_proj", "changed embed_tokens", "changed norm",
     "local, changed"],
)  # fmt: skip
def test_a_part_on_one_rank_with_other_numbers_than_its_file_is_counted(
    found: dict[str, list[float]], tensor: str
) -> None:
    assert found[f"llama: {tensor}"][3] == 1


@pytest.mark.parametrize("kind", ["llama", "gpt_oss"])
def test_a_split_model_is_held_as_close_as_a_whole_one(found: dict[str, list[float]], kind: str) -> None:
    """Parts of matrices are no packed weights."""
    assert found[f"{kind}: tolerance"] == [OF_FORMATS[torch.float32]]


def test_a_part_of_zeros_is_counted_without_files(found: dict[str, list[float]]) -> None:
    assert found["llama: emptied"] == [2 * LAYERS + 2, 0, 0, RANKS]


def test_nothing_is_counted_where_the_pass_fails(found: dict[str, list[float]]) -> None:
    assert found["llama: failed"] == [None] * 4


@pytest.mark.parametrize(
    ("counts", "odd", "said"),
    [
        (RunCounts(), 1, "was not held"),
        (RunCounts(joined_modules=0, odd_joined=0), 1, "was not held"),
        (RunCounts(joined_modules=10, odd_joined=0, held_shards=0, other_shards=0), 0, "10 modules"),
        (RunCounts(joined_modules=10, odd_joined=3, held_shards=8, other_shards=2), 5, "3 of them give something else"),
    ],
)
def test_the_proof_misses_what_is_odd(counts: RunCounts, odd: int, said: str) -> None:
    text, missed = _joined(counts, "")
    assert missed == odd and said in text


def test_the_proof_says_why_nothing_was_held() -> None:
    text, missed = _joined(RunCounts(), "rank 1: RuntimeError: no")
    assert missed == 1 and text.endswith("was not held against their parts (rank 1: RuntimeError: no)")
