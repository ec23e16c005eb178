"""Predicted bytes of one rank against processes on a CPU that share a checkpoint and generate from it.

Every architecture of the catalogue that has a plan, and the ways of packing that can be split: weights and cache to the
byte, and the greedy text of one process. What is refused fails here. The quick form is a run of pocket by two ranks
(tests/backend/executors/test_ranks.py): its text, its bytes, and each exchange of a pass in the ledger.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.rank_processes import PROMPT, TOKENS, Case, Seen
from tests.support.tiny_models import _SHAPE, CONFIGS
from tokendyno.backend.models import resolve
from tokendyno.backend.plan import CACHES
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.parallel import exchanges, refusal, shard
from tokendyno.backend.predict.weights import weight_bytes

pytestmark = pytest.mark.filterwarnings("ignore")

WIDE: dict[str, Any] = {
    "vocab_size": 300,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 32,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
MODELS: dict[str, dict[str, Any]] = {
    **{name: {"model_type": name, **shape} for name, shape in CONFIGS.items()},
    "biased": _SHAPE | {"model_type": "llama", "tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    "uneven": _SHAPE | {"model_type": "llama", "intermediate_size": 47},
    "phi3": {k: v for k, v in _SHAPE.items() if k != "head_dim"} | {"model_type": "phi3"},
    "mixtral": _SHAPE | {"model_type": "mixtral", "num_local_experts": 4},
    "odd_experts": _SHAPE | {"model_type": "mixtral", "num_local_experts": 3},
    "qwen3_moe": _SHAPE | {"model_type": "qwen3_moe", **EXPERTS, "mlp_only_layers": [1], "attention_bias": True},
    "tied_oss": CONFIGS["gpt_oss"] | {"model_type": "gpt_oss", "tie_word_embeddings": True, "vocab_size": 98},
    "wide": WIDE | {"model_type": "llama"},
}  # fmt: skip
PLAIN = ["llama", "qwen3", "mistral", "olmo3", "gemma3_text", "biased", "uneven", "phi3", "mixtral", "qwen3_moe"]
SPLIT = ["torchao-int8", "torchao-fp8", "quanto-int8", "quanto-int4"]


def works(folder: Path) -> list[Case]:
    """Cases that must load, generate and be as large as predicted."""

    def case(name: str, tensor: int, expert: int = 1, **more: Any) -> Case:
        return Case(str(folder / name), tensor, expert, **more)

    return [
        *(case(name, 2) for name in PLAIN),
        case("gpt_oss", 2), case("gpt_oss", 2, 2), case("mixtral", 2, 2), case("qwen3_moe", 2, 2),
        case("tied_oss", 2, 2),
        *(case(name, size, expert, cache="static") for name, size, expert in (("llama", 2, 1), ("gpt_oss", 2, 2))),
        *(case("wide", 2, quantization=choice, dtype="bfloat16") for choice in SPLIT),
    ]  # fmt: skip


def fails(folder: Path) -> list[tuple[Case, str]]:
    """Cases that are refused, and the error that transformers raises for them."""
    wide = str(folder / "wide")
    return [
        (Case(wide, 2, 1, "bnb-int8", "bfloat16"), "CB"),
        (Case(wide, 2, 1, "bnb-nf4", "bfloat16"), "NoneType"),
        (Case(str(folder / "odd_experts"), 2, 2), "Cannot evenly shard 3 experts"),
        (Case(str(folder / "llama"), 2, 2), "match nothing in LlamaForCausalLM"),
    ]


def write(name: str, folder: Path) -> None:
    """A checkpoint with random weights, scaled up so that the tokens of a text differ."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

    torch.manual_seed(0)
    dtype = torch.bfloat16 if name.startswith("wide") else torch.float32
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**MODELS[name]), dtype=dtype)
    model.generation_config = GenerationConfig(pad_token_id=0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(3)
    model.save_pretrained(folder / name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of all models."""
    found = tmp_path_factory.mktemp("checkpoints")
    for name in MODELS:
        write(name, found)
    return found


def run(ranks: int, cases: list[Case], folder: Path) -> list[list[Seen]]:
    """What each rank reports for each case."""
    path = folder / f"cases-{ranks}.json"
    path.write_bytes(msgspec.json.encode(cases))
    command = [sys.executable, "-m", "tests.support.rank_processes", str(ranks), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=550, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=list[list[Seen]])


@pytest.fixture(scope="module")
def two(folder: Path) -> Iterator[list[list[Seen]]]:
    """First the cases that work, then those that fail, in one pair of processes."""
    yield run(2, [*works(folder), *(case for case, _ in fails(folder))], folder)


def predicted(case: Case) -> tuple[int, int]:
    """(weights, KV cache) in bytes on rank 0."""
    mine = shard(resolve(case.folder), case.tensor, case.expert)
    size, last = (2 if case.dtype == "bfloat16" else 4), PROMPT + TOKENS - 1  # `generate` makes a static one as long
    cache = CACHES[case.cache]
    kv = kv_bytes(mine, cache, last, 1, size, last if cache.static else 0)
    return weight_bytes(mine, case.dtype, case.quantization), kv.total


def foreseen(case: Case) -> dict[str, int]:
    """Exchanges of a pass by kind."""
    found = msgspec.structs.asdict(exchanges(resolve(case.folder), case.tensor))
    return {kind: many for kind, many in found.items() if many}


@pytest.mark.full
def test_a_pair_of_processes_holds_what_was_predicted_and_writes_the_text_of_one(tmp_path: Path) -> None:
    write("llama", tmp_path)
    case = Case(str(tmp_path / "llama"), 2)
    (first,), (second,) = run(2, [case], tmp_path)
    ((alone,),) = run(1, [Case(case.folder, 1)], tmp_path)
    assert not first.error and (first.weights, first.kv) == predicted(case)
    assert first.ids == second.ids == alone.ids and first.weights < alone.weights
    assert first.exchanges == second.exchanges == foreseen(case) and not alone.exchanges


@pytest.mark.full
def test_weights_and_cache_of_a_rank_are_predicted_to_the_byte(two: list[list[Seen]], folder: Path) -> None:
    for index, case in enumerate(works(folder)):
        first, second = (rank[index] for rank in two)
        assert not first.error, (case, first.error)
        assert (first.weights, first.kv) == predicted(case), case
        assert second.weights <= first.weights and second.kv == first.kv


@pytest.mark.full
def test_the_exchanges_of_a_pass_are_predicted_by_kind(two: list[list[Seen]], folder: Path) -> None:
    for index, case in enumerate(works(folder)):
        assert [rank[index].exchanges for rank in two] == 2 * [foreseen(case)], case


@pytest.mark.full
def test_the_text_is_that_of_one_process(two: list[list[Seen]], folder: Path) -> None:
    """In float32; quantized products are summed in another order, but the ranks still agree."""
    dense = [case for case in works(folder) if case.dtype == "float32"]
    alone = run(1, [Case(case.folder, 1, cache=case.cache) for case in dense], folder)[0]
    for index, case in enumerate(works(folder)):
        first, second = (rank[index] for rank in two)
        assert first.ids == second.ids and len(first.ids) == TOKENS, case
        if case in dense:
            one = alone[dense.index(case)]
            assert first.ids == one.ids and first.weights < one.weights, case


@pytest.mark.full
def test_what_is_refused_fails(two: list[list[Seen]], folder: Path) -> None:
    for index, (case, says) in enumerate(fails(folder), len(works(folder))):
        assert all(says in rank[index].error for rank in two), (case, two[0][index])
    assert all(refusal(resolve(str(folder / "wide")), choice, 2) for choice in ("bnb-int8", "bnb-nf4"))


@pytest.mark.full
def test_heads_that_do_not_divide_fail_where_they_are_split_and_work_where_they_are_put_together(folder: Path) -> None:
    cases = [Case(str(folder / "llama"), 3), Case(str(folder / "olmo3"), 3), Case(str(folder / "phi3"), 3)]
    llama, olmo3, phi3 = run(3, cases, folder)[0]
    assert "is invalid for input of size" in llama.error
    assert [(one.weights, one.kv) for one in (olmo3, phi3)] == [predicted(case) for case in cases[1:]]
