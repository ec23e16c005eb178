"""The fused kernels of a step compute what plain torch does with many, however often a graph is replayed."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.gpu.test_matvec import build, with_kernels
from tests.gpu.test_own import Maker, prompt
from tests.support.tiny_models import WINDOW, tiny

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

SWITCHES = [
    ("attention", "FOLDED", False),
    ("attention", "NUMBERS", 4096),
    ("attention", "BY_WARPS", False),
    ("attention", "WARPS", 2),
    ("decoder_layer", "MAX_PREFETCH_BYTES", 0),
    ("steps", "ENDS", False),
    ("steps", "ROTATES", False),
]


def steps_of(model: Any, batch: int, count: int) -> list[Any]:
    """Steps, each with its own cache, after the same prompt."""
    from tokendyno.backend.worker.loop.cache import StaticSlotCache
    from tokendyno.backend.worker.loop.sampling import Sampling
    from tokendyno.backend.worker.loop.step import Step

    made = []
    for _ in range(count):
        step = Step(model, StaticSlotCache(model.config, 5 + 2 * WINDOW + 8), batch, Sampling(), 7)
        asked = prompt(5, batch, padded=2 if batch > 1 else 0)
        step.begin(asked.ids, asked.mask, 0, [11, 12])
        made.append(step)
    return made


def differing(one: Any, other: Any) -> list[str]:
    import torch

    names = ("token", "positions", "out", "scores", "done")
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in names}
    pairs |= {"counters": (one.cache.counters, other.cache.counters), "turns": (one.turns, torch.zeros_like(one.turns))}
    for number, slots in enumerate(zip(one.cache.slots, other.cache.slots, strict=True)):
        pairs[f"filled {number}"] = (slots[0].filled, slots[1].filled)
        if slots[0].added is not None:
            pairs[f"added {number}"] = (slots[0].added, slots[1].added)
    return [name for name, (a, b) in pairs.items() if not bool(((a == b) | ((a != a) & (b != b))).all())]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("batch", [1, 2, 3, 8])
@pytest.mark.parametrize("architecture", ["qwen3", "mistral", "olmo3", "gpt_oss"])
def test_a_step_ends_as_in_plain_torch(kernels: Any, architecture: str, batch: int, dtype: str) -> None:
    """Past the window; with ties, zeros of both signs, infinities, NaN, EOS, rows that are slices of larger ones."""
    import torch

    from tokendyno.backend.worker.loop.step import StepEnd

    with torch.inference_mode():
        mine, plain = steps_of(tiny(architecture, device="cuda"), batch, 2)
        torch.manual_seed(batch)
        for turn in range(2 * WINDOW + 6):
            words = (97, 5000, 151936)[turn % 3]
            logits = torch.randn(batch, words, device="cuda").mul(2).round().div(2).to(getattr(torch, dtype))
            if turn % 7 == 3:
                logits = torch.where(logits > 0, 0.0, -0.0).to(logits.dtype)
            if turn % 7 == 4:
                logits.fill_(-torch.inf)
            if turn % 7 == 1:
                logits[0, 40] = (torch.nan, torch.inf)[turn // 7 % 2]
            if turn % 7 == 5:
                logits[-1, 12] = 60
            if turn % 7 == 6:
                logits = torch.cat([logits, logits + 9], 1)[:, :words]
            StepEnd()(logits, plain)
            kernels.steps.end(logits, mine)
            assert not differing(mine, plain), turn


def recorded(run: Callable[[], None]) -> Any:
    """The CUDA graph of `run`, after one call that compiles its kernels."""
    import torch

    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def test_a_captured_step_end_loses_no_program_in_many_replays(kernels: Any) -> None:
    import torch

    with torch.inference_mode():
        step = steps_of(tiny("qwen3", device="cuda"), 1, 1)[0]
        logits = torch.randn(1, 151936, device="cuda", dtype=torch.bfloat16)
        wrong = torch.zeros((), dtype=torch.long, device="cuda")

        def run() -> None:
            for _ in range(20):
                logits.mul_(-1).add_(0.125)
                kernels.steps.end(logits, step)
                wrong.add_((step.token[:, 0] != logits.argmax(-1)).sum() + step.turns.sum())

        graph = recorded(run)
        for _ in range(100):
            step.cache.counters.zero_()
            logits.normal_()
            graph.replay()
        assert int(wrong) == 0


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen3"])
def test_angles_are_those_of_transformers(kernels: Any, architecture: str, dtype: str) -> None:
    import torch

    rotary = tiny(architecture, device="cuda").model.rotary_emb
    x = torch.zeros(1, device="cuda", dtype=getattr(torch, dtype))
    for positions in ([[0]], [[1]], [[131071]], [[5], [70000]]):
        places = torch.tensor(positions, device="cuda")
        assert kernels.steps.can_rotate(rotary, x, places)
        mine = kernels.steps.rotary(rotary.inv_freq, places, 1.25, x.dtype)
        rotary.attention_scaling, before = 1.25, rotary.attention_scaling
        wanted = rotary(x, places)
        rotary.attention_scaling = before
        for one, other in zip(mine, wanted, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
            assert torch.allclose(one.float(), other.float(), rtol=0, atol=1e-6 if dtype == "float32" else 1e-2)


def test_frequencies_that_change_and_several_tokens_are_left_to_the_model(kernels: Any) -> None:
    import torch

    one, many = torch.zeros(1, 1, device="cuda").long(), torch.zeros(1, 2, device="cuda").long()
    for kind, positions in (("dynamic", one), ("longrope", one), ("default", many)):
        assert not kernels.steps.can_rotate(SimpleNamespace(rope_type=kind), one.float(), positions)


@pytest.mark.parametrize(("heads", "group", "size", "length"), [(8, 2, 128, 1000), (8, 4, 128, 3000), (2, 5, 64, 90)])
def test_attention_in_one_kernel_is_that_of_two_in_many_replays(
    kernels: Any, heads: int, group: int, size: int, length: int
) -> None:
    import torch

    layers = 12

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    qkv = random(layers, (group + 2) * heads * size)
    keys, values, cos, sin = random(1, heads, length, size), random(1, heads, length, size), random(size), random(size)
    filled = torch.rand(1, length, device="cuda") < 0.8
    slot, turns = torch.tensor([length - 9], device="cuda"), torch.zeros(256, dtype=torch.int32, device="cuda")
    filled[0, slot] = True
    outs = torch.zeros(2, layers, group * heads * size, device="cuda", dtype=torch.bfloat16)
    wrong = torch.zeros((), dtype=torch.long, device="cuda")

    def run() -> None:
        for layer in range(layers):
            for out, more in zip(outs, ({"turns": turns}, {}), strict=True):
                kernels.attention.attend(
                    qkv[layer], cos, sin, keys, values, slot, filled, out[layer], size**-0.5, **more
                )
        wrong.add_(((outs[0] - outs[1]).float().abs() > 0.02).sum() + turns.sum() + outs.isnan().sum())

    graph = recorded(run)
    for _ in range(200):
        qkv.normal_()
        graph.replay()
    assert int(wrong) == 0


@pytest.mark.parametrize(("module", "switch", "off"), [("steps", "ENDS", True), *SWITCHES])
def test_the_text_is_the_same_with_each_piece_off(
    module: str, switch: str, off: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from kernels import get_loaded_kernels

    from tests.support.decode_loop import greedy

    expected = greedy(build("qwen3"), prompt(9))
    model = with_kernels(build("qwen3"))
    for layer in (model.tokendyno_step_end, model.model.rotary_emb):
        assert layer.forward.__func__ is not type(layer).forward
    package = next(one.module for one in get_loaded_kernels() if str(one.metadata.name) == "tokendyno-matvec")
    monkeypatch.setattr(getattr(package, module), switch, off)
    assert torch.equal(Maker(model, 60)(prompt(9)), expected)
