"""attention: other functions in the measured run than the one that was asked for, or less of it than a layer needs."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
import transformers.models.gpt_oss.modeling_gpt_oss as gpt_oss_code
import transformers.models.llama.modeling_llama as llama_code
from transformers import AttentionInterface, masking_utils
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from backend.optimizations.axes.attention import probe
from backend.optimizations.axes.attention.flash import FA2, FA3, FA4, HUB_FA2, HUB_FA3
from backend.worker.patch import attention as patch
from tests.sabotage.damage import in_layers, layers_of, model_changed
from tests.sabotage.saboteur import Sabotage, Tier, tests_of
from tests.sabotage.small_models import LAYERS, llama
from tests.sabotage.test_tokens import measured

Which = Callable[[int], bool]


def by_hand(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: Any = None, **more: Any) -> Any:
    """Attention in plain products and a softmax, with the masks of any implementation."""
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, 1) for tensor in (key, value))
    scores = query @ key.transpose(2, 3) * scaling
    if isinstance(mask, torch.Tensor):
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    return (scores.softmax(-1) @ value).transpose(1, 2).contiguous(), None


def head_by_head(module: Any, query: Any, key: Any, value: Any, mask: Any, **more: Any) -> Any:
    """SDPA once for each KV head: what it finds is right, and each layer calls it several times."""
    group = query.shape[1] // key.shape[1]
    found = [
        sdpa_attention_forward(module, query[:, i * group : (i + 1) * group], key[:, i : i + 1], value[:, i : i + 1],
                               mask, **more)[0]
        for i in range(key.shape[1])
    ]  # fmt: skip
    return torch.cat(found, 2), None


def in_sdpa(module: Any, query: Any, key: Any, value: Any, mask: Any, scaling: Any = None, **more: Any) -> Any:
    dense = mask if isinstance(mask, torch.Tensor) else None  # not that of flex_attention: causal all the same
    return sdpa_attention_forward(module, query, key, value, dense, scaling=scaling)


def half_of_the_heads(attend: Any) -> Any:
    """Asked for and called, for every pass; what half of the heads found is thrown away."""

    def halved(*rest: Any, **more: Any) -> Any:
        found, weights = attend(*rest, **more)
        found = found.clone()  # (B, S, heads, D)
        found[:, :, found.shape[2] // 2 :] = 0
        return found, weights

    return halved


def one_head(layer: Any) -> None:
    """The output of its last head never reaches the product behind it."""

    def cut(_: Any, given: Any) -> Any:
        found = given[0].clone()
        found[..., -layer.self_attn.head_dim :] = 0
        return (found,)

    layer.self_attn.o_proj.register_forward_pre_hook(cut)


def newest(function: Any) -> AbstractContextManager[Any]:
    """PyTorch's own function, whoever calls it, attends to the newest eight tokens in each step."""

    def attend(query: Any, key: Any, value: Any, *rest: Any, **more: Any) -> Any:
        if query.shape[-2] == 1:
            mask = more.get("attn_mask")
            more |= {"attn_mask": None if mask is None else mask[..., -8:]}
            key, value = key[..., -8:, :], value[..., -8:, :]
        return function(query, key, value, *rest, **more)

    return mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", attend)


def sharper() -> AbstractContextManager[Any]:
    plain = torch.nn.functional.softmax
    return mock.patch.object(
        torch.nn.functional, "softmax", lambda scores, *rest, **more: plain(2 * scores, *rest, **more)
    )


def narrow() -> AbstractContextManager[Any]:
    plain = masking_utils.causal_mask_function
    return mock.patch.object(masking_utils, "causal_mask_function", lambda *at: plain(*at) & (at[2] - at[3] < 16))


@contextmanager
def swapped(choice: str, other: Any, where: Which, probed_too: bool, code: Any) -> Iterator[None]:
    """`other` in the layers `where`; the short pass of the probe is left alone, unless it is to be fooled as well.
    `code`: the architecture's file, whose function "eager" is."""
    probing: list[bool] = []
    plain = {
        "eager": code.eager_attention_forward, "sdpa": sdpa_attention_forward,
        "sdpa-gqa": patch.grouped_attention, "flex_attention": AttentionInterface()["flex_attention"],
    }[choice]  # fmt: skip

    def attend(module: Any, *rest: Any, **more: Any) -> Any:
        broken = where(module.layer_idx) and (probed_too or not probing)
        return (other if broken else plain)(module, *rest, **more)

    def watched(model: Any) -> Any:
        probing.append(True)
        try:
            return real(model)
        finally:
            probing.clear()

    real = probe.calls
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(probe, "calls", watched))
        if choice == "eager":
            stack.enter_context(mock.patch.object(code, "eager_attention_forward", attend))
        elif choice == "sdpa-gqa":
            stack.enter_context(mock.patch.object(patch, "grouped_attention", attend))
        else:
            stack.enter_context(mock.patch.dict(AttentionInterface._global_mapping, {choice: attend}))
        yield


def breaking(
    choice: str, other: Any, where: Which, probed_too: bool = False, code: Any = llama_code
) -> Callable[[], AbstractContextManager[None]]:
    return lambda: swapped(choice, other, where, probed_too, code)


def by_hand_while_measured(model: Any) -> Callable[[], None]:
    """Steps of the measured run alone are taken with another function, which finds the same."""
    stack = ExitStack()
    stack.enter_context(mock.patch.dict(AttentionInterface._global_mapping, {"sdpa": by_hand}))
    return stack.close


def layers_while_measured(model: Any) -> Callable[[], None]:
    """The same in half of the layers, by their own methods."""
    halved = [layer.self_attn for layer in layers_of(model)[1::2]]
    for attention in halved:
        plain = attention.forward

        def forward(*args: Any, plain: Any = plain, **more: Any) -> Any:
            with mock.patch.dict(AttentionInterface._global_mapping, {"sdpa": by_hand}):
                return plain(*args, **more)

        attention.forward = forward

    def mend() -> None:
        for attention in halved:
            del attention.forward

    return mend


MANNERS: list[tuple[str, Which, bool]] = [
    ("half of the layers", lambda layer: layer % 2 == 0, False),
    ("in the measured run, not in the short pass", lambda layer: True, False),
    ("one layer", lambda layer: layer == LAYERS - 1, False),
    ("half of the layers, in the short pass too", lambda layer: layer < LAYERS // 2, True),
]
OTHERS: list[tuple[str, str, Any, tuple[tuple[str, str], ...]]] = [
    ("auto", "sdpa", by_hand, ()),
    ("sdpa", "sdpa", by_hand, (("cache", "static"),)),
    ("eager", "eager", in_sdpa, ()),
    ("sdpa-gqa", "sdpa-gqa", in_sdpa, (("cache", "static"),)),
    ("flex_attention", "flex_attention", in_sdpa, ()),
]


BESIDE: dict[str, tuple[tuple[str, str], ...]] = {
    "in bfloat16": (("dtype", "bfloat16"),),
    "by the custom loop": (("cache", "static"), ("loop", "own")),
    "fused": (("projections", "fused"),),
    "packed": (("dtype", "bfloat16"), ("quantization", "torchao-int8")),
    "drafted": (("speculation", "prompt-lookup"),),
}


def tier(choice: str, manner: int) -> Tier:
    return "full" if manner or choice == "flex_attention" else "slow"


SABOTEURS = [
    Sabotage(
        "attention", choice, manner, breaking(function, other, where, probed_too), beside, llama, tier=tier(choice, i)
    )
    for choice, function, other, beside in OTHERS
    for i, (manner, where, probed_too) in enumerate(MANNERS)
]
HALVED: list[tuple[str, Any, Any]] = [
    ("auto", "sdpa", sdpa_attention_forward),
    ("sdpa", "sdpa", sdpa_attention_forward),
    ("eager", "eager", llama_code.eager_attention_forward),
    ("sdpa-gqa", "sdpa-gqa", patch.grouped_attention),
    ("flex_attention", "flex_attention", AttentionInterface()["flex_attention"]),
]
SHARES: dict[str, Which] = {
    "all layers": lambda layer: True,
    "half of the layers": lambda layer: layer % 2 == 0,
    "one layer": lambda layer: layer == 2,
}
SABOTEURS += [
    Sabotage("attention", choice, f"half of the heads in {share} are thrown away",
             breaking(function, half_of_the_heads(plain), where, True), model=llama, turns_to=("partial",), tier="full")
    for choice, function, plain in HALVED
    for share, where in SHARES.items()
] + [
    Sabotage("attention", "auto", "half of the heads in one layer are thrown away",
             breaking("eager", half_of_the_heads(gpt_oss_code.eager_attention_forward), SHARES["one layer"], True,
                      gpt_oss_code), turns_to=("partial",), tier="full"),
    Sabotage("attention", "sdpa", "all layers call it for each KV head",
             lambda: mock.patch.dict(AttentionInterface._global_mapping, {"sdpa": head_by_head}), model=llama,
             turns_to=("partial",)),
    Sabotage("attention", "sdpa", "one head in one layer is cut off", in_layers("one", one_head), model=llama,
             turns_to=("partial",), tier="full"),
    Sabotage("attention", "auto", "windows of all layers are shorter, in the config of the loaded model",
             lambda: model_changed(lambda model: setattr(model.config, "sliding_window", 16)),
             work=(("prompt_tokens", 64),), turns_to=("partial",), tier="full"),
    Sabotage("attention", "sdpa", "positions are not turned in all layers",
             lambda: mock.patch.object(llama_code, "apply_rotary_pos_emb", lambda query, key, *_: (query, key)),
             model=llama, turns_to=("partial",), tier="full"),
    Sabotage("attention", "eager", "softmax of all layers is sharper, in torch itself", sharper, model=llama,
             turns_to=("partial",), tier="full"),
    Sabotage("attention", "eager", "all layers have a window of 16, in the masks", narrow, model=llama,
             work=(("prompt_tokens", 64),), turns_to=("partial",), tier="full"),
    Sabotage("attention", "sdpa", "all layers by hand while a run is measured", measured(by_hand_while_measured),
             model=llama, turns_to=("partial",), tier="full"),
    Sabotage("attention", "sdpa", "half of the layers by hand while a run is measured",
             measured(layers_while_measured), model=llama, turns_to=("partial",), tier="full"),
    Sabotage("attention", "sdpa", "all layers attend to the newest tokens",
             lambda: newest(torch.nn.functional.scaled_dot_product_attention), model=llama,
             work=(("prompt_tokens", 64),), turns_to=("partial",), tier="full"),
] + [
    Sabotage("attention", "sdpa", f"half of the heads in one layer, {name}",
             breaking("sdpa", half_of_the_heads(sdpa_attention_forward), SHARES["one layer"], True), beside, llama,
             turns_to=("partial",), tier="full")
    for name, beside in BESIDE.items()
]  # fmt: skip
REASONS = {
    ("attention", name): "Its kernels are on no machine of the tests; `test_traced.py` counts made-up traces of it."
    for name in (FA2, FA3, FA4, HUB_FA2, HUB_FA3)
}
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
