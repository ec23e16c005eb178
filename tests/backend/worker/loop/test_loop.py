"""The custom decode loop generates the tokens of `generate`, on every architecture of the catalogue, and stops where
it should."""

from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from tests.support.counted_models import COUNTED
from tests.support.decode_loop import Told, greedy, own, prompt
from tests.support.tiny_models import CONFIGS, STATES, tiny
from tokendyno.backend.worker.loop.cache import StaticSlotCache, StaticSlotLayer, to_fp8
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tokendyno.backend.worker.loop.sampling import Sampling


def test_a_model_that_counts_positions_by_the_cache_writes_the_text_of_generate() -> None:
    config = AutoConfig.for_model(**COUNTED["an encoder's decoder"])
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).eval()
    model.generation_config = GenerationConfig(pad_token_id=0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(10)
    assert torch.equal(own(model, prompt(5)), greedy(model, prompt(5)))


def test_the_cache_is_reused_and_may_be_longer_than_the_text() -> None:
    model = tiny("olmo3")
    cache, loop = StaticSlotCache(model.config, 60), DecodeLoop(model, 0, [])
    for start in (prompt(5), prompt(20), prompt(5)):
        assert torch.equal(own(model, start, cache=cache, loop=loop), greedy(model, start))


@pytest.mark.parametrize("batch", [1, 3])
def test_an_eos_ends_each_row_as_in_generate(batch: int) -> None:
    model = tiny("qwen3")
    start = prompt(5, batch)
    free = greedy(model, start)
    eos = [int(free[0, 12]), int(free[-1, 9])]
    expected = greedy(model, start, eos=eos)
    assert expected.shape[1] < free.shape[1]
    assert torch.equal(own(model, start, eos=eos), expected)


def test_eos_is_ignored_on_request() -> None:
    model = tiny("qwen3")
    start = prompt(5)
    free = greedy(model, start)
    loop = DecodeLoop(model, 0, [int(free[0, 8])])
    assert torch.equal(own(model, start, loop=loop), free)


def test_it_stops_when_the_meter_says_so() -> None:
    start = prompt(5)
    meter = Told(most=4)
    assert own(tiny("llama"), start, told=meter).shape[1] == 5 + 4
    assert len(meter.ids) == 4


def test_a_single_token_needs_no_decode_step() -> None:
    model, start = tiny("llama"), prompt(5)
    loop = DecodeLoop(model, 0, [])
    assert torch.equal(own(model, start, 1, loop=loop), greedy(model, start, 1)) and loop.steps == 0


def test_the_same_seed_gives_the_same_text_and_another_seed_another() -> None:
    model, start, warm = tiny("gpt_oss"), prompt(6, 2), Sampling(1.5, 20, 0.9)
    texts = [own(model, start, seed=seed, sampling=warm).tolist() for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert texts[0][0][6:] != texts[0][1][6:], "rows draw the same numbers"


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("architecture", [*CONFIGS, *STATES])
def test_one_compiled_graph_serves_a_run_past_the_window(architecture: str) -> None:
    from torch._dynamo.utils import counters

    model, start = tiny(architecture), prompt(5, 2)
    torch._dynamo.reset()
    counters.clear()
    assert torch.equal(own(model, start, compile_mode="default"), greedy(model, start))
    assert counters["stats"]["unique_graphs"] == 1
    assert not counters["graph_break"]


# --- keys and values in 8 bits ----------------------------------------------------------------------------------------


def test_numbers_in_8_bits_are_near_and_the_largest_of_a_head_stays() -> None:
    """Three bits of mantissa: at most 1/16 away, but for what is less than 1/28,672 of the head's largest number."""
    torch.manual_seed(0)
    states = torch.randn(2, 3, 5, 16) * torch.logspace(-6, 4, 5)[:, None]
    states[0, 0, 0] = 0
    codes, scales = to_fp8(states)
    back = codes.float() * scales[..., None]
    assert codes.dtype == torch.float8_e4m3fn and scales.shape == states.shape[:3]
    largest = states.abs().amax(-1, keepdim=True)
    assert bool(((back - states).abs() <= states.abs() / 16 + largest / 448 / 512).all())
    assert torch.allclose(back.abs().amax(-1, keepdim=True), largest)


def test_a_cache_in_8_bits_holds_the_same_token_by_token_as_at_once() -> None:
    """And what attention gets is what is held, zeros where no token is."""
    config = tiny("llama").config
    torch.manual_seed(0)
    states = [torch.randn(2, 2, 7, 8, dtype=torch.bfloat16) for _ in range(2)]
    whole, single = StaticSlotCache(config, 12, eight_bits=True), StaticSlotCache(config, 12, eight_bits=True)
    whole.update(*states, 0)
    single.update(*(one[:, :, :4] for one in states), 0)
    single.begin(torch.ones(2, 4))
    for token in range(4, 7):
        attended = single.update(*(one[:, :, token : token + 1] for one in states), 0)
        single.advance()
    for name in ("keys", "values", "key_scales", "value_scales"):
        one, other = (getattr(cache.layers[0], name) for cache in (whole, single))
        assert torch.equal(one.float(), other.float())
    for read, states_of in zip(attended, states, strict=True):
        assert read.dtype == torch.bfloat16 and read.shape == (2, 2, 12, 8)
        codes, scales = to_fp8(states_of)
        assert torch.equal(read[:, :, :7], (codes.float() * scales[..., None]).bfloat16())
        assert not read[:, :, 7:].any()


@pytest.mark.parametrize("batch", [1, 3])
def test_text_of_a_cache_in_8_bits_is_that_of_a_model_whose_keys_and_values_are_rounded(batch: int) -> None:
    model, start = tiny("llama"), prompt(9, batch, padded=2 if batch > 1 else 0)
    ids = own(model, start, cache=StaticSlotCache(model.config, 60, eight_bits=True))

    class Rounds(StaticSlotLayer):
        def update(self, *states: Any, **kwargs: Any) -> Any:
            rounded = [to_fp8(one) for one in states[:2]]
            return super().update(*(codes.float() * scales[..., None] for codes, scales in rounded), **kwargs)

    other = StaticSlotCache(model.config, 60)
    other.layers = [Rounds(layer, layer.slots) for layer in other.layers]
    assert torch.equal(ids, own(model, start, cache=other))
    assert not torch.equal(ids, own(model, start, cache=StaticSlotCache(model.config, 60)))
