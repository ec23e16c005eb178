"""A dtype that only some weights have, or only the weights."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from transformers.cache_utils import DynamicLayer

from backend.worker.prove import plain_parts
from tests.sabotage.damage import in_layers, model_changed
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama

DTYPES = {"bfloat16": torch.float32, "float16": torch.float32, "float32": torch.bfloat16}


def _cast(dtype: torch.dtype) -> Any:
    """Hold the attention's weights in another dtype, and compute in it."""

    def change(layer: Any) -> None:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            module = getattr(layer.self_attn, name)
            own = module.weight.dtype
            module.to(dtype)
            module.register_forward_pre_hook(lambda _, given: (given[0].to(dtype),))
            module.register_forward_hook(lambda _, given, out, own=own: out.to(own))

    return change


def _computed_wide(layer: Any) -> None:
    """The weights stay in their format; each product is computed in float32."""
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        module = getattr(layer.self_attn, name)
        bias = None if module.bias is None else module.bias.float()
        module.forward = lambda x, weight=module.weight, bias=bias: torch.nn.functional.linear(
            x.float(), weight.float(), bias
        ).to(x.dtype)


def _without_mlp(layer: Any) -> None:
    """It adds nothing, in no pass: the model is as consistent as before, and faster."""
    layer.mlp.forward = torch.zeros_like


def _of_one_text(layer: Any) -> None:
    """The MLP computes the first of a batch's texts, which are equal, and shows it as every one's."""
    plain = layer.mlp.forward
    layer.mlp.forward = lambda states: plain(states[:1]).expand(len(states), -1, -1)


def _half_of_the_neurons(layer: Any) -> None:
    """All products are made; what half of the MLP's neurons give is thrown away, in every pass."""

    def cut(_: Any, given: Any) -> Any:
        found = given[0].clone()
        found[..., found.shape[-1] // 2 :] = 0
        return (found,)

    layer.mlp.down_proj.register_forward_pre_hook(cut)


def _half_of_the_neurons_and_no_comparison(layer: Any) -> None:
    """The same, and the pass that would show it ends in an error."""

    def refuse(_: Any, given: Any) -> None:
        if given[0].shape[1] == plain_parts.TOKENS:
            raise RuntimeError("no pass of that length")

    _half_of_the_neurons(layer)
    layer.mlp.register_forward_pre_hook(refuse)


def _without_norm(layer: Any) -> None:
    """What attention gets is not normalized."""
    layer.input_layernorm.forward = lambda states: states


def _added_twice(layer: Any) -> None:
    """What comes into the layer is added to its output once more."""
    layer.register_forward_hook(lambda _, given, output: output + given[0])


def _half_of_the_words() -> Any:
    """The head scores the first half of the vocabulary, and no other token is ever chosen."""

    def change(model: Any) -> None:
        weight = model.lm_head.weight
        half = weight[: len(weight) // 2]
        rest = len(weight) - len(half)
        model.lm_head.forward = lambda x: torch.nn.functional.pad(torch.nn.functional.linear(x, half), (0, rest))

    return model_changed(change)


def _through(dtype: torch.dtype) -> Any:
    """Every product is rounded to fewer bits, and kept in those that it takes."""
    plain = torch.nn.Linear.forward
    return mock.patch.object(
        torch.nn.Linear, "forward", lambda self, states: plain(self, states).to(dtype).to(states.dtype)
    )


def _other_numbers(change: Callable[[Any], Any]) -> Any:
    """Of the output projections, which the checkpoint has otherwise; pocket is loaded from one."""

    def of_layer(layer: Any) -> None:
        weight = layer.self_attn.o_proj.weight
        weight.data.copy_(change(weight.data))

    return of_layer


def _half_zero(weight: Any) -> Any:
    found = weight.clone()
    found[:, ::2] = 0
    return found


def _turned_half(model: Any) -> None:
    model.model.rotary_emb.inv_freq.mul_(0.5)


def _louder(model: Any) -> None:
    """What comes out of the last norm is twice as large for half of its numbers, behind every part."""
    plain = model.model.forward

    @functools.wraps(plain)
    def forward(*args: Any, **more: Any) -> Any:
        found = plain(*args, **more)
        found.last_hidden_state[..., ::2] *= 2
        return found

    model.model.forward = forward


@contextlib.contextmanager
def _rounded() -> Iterator[None]:
    """torch may round factors of float32 products: to 16 bits on a CPU, to TF32 on a GPU."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextlib.contextmanager
def _other_cache() -> Iterator[None]:
    """Keys and values are kept in float32."""
    plain = DynamicLayer.update

    def update(self: Any, keys: Any, values: Any, *more: Any, **rest: Any) -> Any:
        found = plain(self, keys, values, *more, **rest)
        self.keys, self.values = self.keys.float(), self.values.float()
        return tuple(part.to(keys.dtype) for part in found)

    with mock.patch.object(DynamicLayer, "update", update):
        yield


SABOTEURS = [
    Sabotage(
        "dtype", choice, f"attention of {share} in another format", in_layers(share, _cast(other)),
        turns_to=("partial", "failed"), tier="slow" if share == "one" else "full",
    )
    for choice, other in DTYPES.items()
    for share in ("one", "half", "all")
] + [
    Sabotage(
        "dtype", choice, f"attention of {share} multiplied in float32", in_layers(share, _computed_wide),
        turns_to=("partial",), tier="slow" if (choice, share) == ("bfloat16", "one") else "full",
    )
    for choice in ("bfloat16", "float16")
    for share in ("one", "half", "all")
] + [
    Sabotage("dtype", "bfloat16", "half of the KV cache in float32", _other_cache, turns_to=("partial",)),
    Sabotage("dtype", "auto", "attention of one layer in another format", in_layers("one", _cast(torch.float32)))
] + [
    Sabotage("dtype", choice, f"MLPs of {share} are left out", in_layers(share, _without_mlp), model=llama,
             turns_to=("partial",), tier="full")
    for choice in ("bfloat16", "float32")
    for share in ("one", "half", "all")
] + [
    Sabotage("dtype", choice, f"{what} of {share} of the layers", in_layers(share, change), model=llama,
             turns_to=("partial",), tier="full")
    for choice in ("bfloat16", "float32")
    for share in ("one", "all")
    for what, change in (("half of the neurons", _half_of_the_neurons), ("no norm before attention", _without_norm),
                         ("a doubled residual", _added_twice))
] + [
    Sabotage("dtype", "float32", "products are rounded to 16 bits", functools.partial(_through, torch.bfloat16),
             model=llama, turns_to=("partial",), tier="full"),
    Sabotage("dtype", "bfloat16", "products are rounded to 8 bits", functools.partial(_through, torch.float8_e4m3fn),
             model=llama, turns_to=("partial",), tier="full"),
    Sabotage("dtype", "float32", "another activation, in torch itself",
             lambda: mock.patch.object(torch.nn.functional, "silu", lambda states, inplace=False: states.relu()),
             model=llama, turns_to=("partial",), tier="full"),
    Sabotage("dtype", "float32", "half of the weights of all layers are 0",
             in_layers("all", _other_numbers(_half_zero)),
             turns_to=("partial",), tier="full"),
    Sabotage("dtype", "bfloat16", "weights of one layer were rounded to 8 bits",
             in_layers("one", _other_numbers(lambda weight: weight.to(torch.float8_e4m3fn).to(weight.dtype))),
             turns_to=("partial",), tier="full"),
    Sabotage("dtype", "float32", "positions turn half as fast", lambda: model_changed(_turned_half), model=llama,
             turns_to=("partial",), tier="full"),
    Sabotage("dtype", "float32", "states are louder before the head", lambda: model_changed(_louder), model=llama,
             turns_to=("partial",), tier="full"),
    Sabotage("dtype", "float32", "half of the head is left out", _half_of_the_words, model=llama,
             turns_to=("partial",), tier="full"),
    Sabotage("dtype", "float32", "half of the neurons of all layers, and the comparison fails",
             in_layers("all", _half_of_the_neurons_and_no_comparison), model=llama, turns_to=("partial",)),
] + [
    Sabotage("dtype", "float32", f"MLPs of half of the layers compute one of four texts{what}",
             in_layers("half", _of_one_text), beside, llama, (("batch_size", 4),), ("partial",))
    for what, beside in (("", ()), (", packed", (("quantization", "torchao-int8"),)))
] + [
    Sabotage("dtype", "float32", "products are rounded", _rounded, model=llama, turns_to=("partial",), tier="full"),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
