"""Parts of a model are told from its own code by what they give for the same input."""

import copy
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest
import torch
import transformers.models.gpt_oss.modeling_gpt_oss as gpt_oss_code

from backend.optimizations.proof import Held
from backend.worker.prove import plain_parts
from backend.worker.prove.plain_parts import held_to_plain_code, tolerance
from tests.support.tiny_models import CONFIGS, build, tiny

TEXT = [5, 7, 3, 9, 1, 44, 23]
LAYERS = 4


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("architecture", CONFIGS)
@pytest.mark.parametrize("length", [0, 240])
def test_every_part_of_a_sound_model_gives_what_its_own_code_gives(architecture: str, dtype: str, length: int) -> None:
    held = held_to_plain_code(tiny(architecture, dtype=dtype), TEXT, length=length)
    assert not held.odd and not held.unheld
    assert held.parts["attention"] == LAYERS
    assert held.parts["mixture"] == (LAYERS if architecture == "gpt_oss" else 0)
    assert held.parts["other"] >= 4 * LAYERS


def test_flex_attention_is_compared_without_being_compiled() -> None:
    frames = torch._dynamo.utils.counters["frames"]["total"]
    held = held_to_plain_code(tiny("llama", "flex_attention"), TEXT)
    assert not held.odd and not held.unheld and held.parts["attention"] == LAYERS
    assert torch._dynamo.utils.counters["frames"]["total"] == frames


def half_of_the_heads(layer: Any) -> None:
    layer.self_attn.o_proj.register_forward_pre_hook(lambda _, given: (_first_half(given[0]),))


def _first_half(x: Any) -> Any:
    return torch.cat([x[..., : x.shape[-1] // 2], torch.zeros_like(x[..., x.shape[-1] // 2 :])], -1)


def half_of_the_neurons(layer: Any) -> None:
    layer.mlp.down_proj.register_forward_pre_hook(lambda _, given: (_first_half(given[0]),))


def no_norm(layer: Any) -> None:
    layer.input_layernorm.forward = lambda x: x


def twice_the_residual(layer: Any) -> None:
    layer.register_forward_hook(lambda _, given, output: output * 2)


def only_steps(layer: Any) -> None:
    """The pass of a prompt is left as it is."""
    layer.self_attn.o_proj.register_forward_pre_hook(
        lambda _, given: (_first_half(given[0]) if given[0].shape[1] == 1 else given[0],)
    )


BROKEN: list[tuple[Callable[[Any], None], str, str]] = [
    (half_of_the_heads, "attention", ".self_attn"),
    (only_steps, "attention", ".self_attn"),
    (half_of_the_neurons, "other", ".mlp"),
    (no_norm, "other", ".input_layernorm"),
    (twice_the_residual, "other", ""),
]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(("change", "kind", "part"), BROKEN, ids=[one.__name__ for one, *_ in BROKEN])
def test_a_part_that_gives_something_else_is_named(change: Any, kind: Any, part: str, dtype: str) -> None:
    model = build("llama", dtype=dtype)
    change(model.model.layers[2])
    assert held_to_plain_code(model, TEXT).odd == {kind: [f"model.layers.2{part}"]}


def test_what_is_beside_the_layers_is_held_too() -> None:
    model = build("llama")
    model.lm_head.register_forward_hook(lambda _, given, output: _first_half(output))
    assert held_to_plain_code(model, TEXT).odd == {"other": ["lm_head"]}


def test_what_is_between_parts_and_what_the_model_gives_are_held_too() -> None:
    """In this order: the states before the first layer, and the scores behind the head."""
    model = build("llama")
    embed = model.model.embed_tokens.forward
    model.model.embed_tokens.forward = lambda ids: embed(ids)
    model.model.register_forward_pre_hook(
        lambda _, args, more: ((), {**more, "input_ids": None, "inputs_embeds": 2 * embed(more["input_ids"])}),
        with_kwargs=True,
    )
    assert held_to_plain_code(model, TEXT).odd == {"other": ["what model.rotary_emb gets"]}
    model = build("llama")

    def doubled(_: Any, given: Any, output: Any) -> Any:
        output.logits = output.logits * 2
        return output

    model.register_forward_hook(doubled)
    assert held_to_plain_code(model, TEXT).odd == {"other": ["what the model gives"]}


@pytest.mark.parametrize(
    ("dtype", "through", "odd"),
    [
        ("float32", torch.float32, False), ("float32", torch.bfloat16, True),
        ("bfloat16", torch.bfloat16, False), ("bfloat16", torch.float8_e4m3fn, True),
        ("float16", torch.float16, False), ("float16", torch.float8_e4m3fn, True),
    ],
)  # fmt: skip
def test_numbers_of_fewer_bits_on_the_way_are_too_far(dtype: str, through: torch.dtype, odd: bool) -> None:
    model = build("llama", dtype=dtype)
    model.model.layers[1].mlp.down_proj.register_forward_hook(lambda _, given, out: out.to(through).to(out.dtype))
    assert held_to_plain_code(model, TEXT).odd == ({"other": ["model.layers.1.mlp"]} if odd else {})


def test_packed_weights_may_round_what_they_multiply_with() -> None:
    model = build("llama", dtype="bfloat16")
    exact = tolerance(model)
    model.model.layers[0].mlp.up_proj.weight = torch.nn.Parameter(torch.zeros(4, dtype=torch.int8), False)
    assert (exact, tolerance(model), tolerance(tiny("llama"))) == (0.02, 0.05, 5e-4)


def test_a_router_that_always_chooses_the_same_is_seen_where_it_was_patched_for_good() -> None:
    plain = gpt_oss_code.GptOssTopKRouter.forward

    def forward(self: Any, hidden: Any) -> Any:
        *scores, chosen = plain(self, hidden)
        return *scores, torch.arange(chosen.shape[-1]).expand_as(chosen)

    with mock.patch.object(gpt_oss_code.GptOssTopKRouter, "forward", forward):
        held = held_to_plain_code(tiny("gpt_oss"), TEXT)
    assert set(held.odd) == {"mixture"} and len(held.odd["mixture"]) == LAYERS


def test_a_window_is_filled_and_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """gpt-oss has windows in every other layer; here those attend to all tokens. Steps would fail: a cache of windows
    does not keep them all."""
    monkeypatch.setattr(plain_parts, "TOKENS", 4)
    monkeypatch.setattr(plain_parts, "_pass", lambda model, text: model(input_ids=text))
    monkeypatch.setattr(gpt_oss_code, "create_sliding_window_causal_mask", gpt_oss_code.create_causal_mask)
    held = held_to_plain_code(tiny("gpt_oss"), TEXT)
    assert held.odd == {"attention": ["model.layers.0.self_attn", "model.layers.2.self_attn"]}


def test_a_short_text_is_repeated_up_to_the_positions_of_the_model() -> None:
    seen: list[tuple[int, ...]] = []
    model = build("gpt2")
    model.register_forward_pre_hook(lambda _, args, more: seen.append(tuple(more["input_ids"].shape)), with_kwargs=True)
    held_to_plain_code(model, [3])
    model.config.max_position_embeddings = 20
    held_to_plain_code(model, [3])
    assert seen == [(1, 48), (1, 1), (1, 19), (1, 1)]


@pytest.mark.parametrize(("texts", "length", "tokens"), [(1, 20, 48), (1, 90, 90), (1, 9_000, 255), (8, 9_000, 128)])
def test_the_text_is_as_long_as_that_of_the_run_up_to_a_limit(
    texts: int, length: int, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plain_parts._texts(build("llama"), TEXT, texts, length).shape == (texts, tokens + 1)
    monkeypatch.setattr(plain_parts, "MOST_PARAMETERS", 1000)
    assert plain_parts._texts(build("llama"), TEXT, texts, length).shape == (texts, 49)


@pytest.mark.parametrize(("length", "odd"), [(48, False), (90, True)])
def test_positions_that_end_early_are_seen_in_a_text_as_long_as_the_run_s(length: int, odd: bool) -> None:
    model = build("llama")
    plain = model.model.rotary_emb.forward
    model.model.rotary_emb.forward = lambda x, position_ids: plain(x, position_ids.clamp(max=60))
    assert ("attention" in held_to_plain_code(model, TEXT, length=length).odd) is odd


def test_frequencies_of_a_model_that_was_cast_as_a_whole_are_rounded() -> None:
    model = build("llama", dtype="bfloat16")
    rotary = model.model.rotary_emb
    assert not held_to_plain_code(model, TEXT).odd
    rotary.inv_freq = rotary.inv_freq.bfloat16()
    assert held_to_plain_code(model, TEXT).odd == {"attention": ["model.rotary_emb (inv_freq)"]}


def test_a_few_tokens_may_be_sent_elsewhere() -> None:
    """One position of the 48 is no part that differs; many are."""
    for wrong, odd in ((1, {}), (8, {"mixture": ["model.layers.1.mlp"]})):
        model = copy.deepcopy(tiny("gpt_oss"))

        def change(_: Any, given: Any, output: Any, wrong: int = wrong) -> Any:
            output[0][:, :wrong] *= 3
            return output

        hook = model.model.layers[1].mlp.register_forward_hook(change)
        text = list(range(1, 49))
        with mock.patch.object(plain_parts, "_pass", lambda model, text: model(input_ids=text)):
            assert held_to_plain_code(model, text).odd == odd
        hook.remove()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_without_routers_no_position_may_differ(dtype: str) -> None:
    model = build("llama", dtype=dtype)
    hook = model.model.layers[1].mlp.register_forward_hook(lambda _, given, output: output * _but_the_third(output))
    assert held_to_plain_code(model, TEXT).odd == {"other": ["model.layers.1.mlp"]}
    hook.remove()
    assert held_to_plain_code(model, TEXT).odd == {}


def _but_the_third(output: Any) -> Any:
    return (torch.arange(output.shape[1]) != 2)[None, :, None]


def test_a_part_that_computes_two_of_three_texts_is_told_by_all_of_them() -> None:
    model = build("llama")
    plain = model.model.layers[1].mlp.forward
    model.model.layers[1].mlp.forward = lambda states: plain(states[:2].repeat(2, 1, 1)[: len(states)])
    assert held_to_plain_code(model, TEXT, texts=2).odd == {}
    assert held_to_plain_code(model, TEXT, texts=3).odd == {"other": ["model.layers.1.mlp"]}


def test_a_part_that_computes_one_text_of_a_batch_is_told_by_a_batch() -> None:
    model = build("llama")
    plain = model.model.layers[1].mlp.forward
    model.model.layers[1].mlp.forward = lambda states: plain(states[:1]).expand(len(states), -1, -1)
    assert held_to_plain_code(model, TEXT).odd == {}
    assert held_to_plain_code(model, TEXT, texts=2).odd == {"other": ["model.layers.1.mlp"]}


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "gpt_oss", "gpt2"])
def test_texts_of_a_batch_are_held_as_one_is(architecture: str) -> None:
    one, two = (held_to_plain_code(tiny(architecture), TEXT, texts=texts) for texts in (1, 2))
    assert two == one and two.parts.total()


def test_what_stands_in_the_way_is_said_and_ends_nothing() -> None:
    model = build("llama")
    model.model.layers[0].mlp.register_forward_hook(lambda *_: 1 / 0)
    assert held_to_plain_code(model, TEXT) == Held(unheld="it failed: ZeroDivisionError: division by zero", broke=True)
    model = build("llama")
    del model.model.layers[3].mlp
    found = held_to_plain_code(model, TEXT)
    assert "LlamaDecoderLayer has no model.layers.3.mlp" in found.unheld and found.broke
    with mock.patch.object(plain_parts, "plain_copy", side_effect=torch.OutOfMemoryError):
        found = held_to_plain_code(model, TEXT)
    assert "memory" in found.unheld and not found.broke


def test_nothing_is_left_on_the_model() -> None:
    model = build("llama")
    held_to_plain_code(model, TEXT)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
