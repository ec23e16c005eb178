"""Where accelerate itself puts blocks on GPUs that do not exist: models on the meta device."""

import json
import logging
from dataclasses import replace

import pytest

from tokendyno.backend.models import Matrix, resolve
from tokendyno.backend.plan import DYNAMIC, OFFLOADED, CacheKind
from tokendyno.backend.predict.kv import kv_bytes
from tokendyno.backend.predict.memory import by_device, peak_bytes
from tokendyno.backend.predict.parallel import layers_by_device, placed, spread
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import Shape
from tokendyno.backend.predict.weights import weight_bytes

ROOM_BYTES = 400 << 30


def held(name: str, devices: int) -> list[int]:
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
    found = _get_device_map(model, "auto", dict.fromkeys(range(devices), ROOM_BYTES), None)
    tensors = dict(model.named_parameters()) | {
        name: one for name, one in model.named_buffers() if not name.endswith("embed_scale")
    }
    sizes = [0] * devices
    for path, device in expand_device_map(found, list(tensors)).items():
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
    assert [weight_bytes(one) for one in spread(facts, "auto", devices)] == held(name, devices)


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
    held = [weight_bytes(one) for one in shares]
    assert held == [sum(one.size_bytes for one in found) for found in blocks] and sum(held) == weight_bytes(facts)
    assert sum((one.layer_kinds for one in shares), ()) == facts.layer_kinds
    with_norm = [one for one, found in zip(shares, blocks, strict=True) if any(b.place == "norm" for b in found)]
    assert [one.buffer_bytes for one in with_norm] == [facts.buffer_bytes]
    assert sum(one.buffer_bytes for one in shares) == facts.buffer_bytes


def test_the_first_device_keeps_room_for_the_largest_block_that_is_still_to_come() -> None:
    """Of sixteen equal layers beside a head as large as eight of them; to the last byte."""
    plain = resolve("random:Llama-3-8B")
    layer, head = Matrix("linear", 16, 1_000, 1_000), Matrix("head", 1, 8_000, 1_000)
    facts = replace(
        plain,
        layers=16,
        layer_kinds=plain.layer_kinds[:16],
        hidden=0,
        matrices=(layer, head),
        parameters=24_000_000,
        buffer_bytes=0,
        buffer_elements=0,
    )
    most = (24 * 2_000_000) // 2 + int(1.25 * 16_000_000)
    assert layers_by_device(facts, "bfloat16", 2) == ((most - 16_000_000) // 2_000_000, 2)
