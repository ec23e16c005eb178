"""The shard of rank 0 against transformers' own sharding of every architecture, and what cannot be split."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.backend.predict.test_weights import TINY, VARIANTS
from tests.support.sharded import first, ranks
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import Matrix, ModelFacts, catalogue, resolve
from tokendyno.backend.models.families import FAMILIES
from tokendyno.backend.plan import DYNAMIC, OFFLOADED, CacheKind, Exchanges
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.memory import by_device, peak_bytes
from tokendyno.backend.predict.parallel import (
    MAX_GPUS,
    check_sizes,
    choice_of,
    exchanges,
    group_sizes,
    layers_by_device,
    placed,
    plan_of,
    refusal,
    shard,
    spread,
)
from tokendyno.backend.predict.roofline import bound, exchanged_bytes, work
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import weight_bytes

PLANS = {name for name, family in FAMILIES.items() if family.parallel != "none"}
CAN = [entry for entry in catalogue() if json.loads(entry.config)["model_type"] in PLANS]
SPLIT = [change for change in VARIANTS if change["model_type"] in PLANS]


def works(facts: ModelFacts, gpus: int) -> bool:
    try:
        check_sizes(facts, *group_sizes(facts, gpus))
    except InputError:
        return False
    return True


@pytest.mark.parametrize("gpus", [4, *(pytest.param(gpus, marks=pytest.mark.full) for gpus in (2, 8))])
def test_every_catalogue_model_is_split_as_transformers_does(gpus: int) -> None:
    with ranks(gpus) as mesh:
        seen = 0
        for entry in CAN:
            facts = resolve(f"random:{entry.name}")
            if not works(facts, gpus):
                continue
            seen += 1
            tensor, expert = group_sizes(facts, gpus)
            mine, owned = shard(facts, tensor, expert), expert > 1
            expected = first(json.loads(entry.config), mesh, owned, facts.dtype)
            assert (weight_bytes(mine), mine.kv_heads) == expected, entry.name
    assert seen >= 4


@pytest.mark.parametrize("gpus", [2, 3, 5])
def test_every_architecture_is_split_in_its_variants_where_nothing_divides_either(gpus: int, tmp_path: Path) -> None:
    """Vocabulary and widths that do not divide give rank 0 more; heads are chosen to divide."""
    with ranks(gpus) as mesh:
        for change in SPLIT:
            config = TINY | change | {"num_attention_heads": 2 * gpus, "num_key_value_heads": gpus}
            config |= {"hidden_size": 16 * gpus, "head_dim": 8, "intermediate_size": 97, "vocab_size": 101}
            if "num_local_experts" in change:
                config |= {"num_local_experts": 2 * gpus, "num_experts": 2 * gpus}
            (tmp_path / "config.json").write_text(json.dumps(config))
            facts = resolve(str(tmp_path))
            tensor, expert = group_sizes(facts, gpus)
            mine, owned = shard(facts, tensor, expert), expert > 1
            assert weight_bytes(mine, "float32") == first(config, mesh, owned).weights, change


def test_experts_are_shared_out_whole_or_each_is_split(tmp_path: Path) -> None:
    """Expert parallelism of other models, and tensor parallelism alone of gpt-oss, which splits its head."""
    with ranks(2) as mesh:
        for model, expert in (("mixtral", 2), ("qwen3_moe", 2), ("gpt_oss", 1)):
            config = TINY | {"model_type": model, "num_local_experts": 6, "num_experts": 6, "moe_intermediate_size": 33}
            config |= {"head_dim": 8, "num_experts_per_tok": 2}
            (tmp_path / "config.json").write_text(json.dumps(config))
            facts = resolve(str(tmp_path))
            assert weight_bytes(shard(facts, 2, expert), "float32") == first(config, mesh, expert == 2).weights


def test_the_plans_are_those_of_the_config_classes() -> None:
    from transformers import AutoConfig

    for name, family in FAMILIES.items():
        config = AutoConfig.for_model(name)
        plan, experts = config.base_model_tp_plan or {}, config.base_model_ep_plan or {}
        keys = [style for key, style in plan.items() if key.rsplit(".", 1)[-1] in ("k_proj", "qkv_proj")]
        styles = {"colwise": "heads", "colwise_gather_output": "gathered"}
        assert family.parallel == (styles[keys[0]] if keys else "experts" if experts else "none"), name
        assert bool(experts) == bool(family.moe)


@pytest.mark.parametrize(
    ("model", "tensor", "expert", "says"),
    [
        ("Llama-3-8B", 3, 1, "8 key/value heads cannot be split evenly. Take one of 1, 2, 4, 8."),
        ("Gemma-3-1b", 2, 1, "1 key/value head cannot be split evenly. Take one GPU."),
        ("gpt-oss-20b", 3, 3, "8 key/value heads cannot be split evenly. Take one of 1, 2, 4, 8."),
        ("gpt-oss-20b", 4, 2, "same number of GPUs as tensor parallelism"),
        ("Llama-3-8B", 2, 2, "no experts. Take one GPU."),
        ("gpt2", 2, 1, "no parallel plan for gpt2. Take one GPU."),
        ("bert-base-uncased", 2, 1, "no parallel plan for bert"),
        ("Llama-3-8B", 0, 1, "is 0; give a whole number from 1 to 64"),
        ("Llama-3-8B", -2, 1, "is -2; give"),
        ("Llama-3-8B", MAX_GPUS + 1, 1, "is 65; give"),
        ("Llama-3-8B", 10**9, 1, "is 1,000,000,000; give"),
    ],
)
def test_what_cannot_be_split_says_what_can(model: str, tensor: int, expert: int, says: str) -> None:
    with pytest.raises(InputError) as error:
        shard(resolve(model), tensor, expert)
    assert says in str(error.value)


def test_experts_that_do_not_divide_name_the_numbers_that_do() -> None:
    facts = replace(resolve("random:gpt-oss-20b"), experts=12)
    with pytest.raises(InputError, match=r"its 12 experts cannot be split evenly. Take one of 1, 2, 4\."):
        check_sizes(facts, 8, 8)
    check_sizes(facts, 4, 4)


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ({"model_type": "llama"}, (9, 1)),
        ({"model_type": "olmo2"}, (9, 13)),  # q, k and v are put together in each layer
        ({"model_type": "phi3"}, (9, 9)),  # one matrix for all three, and gate with up
        ({"model_type": "mixtral"}, (9, 1)),
        ({"model_type": "qwen3_moe", "mlp_only_layers": [1]}, (9, 1)),
        ({"model_type": "gpt_oss"}, (9, 1)),  # by our own plan
    ],
)
def test_the_exchanges_of_a_pass_are_those_that_were_counted(
    change: dict[str, Any], seen: tuple[int, int], tmp_path: Path
) -> None:
    """Four layers on two processes."""
    config = (
        TINY | {"num_hidden_layers": 4, "num_local_experts": 4, "num_experts": 4, "num_experts_per_tok": 2} | change
    )
    (tmp_path / "config.json").write_text(json.dumps(config))
    facts = resolve(str(tmp_path))
    assert exchanges(facts, 2) == Exchanges(*seen) and exchanges(facts, 1) == Exchanges()
    assert exchanges(facts, 2).total == sum(seen)


def test_an_architecture_that_is_not_in_the_table_has_no_plan() -> None:
    facts = replace(resolve("Llama-3-8B"), architecture="granite")
    assert plan_of(facts) == "none" and shard(facts) is facts
    with pytest.raises(InputError, match="how transformers splits granite is not modeled"):
        peak_bytes(Shape(facts, Setup(tensor_parallel=2), 1, 1))


def test_one_gpu_is_left_alone() -> None:
    for entry in catalogue():
        facts = resolve(f"random:{entry.name}")
        assert shard(facts, *group_sizes(facts, 1)) is facts
        assert peak_bytes(Shape(facts, Setup(tensor_parallel=1), 1, 1)) == peak_bytes(Shape(facts, Setup(), 1, 1))


def test_all_parts_of_the_peak_are_one_gpus() -> None:
    facts = resolve("random:Llama-3-8B")
    one, four = (peak_bytes(Shape(facts, Setup(device="cuda", tensor_parallel=n), 4_000, 100)) for n in (1, 4))
    assert four.weights == weight_bytes(shard(facts, 4)) == pytest.approx(one.weights / 4, rel=0.001)
    assert four.kv == one.kv // 4 == kv_bytes(shard(facts, 4), DYNAMIC, 4_099, 1, 2).total
    assert one.workspace / 4 < four.workspace < one.workspace  # the residual stream is replicated
    assert four.runtime_bytes > one.runtime_bytes / 2  # and so is the context


def test_where_attention_is_put_together_again_the_cache_is_whole() -> None:
    facts = resolve("random:Olmo-3-7B")
    whole, shared = (peak_bytes(Shape(facts, Setup(tensor_parallel=n), 1, 1)) for n in (1, 2))
    assert shared.kv == whole.kv and shared.weights < 0.6 * whole.weights


def test_our_plan_for_gpt_oss_splits_attention_and_its_sinks_too() -> None:
    facts = resolve("random:gpt-oss-20b")
    whole = peak_bytes(Shape(facts, Setup(), 1, 1))
    for expert in (1, 2):
        shared = peak_bytes(Shape(facts, Setup(tensor_parallel=2, expert_parallel=expert), 1, 1))
        assert shared.kv == whole.kv // 2 and 0.5 < shared.weights / whole.weights < 0.51
    with pytest.raises(InputError, match="its experts' width of 33 cannot be split evenly"):
        check_sizes(replace(facts, intermediate=33), 2)


def test_the_floor_is_that_of_one_gpus_bytes() -> None:
    fast = PeakRates(4.3e12, 989e12, "a test")
    facts, setup = resolve("random:Llama-3-8B"), Setup(tensor_parallel=2)
    whole, shared = bound(facts, Setup(), 4_096, 4, fast), bound(facts, setup, 4_096, 4, fast)
    assert shared.seconds == pytest.approx(whole.seconds / 2, rel=0.001) and shared.kv_bytes == whole.kv_bytes // 2
    assert shared.flops == pytest.approx(whole.flops / 2, rel=0.001)
    oss = resolve("random:gpt-oss-20b")
    one, four = (bound(oss, Setup(tensor_parallel=n, expert_parallel=n), 64, 8, fast) for n in (1, 4))
    assert 1 / 4 < four.weight_bytes / one.weight_bytes < 0.5 and four.kv_bytes == one.kv_bytes // 4


def test_the_floor_has_what_the_ranks_exchange() -> None:
    """Llama 3 8B at batch 4 over two ranks: 65 all-reduces of 4,096 numbers and the logits, in bf16."""
    facts, setup = resolve("random:Llama-3-8B"), Setup(tensor_parallel=2)
    linked = PeakRates(4.3e12, 989e12, "a test", 450e9, "a link")
    unlinked = replace(linked, link_bytes_per_s=None)
    plain, counted = (bound(facts, setup, 4_096, 4, rates) for rates in (unlinked, linked))
    assert counted.exchanged_bytes == 4 * (65 * 4_096 * 2 + 128_256) * 2 // 2 == plain.exchanged_bytes
    assert counted.seconds == pytest.approx(plain.seconds + counted.exchanged_bytes / 450e9)
    assert plain.exchange_s is None and "link is unknown" in work(plain, unlinked)
    said = work(counted, linked)
    assert "2.52 MiB exchanged between the ranks in 0.00587 ms" in said and "450 GB/s, a link" in said
    alone = bound(facts, Setup(), 4_096, 4, linked)
    assert alone.exchanged_bytes == 0 and "rank" not in work(alone, linked)


@pytest.mark.parametrize(
    ("name", "gpus", "whole"),
    [
        ("random:Olmo-3-7B", 2, 32 * 3 * 4_096),  # queries, keys and values of every layer are put together
        ("random:gpt-oss-20b", 4, 0),
    ],
)
def test_what_is_put_together_counts_for_the_part_that_a_rank_lacks(name: str, gpus: int, whole: int) -> None:
    facts = resolve(name)
    counted = exchanges(facts, gpus)
    together = facts.vocab + whole
    expected = (2 * counted.all_reduce * facts.hidden + together) * 2 * (gpus - 1) / gpus
    assert exchanged_bytes(facts, gpus, 1, 2) == round(expected)


@pytest.mark.parametrize(
    ("model", "choices"),
    [
        ("random:Llama-3-8B", {2: "tensor-2", 4: "tensor-4", 8: "tensor-8", 3: "", 16: "", 5: ""}),
        ("random:gpt-oss-20b", {2: "expert-2", 4: "expert-4", 8: "expert-8", 3: ""}),
    ],
)
def test_an_arm_has_two_four_or_eight_gpus(model: str, choices: dict[int, str]) -> None:
    """As docs/axes.md has them."""
    assert {gpus: choice_of(resolve(model), gpus) for gpus in choices} == choices


def test_packed_weights_that_fail_when_split_are_refused_and_others_are_not() -> None:
    llama, oss, packed = (resolve(name) for name in ("Llama-3-8B", "random:gpt-oss-20b", "gpt-oss-20b"))
    assert "bitsandbytes" in refusal(llama, "bnb-nf4", 2) and not refusal(llama, "bnb-nf4", 1)
    assert "bitsandbytes" in refusal(oss, "bnb-nf4", 2, 2)
    for choice in ("none", "torchao-int8", "torchao-fp8", "quanto-int8", "quanto-int4"):
        assert not refusal(llama, choice, 2)
    for choice, facts in (("none", packed), ("mxfp4", oss)):
        assert not any(refusal(facts, choice, tensor, expert) for tensor, expert in ((1, 1), (2, 1), (2, 2), (8, 8)))
        assert "2,880 is 90 blocks of MXFP4" in refusal(facts, choice, 4)
    assert not refusal(packed, "mxfp4-dequantized", 2, 2) and not refusal(oss, "none", 2)
    for facts in (packed, oss):
        assert "dequantized expert by expert" in refusal(facts, "mxfp4-dequantized", 2)


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_more_gpus_never_hold_more_each(gpus: int) -> None:
    for entry in CAN:
        facts: Any = resolve(f"random:{entry.name}")
        if works(facts, gpus):
            setups = [
                Setup(tensor_parallel=t, expert_parallel=e)
                for t, e in (group_sizes(facts, gpus // 2), group_sizes(facts, gpus))
            ]
            fewer, more = (peak_bytes(Shape(facts, setup, 500, 100, 2)) for setup in setups)
            assert more.weights < fewer.weights and more.kv <= fewer.kv and more.tensors < fewer.tensors


# --- layers spread by accelerate -------------------------------------------------------------------

ROOM_BYTES = 400 << 30


def placed_bytes(name: str, devices: int) -> list[int]:
    """Bytes of parameters and buffers that accelerate would put on each GPU."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.integrations.accelerate import _get_device_map, expand_device_map

    logging.getLogger("accelerate.utils.modeling").setLevel(logging.ERROR)  # these GPUs do not exist
    facts = resolve(name)
    values = json.loads(facts.source.config_json)
    config = AutoConfig.for_model(values.pop("model_type"), **values)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, facts.dtype))
    device_map = _get_device_map(model, "auto", dict.fromkeys(range(devices), ROOM_BYTES), None)
    tensors = dict(model.named_parameters()) | {
        name: buffer for name, buffer in model.named_buffers() if not name.endswith("embed_scale")
    }
    sizes = [0] * devices
    for path, device in expand_device_map(device_map, list(tensors)).items():
        sizes[int(device)] += tensors[path].nbytes
    return sizes


@pytest.mark.parametrize(
    ("name", "devices", "layers"),
    [
        ("random:Llama-3-8B", 2, (16, 16)),
        ("random:Llama-3-8B", 4, (7, 12, 12, 1)),
        ("random:Qwen3-0.6B", 2, (20, 8)),  # tied: the embedding comes with the head, and is never divided
        ("random:gpt-oss-20b", 2, (12, 12)),
        ("random:Gemma-3-1b", 4, (11, 15, 0, 0)),  # two GPUs stay empty
    ],
)
def test_the_bytes_of_each_gpu_are_those_of_accelerates_own_map(
    name: str, devices: int, layers: tuple[int, ...]
) -> None:
    facts = resolve(name)
    assert layers_by_device(facts, "auto", devices) == layers
    assert [weight_bytes(one) for one in spread(facts, "auto", devices)] == placed_bytes(name, devices)


@pytest.mark.parametrize(
    ("name", "cache"),
    [("random:gpt-oss-20b", DYNAMIC), ("random:Qwen3-0.6B", DYNAMIC), ("random:Qwen3-0.6B", OFFLOADED)],
)
def test_a_device_has_the_cache_of_its_layers_and_the_peak_is_the_first_ones(name: str, cache: CacheKind) -> None:
    """Qwen3-0.6B has 20 layers on the first device and 8 on the second."""
    facts, setup = resolve(name), Setup(device="cuda", capability=(9, 0), devices=2, cache=cache)
    one, two = by_device(Shape(facts, setup, 300, 20, 2))
    several, alone = (
        peak_bytes(Shape(facts, setup, 300, 20, 2)),
        peak_bytes(Shape(facts, Setup(device="cuda"), 300, 20, 2)),
    )
    assert one.kv + two.kv == several.kv == alone.kv == kv_bytes(facts, DYNAMIC, 319, 2, 2, 0, 300).total
    assert several.weights == alone.weights == one.weights + two.weights
    assert (several.tensors, several.total) == (one.tensors, one.total)
    assert several.kv_elsewhere == two.kv + one.kv_elsewhere and (one.kv_elsewhere > 0) is (cache == OFFLOADED)
    assert several.fullest == max(one.total, two.total) < 0.9 * alone.total


@pytest.mark.parametrize("devices", [2, 3, 4, 8])
@pytest.mark.parametrize("name", ["Llama-3-8B", "Qwen3-0.6B", "gpt-oss-20b", "Gemma-3-1b", "Olmo-3-7B"])
def test_each_device_holds_its_blocks_and_all_of_them_hold_the_model(name: str, devices: int) -> None:
    facts = resolve(f"random:{name}")
    blocks = placed(facts, "auto", devices)
    shares = spread(facts, "auto", devices)
    sizes = [weight_bytes(share) for share in shares]
    assert sizes == [sum(share.size_bytes for share in group) for group in blocks] and sum(sizes) == weight_bytes(facts)
    assert sum((share.layer_kinds for share in shares), ()) == facts.layer_kinds
    with_norm = [share for share, group in zip(shares, blocks, strict=True) if any(b.place == "norm" for b in group)]
    assert [share.buffer_bytes for share in with_norm] == [facts.buffer_bytes]
    assert sum(share.buffer_bytes for share in shares) == facts.buffer_bytes


def test_the_first_device_keeps_room_for_the_largest_block_that_is_still_to_come() -> None:
    """Of sixteen equal layers beside a head as large as eight of them; to the last byte."""
    llama = resolve("random:Llama-3-8B")
    layer, head = Matrix("linear", 16, 1_000, 1_000), Matrix("head", 1, 8_000, 1_000)
    facts = replace(
        llama,
        layers=16,
        layer_kinds=llama.layer_kinds[:16],
        hidden=0,
        matrices=(layer, head),
        parameters=24_000_000,
        buffer_bytes=0,
        buffer_elements=0,
    )
    most = (24 * 2_000_000) // 2 + int(1.25 * 16_000_000)
    assert layers_by_device(facts, "bfloat16", 2) == ((most - 16_000_000) // 2_000_000, 2)
