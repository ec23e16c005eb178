"""Attention to a cache in 8 bits is that of double precision to what its numbers stand for, in captured steps too."""

from typing import Any

import pytest

from tests.gpu.test_long_attention import SHAPES, attended, away, case, counted, expected_of
from tests.gpu.test_matvec import build, with_kernels
from tests.gpu.test_own import prompt
from tests.support.whole_layers import MODELS

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

NAMES = ("key", "value")


def rounded(shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
    """What a call gets, with keys and values in 8 bits and their scales."""
    from tokendyno.backend.worker.loop.cache import to_fp8

    given = case(shape, dtype)
    (keys, key_scales), (values, value_scales) = (to_fp8(3 * given[name]) for name in ("keys", "values"))
    return given | {"keys": keys, "values": values, "key_scales": key_scales, "value_scales": value_scales}


@pytest.mark.parametrize("shape", [*SHAPES, (8, 2, 128, 300, 200, 1), (2, 4, 32, 60, 12, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("new", ["small", "large"])
def test_it_is_that_of_double_precision(kernels: Any, shape: tuple[int, ...], dtype: str, new: str) -> None:
    """With a new token that has little weight, and with one that has most of it."""
    import torch

    from tokendyno.backend.worker.loop.cache import to_fp8

    heads, group, size, _, used, texts = shape
    given = rounded(shape, dtype)
    before = {name: given[name].clone() for name in ("keys", "values", "key_scales", "value_scales")}
    if new == "large":
        given["qkv"].view(texts, -1, size)[:, heads * group : heads * (group + 1)] *= 4
    norms = tuple(torch.randn(size, device="cuda", dtype=getattr(torch, dtype)) for _ in range(2))
    sinks = 3 * torch.randn(group * heads, device="cuda")
    of_cache = {name: given[name] for name in ("key_scales", "value_scales")}
    for which, with_sinks in (((None, None), None), (norms, sinks)):
        out = attended(kernels, given, which, with_sinks, **of_cache)
        keys, values = (given[f"{name}s"].double() * given[f"{name}_scales"].double()[..., None] for name in NAMES)
        expected, *states = expected_of(given, keys, values, which, with_sinks)
        assert away(out, expected) < {"bfloat16": 4e-3, "float16": 2e-3}[dtype]
        for name, wanted in zip(NAMES, states, strict=True):
            codes, scales = to_fp8(wanted.float())
            mine, of_mine = given[f"{name}s"][:, :, used], given[f"{name}_scales"][:, :, used]
            assert torch.allclose(of_mine, scales, rtol=1e-3)
            assert float((mine.float() != codes.float()).float().mean()) < 0.02  # sums were rounded otherwise
        for name, old in before.items():
            held, old = ((one.view(torch.uint8) if one.element_size() == 1 else one) for one in (given[name], old))
            held[:, :, used] = old[:, :, used]
            assert torch.equal(held, old)  # no other slot was written


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("architecture", ["qwen3", "llama"])
def test_captured_text_is_that_of_plain_steps(architecture: str, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the kernels read the cache, in each layer of each step that is not captured."""
    import torch
    from kernels import get_loaded_kernels

    from tests.support.decode_loop import GREEDY, Told
    from tokendyno.backend.worker.loop.cache import StaticSlotCache
    from tokendyno.backend.worker.loop.loop import DecodeLoop

    monkeypatch.setitem(MODELS, architecture, MODELS[architecture] | {"head_dim": 32})
    model = with_kernels(build(architecture, "bfloat16"))
    package = next(one.module for one in get_loaded_kernels() if str(one.metadata.name) == "tokendyno-matvec")
    calls = counted(package.attention_long, monkeypatch)
    asked, texts = prompt(9, batch, padded=2 if batch > 1 else 0), []
    for captured in (False, True):
        loop = DecodeLoop(model, 0, [], None, captured)
        cache = StaticSlotCache(model.config, 60, eight_bits=True)
        with torch.inference_mode():
            texts.append(loop.generate(asked.ids, asked.mask, cache, 24, Told(), GREEDY, 0, True))
        if not captured:
            assert len(calls) >= 23 * len(cache.layers)
    assert torch.equal(*texts)


@pytest.mark.parametrize("architecture", ["qwen3", "llama"])
def test_scores_are_those_of_the_models_own_attention_to_the_same_cache(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each step of one text, as near as bfloat16 is."""
    import torch

    from tokendyno.backend.worker.loop.cache import StaticSlotCache
    from tokendyno.backend.worker.loop.sampling import Sampling
    from tokendyno.backend.worker.loop.step import Step

    monkeypatch.setitem(MODELS, architecture, MODELS[architecture] | {"head_dim": 32})

    def scores(with_ours: bool) -> Any:
        model = build(architecture, "bfloat16")
        model = with_kernels(model) if with_ours else model
        step = Step(model, StaticSlotCache(model.config, 60, eight_bits=True), 1, Sampling(), 0, given=True)
        asked, text = prompt(9), prompt(30).ids[0, 9:].tolist()
        assert step.given is not None
        step.given.fill(text)
        with torch.inference_mode():
            step.begin(asked.ids, asked.mask, 0, [])
            with step.decoding():
                for _ in text[1:]:
                    step()
        return step.given.logits[: len(text)].clone()

    ours, own = scores(True), scores(False)
    assert away(ours, own.double()) < 0.05
