"""Keys and values that a run kept are those of one pass over its text, wherever a layer keeps a token."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import DynamicCache, QuantizedCache, StaticCache

from backend.worker.loop.cache import StaticSlotCache
from backend.worker.prove.chosen import checked
from backend.worker.prove.kept import OnePass, can_be_compared, compare
from tests.support.tiny_models import WINDOW, tiny

IDS = torch.arange(30)[None] * 7 % 97
MAKE: dict[str, Callable[[Any], Any]] = {
    "growing": lambda config: DynamicCache(config=config),
    "without windows": lambda config: DynamicCache(),
    "static": lambda config: StaticCache(config, 40),
}


def filled(kind: str, architecture: str = "llama", ids: Any = IDS, mask: Any = None) -> Any:
    """By a prompt of all tokens but five, and steps."""
    model, cache = tiny(architecture), MAKE[kind](tiny(architecture).config)
    places: Any = None if mask is None else (mask.cumsum(-1) - 1).clamp(min=0)
    with torch.no_grad():
        for begin, end in ((0, ids.shape[1] - 5), *((at, at + 1) for at in range(ids.shape[1] - 5, ids.shape[1]))):
            given = {} if mask is None else {"attention_mask": mask[:, :end], "position_ids": places[:, begin:end]}
            model(input_ids=ids[:, begin:end], past_key_values=cache, use_cache=True, **given)
    return cache


def of_pass(architecture: str = "llama", ids: Any = IDS) -> Any:
    kept = OnePass()
    with torch.no_grad():
        found = tiny(architecture)(input_ids=ids, past_key_values=kept, use_cache=True).logits
        torch.testing.assert_close(found, tiny(architecture)(input_ids=ids, use_cache=False).logits)
    return kept


@pytest.mark.parametrize("architecture", ["llama", "gpt_oss"])
@pytest.mark.parametrize("kind", MAKE)
def test_an_intact_cache_keeps_what_a_pass_gives(kind: str, architecture: str) -> None:
    cache = filled(kind, architecture)
    assert can_be_compared(cache)
    assert compare(cache, of_pass(architecture), 0, window=WINDOW) == (4, 0)


@pytest.mark.parametrize("part", ["keys", "values"])
@pytest.mark.parametrize("kind", MAKE)
def test_a_layer_that_kept_something_else_is_counted(kind: str, part: str) -> None:
    cache = filled(kind)
    for given in (0, torch.nan):
        getattr(cache.layers[2], part)[:, :, 10:14] = given
        assert compare(cache, of_pass(), 0).strange == 1


@pytest.mark.parametrize("row", [1, 2])
@pytest.mark.parametrize("kind", MAKE)
def test_of_a_batch_each_text_must_have_the_prompt(kind: str, row: int) -> None:
    cache = filled(kind, ids=IDS.expand(3, -1))
    prompt = IDS.shape[1] - 5
    cache.layers[1].keys[row, :, prompt:] = 0  # what was drawn there may be something else
    assert compare(cache, of_pass(), 0, prompt) == (4, 0)
    cache.layers[2].values[row] = 0
    assert compare(cache, of_pass(), 0, prompt).strange == 1


@pytest.mark.parametrize(("row", "rows", "strange"), [(1, [0, 1, 2], 1), (1, [0, 1], 1), (1, [0, 2], 0), (1, [0], 0)])
@pytest.mark.parametrize("kind", MAKE)
def test_texts_that_are_the_first_one_are_compared_to_their_end(
    kind: str, row: int, rows: list[int], strange: int
) -> None:
    cache = filled(kind, ids=IDS.expand(3, -1))
    cache.layers[1].keys[row, :, 27] *= -1
    assert compare(cache, of_pass(), 0, IDS.shape[1] - 5, rows) == (4, strange)


def in_16_bits(cache: Any) -> Any:
    for layer in cache.layers:
        layer.keys, layer.values = layer.keys.bfloat16(), layer.values.bfloat16()
    return cache


@pytest.mark.parametrize(("first", "tokens", "strange"), [(5, 1, 0), (5, 2, 1), (25, 1, 0), (25, 2, 1)])
def test_in_16_bits_routers_may_send_a_token_of_the_prompt_and_one_of_a_few_steps_elsewhere(
    first: int, tokens: int, strange: int
) -> None:
    """Five tokens were written by steps. In the first layer none may differ: no router was before it. A token that is
    lost was sent nowhere."""
    cache, one = filled("growing"), of_pass()
    cache.layers[1].keys[:, :, first : first + tokens] *= 1.5
    assert compare(cache, one, 0, 25, routed=True).strange == 1
    assert compare(in_16_bits(cache), one, 0, 25).strange == 1
    assert compare(cache, one, 0, 25, routed=True).strange == strange
    cache.layers[0].keys[:, :, first : first + tokens] *= 1.5
    assert compare(cache, one, 0, 25, routed=True).strange == strange + 1
    cache.layers[1].keys[:, :, first] = 0
    assert compare(cache, one, 0, 25, routed=True).strange == 2


@pytest.mark.parametrize(
    ("dtype", "packed", "layer", "least"),
    [
        ("float32", False, 1, 0.01), ("float16", False, 1, 0.05), ("bfloat16", False, 1, 0.2),
        ("float32", True, 1, 0.5), ("float32", False, 0, 0.01), ("bfloat16", False, 0, 0.03),
        ("float32", True, 0, 0.1),
    ],
)  # fmt: skip
def test_how_far_a_token_may_lie_apart_depends_on_what_rounds_it(
    dtype: str, packed: bool, layer: int, least: float
) -> None:
    for share, strange in ((0.7, 0), (1.3, 1)):
        cache = filled("growing")
        cache.layers[layer].values[:, :, :9] *= 1 + share * least
        for one in cache.layers:
            one.keys, one.values = (states.to(getattr(torch, dtype)) for states in (one.keys, one.values))
        assert compare(cache, of_pass(), 0, 25, packed=packed).strange == strange


def test_what_rounding_adds_to_almost_nothing_is_let_through() -> None:
    for length, strange in ((1e-3, 0), (0.5, 1)):
        cache, one = filled("growing"), of_pass()
        usual = cache.layers[1].values.norm(dim=(1, 3)).median()
        for states in (cache.layers[1].values, one.pairs[1][1]):
            states[:, :, 2] *= length * usual / states[:, :, 2].norm()
        cache.layers[1].values[:, :, 2] *= 1.5
        assert compare(cache, one, 0, 25).strange == strange


@pytest.mark.parametrize("kind", MAKE)
def test_a_step_that_believes_to_be_one_further_is_seen(kind: str) -> None:
    """Whose prompt is much longer than what follows."""
    model, cache = tiny("llama"), MAKE[kind](tiny("llama").config)
    with torch.no_grad():
        model(input_ids=IDS[:, :28], past_key_values=cache, use_cache=True)
        for at in (28, 29):
            model(
                input_ids=IDS[:, at : at + 1], past_key_values=cache, use_cache=True,
                position_ids=torch.tensor([[at + 1]]),
            )  # fmt: skip
    assert compare(cache, of_pass(), 0, 28).strange == 4


def test_a_window_holds_the_newest() -> None:
    cache = filled("growing", "gpt_oss")
    layer = cache.layers[0]
    assert layer.keys.shape[2] == WINDOW - 1
    layer.keys = layer.keys.roll(1, 2)
    assert compare(cache, of_pass("gpt_oss"), 0) == (4, 1)


@pytest.mark.parametrize("kind", ["growing", "static"])
def test_a_window_must_hold_as_many_as_attention_needs(kind: str) -> None:
    cache = filled(kind, "gpt_oss")
    layer = cache.layers[0]
    layer.keys, layer.values = (states[:, :, 1:].clone() for states in (layer.keys, layer.values))
    assert compare(cache, of_pass("gpt_oss"), 0).strange == 0
    assert compare(cache, of_pass("gpt_oss"), 0, window=WINDOW).strange == 1


def in_slots(tokens: int, steps: int, padded: int = 0) -> StaticSlotCache:
    """A prompt of as many tokens, behind padding, and steps as in the custom decode loop."""
    model = tiny("gpt_oss")
    cache, ids = StaticSlotCache(model.config, 40), torch.nn.functional.pad(IDS, (padded, 0))
    mask = (torch.arange(ids.shape[1])[None] >= padded).long()
    places = (mask.cumsum(-1) - 1).clamp(min=0)
    begin = padded + tokens
    with torch.no_grad():
        model(
            input_ids=ids[:, :begin], past_key_values=cache, attention_mask=mask[:, :begin],
            position_ids=places[:, :begin],
        )  # fmt: skip
        cache.additive = torch.float32
        cache.begin(mask[:, :begin])
        for at in range(begin, begin + steps):
            for slots in cache.slots:
                slots.fill()
            kinds = ("sliding_attention", cache.sliding), ("full_attention", cache.full)
            model(
                input_ids=ids[:, at : at + 1], past_key_values=cache, position_ids=places[:, at : at + 1],
                attention_mask={kind: slots.mask for kind, slots in kinds if slots is not None},
            )  # fmt: skip
            cache.advance()
    return cache


@pytest.mark.parametrize("padded", [0, 3])
@pytest.mark.parametrize(
    ("tokens", "steps"), [(3, 0), (3, 2), (5, WINDOW - 5), (5, WINDOW), (20, 0), (20, 1), (20, 9), (WINDOW, 10)]
)
def test_a_ring_is_read_from_its_oldest_token_on(tokens: int, steps: int, padded: int) -> None:
    """Also one that went on behind the text it is held against."""
    cache, text = in_slots(tokens, steps, padded), IDS[:, : tokens + steps]
    assert can_be_compared(cache)
    assert compare(cache, of_pass("gpt_oss", text), padded, tokens, window=WINDOW) == (4, 0)
    assert compare(cache, of_pass("gpt_oss", text[:, : 1 + tokens // 2]), padded, tokens, window=WINDOW) == (4, 0)
    sliding = [layer for layer in cache.layers if layer.is_sliding]
    assert len(sliding) == 2
    sliding[1].values[:, :, (steps - 1 if padded + tokens > WINDOW else padded + tokens + steps - 1) % WINDOW] *= -1
    assert compare(cache, of_pass("gpt_oss", text), padded, tokens, window=WINDOW) == (4, 1)


@pytest.mark.parametrize("kind", MAKE)
def test_padding_is_passed_over(kind: str) -> None:
    padded = torch.cat([torch.zeros(1, 6, dtype=torch.long), IDS], 1)
    mask = torch.cat([torch.zeros(1, 6, dtype=torch.long), torch.ones_like(IDS)], 1)
    cache = filled(kind, ids=padded, mask=mask)
    assert compare(cache, of_pass(), 6) == (4, 0)
    assert compare(cache, of_pass(), 5).strange == 4


def test_a_pass_over_the_beginning_is_compared_with_the_beginning() -> None:
    assert compare(filled("growing"), of_pass(ids=IDS[:, :20]), 0) == (4, 0)
    assert compare(filled("growing", "gpt_oss"), of_pass("gpt_oss", IDS[:, :27]), 0) == (4, 0)


@pytest.mark.parametrize(("backend", "steps"), [("fp8", 5), ("hqq", 5), ("hqq", 25), ("quanto", 5), ("quanto", 25)])
def test_a_quantized_cache_is_read_with_the_tokens_it_has_yet_to_pack(backend: str, steps: int) -> None:
    """In a sixteenth of the tokens it may hold anything."""
    options = {} if backend == "fp8" else {"residual_length": 16, "q_group_size": 8}
    model, cache = tiny("llama"), QuantizedCache(backend, tiny("llama").config, **options)
    with torch.no_grad():
        for begin, end in ((0, 30 - steps), *((at, at + 1) for at in range(30 - steps, 30))):
            model(input_ids=IDS[:, begin:end], past_key_values=cache, use_cache=True)
    assert can_be_compared(cache)
    assert compare(cache, of_pass(), 0, 30 - steps) == (4, 0)
    other = torch.roll(IDS, 1)
    assert compare(cache, of_pass(ids=other), 0, 30 - steps) == (4, 4)
    for place, share, strange in ((2, 0.3, 0), (2, 0.3, 1), (0, 0.6, 1), (0, 0.6, 2)):  # its own share of what is left
        layer = cache.layers[place]
        layer._dequantize = lambda packed, plain=layer._dequantize, share=share: plain(packed) * share
        assert compare(cache, of_pass(), 0, 30 - steps).strange == strange


def test_what_cannot_be_told_is_left_alone() -> None:
    assert not can_be_compared(None) and not can_be_compared(DynamicCache())
    assert not can_be_compared(QuantizedCache("fp8", tiny("llama").config))
    cache = filled("growing")
    cache.layers[1].__class__ = type("Another", (type(cache.layers[1]),), {})
    assert not can_be_compared(cache)


def test_it_is_counted_with_the_tokens() -> None:
    text = IDS[0].tolist()
    cache = filled("static", ids=IDS[:, :-1])
    counts = checked(tiny("llama"), text[:25], text[25:], cache=cache)
    assert (counts.compared_layers, counts.strange_layers) == (4, 0)
    cache.layers[3].values.zero_()
    assert checked(tiny("llama"), text[:25], text[25:], cache=cache).strange_layers == 1
    assert checked(tiny("llama"), text[:25], text[25:]).compared_layers is None
