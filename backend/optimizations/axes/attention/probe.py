"""Which attention function the first layer of a model calls, watched in a prompt of two tokens and a decode step.

Detail for the trace of the run, which is the proof: the trace does not tell whose flash kernel ran, and without a mask
not whether KV heads would be repeated. So the functions that attention calls are patched and watched.
"""

import contextlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokendyno.backend.hardware.kernel_packages import PUBLISHER, local_overrides

_PACKAGES = (
    ("flash_attn.cute", "flash_attention_4"),
    ("flash_attn_interface", "flash_attention_3"),
    ("flash_attn.", "flash_attention_2"),
    ("flash_attn", "flash_attention_2"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of sdpa, softmax, flex_attention, FlashAttention or another kernel of the Hub ("kernel"), with shapes that
    show how heads were grouped.

    queries, keys  (B, heads, length, D); of a softmax `queries` is the shape of the scores, `keys` empty
    gqa            of sdpa: it was told to group heads itself; a model with a single KV head broadcasts it without
    taken          of FlashAttention and kernels: the choice, or the repository, that the function belongs to
    """

    function: str
    queries: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    gqa: bool = False
    taken: str = ""


def calls(model: Any) -> list[Call]:
    """Calls made by a masked pass over two tokens and, of a decoder, by a decode step, each up to the first one."""
    import torch
    from transformers import DynamicCache

    seen: list[Call] = []
    ids = torch.tensor([[1, 2], [1, 2]], device=model.device)
    mask = torch.tensor([[0, 1], [1, 1]], device=model.device)
    more = {"past_key_values": DynamicCache(config=model.config)} if model.can_generate() else {}
    with contextlib.ExitStack() as stack, torch.inference_mode():
        _watch(stack, seen)
        _watch_kernel(stack, seen, model)
        with contextlib.suppress(_Enough):
            model(input_ids=ids, attention_mask=mask, **more)
        if more:
            with contextlib.suppress(_Enough):
                model(input_ids=ids[:, :1], attention_mask=torch.cat([mask, mask[:, 1:]], 1), **more)
    return seen


def effective(seen: list[Call]) -> str:
    """The choice that makes such calls."""
    by_function = {call.function: call for call in reversed(seen)}
    if "kernel" in by_function:
        return by_function["kernel"].taken
    if "flash" in by_function:
        return by_function["flash"].taken
    if "flex_attention" in by_function:
        return "flex_attention"
    if "sdpa" in by_function:
        return "sdpa-gqa" if any(grouped(call, by_function["sdpa"]) for call in seen) else "sdpa"
    return "eager"


def grouped(call: Call, prompt: Call) -> bool:
    """Whether this call had fewer KV heads than query heads."""
    if call.function == "sdpa":
        return call.gqa and call.keys[1] < call.queries[1]
    heads = prompt.queries[1]  # scores (B, K, G, S): products written out by groups
    return call.function == "softmax" and call.queries[2] > 1 and call.queries[1] * call.queries[2] == heads


class _Enough(Exception):
    """Ends the pass early: enough is known, and the rest may compile something."""


def _watch(stack: contextlib.ExitStack, seen: list[Call]) -> None:
    import torch
    import transformers.integrations.flash_attention as flash
    import transformers.integrations.flex_attention as flex
    import transformers.masking_utils as masks

    def sdpa(plain: Any, query: Any, key: Any, *rest: Any, **more: Any) -> Any:
        seen.append(Call("sdpa", tuple(query.shape), tuple(key.shape), bool(more.get("enable_gqa"))))
        raise _Enough

    def softmax(plain: Any, scores: Any, *rest: Any, **more: Any) -> Any:
        if scores.dim() == 4:  # those of attention; a router's have 2
            seen.append(Call("softmax", tuple(scores.shape)))
            raise _Enough
        return plain(scores, *rest, **more)

    def flexible(plain: Any, query: Any, key: Any, *rest: Any, **more: Any) -> Any:
        seen.append(Call("flex_attention", tuple(query.shape), tuple(key.shape)))
        raise _Enough

    def block_mask(plain: Any, *rest: Any, **more: Any) -> Any:
        return plain(*rest, **{**more, "_compile": False})

    def flashing(plain: Any, query: Any, key: Any, *rest: Any, **more: Any) -> Any:
        plain(query, key, *rest, **more)  # loads the kernel whose name is asked for
        seen.append(Call("flash", tuple(query.shape), tuple(key.shape), taken=_flash_taken()))
        raise _Enough

    stack.enter_context(_replaced(torch.nn.functional, "scaled_dot_product_attention", sdpa))
    stack.enter_context(_replaced(torch.nn.functional, "softmax", softmax))
    stack.enter_context(_replaced(flex, "compile_friendly_flex_attention", flexible))
    stack.enter_context(_replaced(masks, "create_block_mask", block_mask))
    stack.enter_context(_replaced(flash, "_flash_attention_forward", flashing))


def _watch_kernel(stack: contextlib.ExitStack, seen: list[Call], model: Any) -> None:
    """A kernel of the Hub with a function of its own: the one that the layers look up by the model's setting."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    name = str(model.config._attn_implementation)
    function = ALL_ATTENTION_FUNCTIONS.get(name) if "/" in name else None
    if function is None or not (taken := _repository_of(function)):
        return

    def called(layer: Any, query: Any, key: Any, *rest: Any, **more: Any) -> Any:
        seen.append(Call("kernel", tuple(query.shape), tuple(key.shape), taken=taken))
        raise _Enough

    ALL_ATTENTION_FUNCTIONS.register(name, called)
    stack.callback(ALL_ATTENTION_FUNCTIONS.register, name, function)


def _repository_of(function: Any) -> str:
    """Of the Hub, of the loaded kernel that a function belongs to; "" for one of transformers' own."""
    from kernels import get_loaded_kernels

    module = str(getattr(function, "__module__", "")).split(".")[0]
    for kernel in get_loaded_kernels():
        if module == str(kernel.metadata.id):
            return _repository(kernel)
    return ""


def _repository(kernel: Any) -> str:
    """Of a loaded kernel; one from a folder does not tell it, but LOCAL_KERNELS does."""
    if kernel.repo_info:
        return str(kernel.repo_info.repo_id)
    file = Path(kernel.module.__file__).resolve()
    near = (repo for repo, folder in local_overrides().items() if file.is_relative_to(folder.resolve()))
    return next(near, f"{PUBLISHER}/{kernel.metadata.name}")


@contextlib.contextmanager
def _replaced(module: Any, name: str, watcher: Callable[..., Any]) -> Iterator[None]:
    """Temporarily replace `module.name` with `watcher`, which gets the original as its first argument."""
    plain = getattr(module, name)
    setattr(module, name, lambda *rest, **more: watcher(plain, *rest, **more))
    try:
        yield
    finally:
        setattr(module, name, plain)


def _flash_taken() -> str:
    """The choice that the FlashAttention function in use belongs to, told by its module."""
    import transformers.modeling_flash_attention_utils as utils

    module = str(getattr(utils._flash_varlen_fn or utils._flash_fn, "__module__", ""))
    if "kernels" in sys.modules:
        from kernels import get_loaded_kernels

        for kernel in get_loaded_kernels():
            if module.split(".")[0] == str(kernel.metadata.id):
                name = _repository(kernel)
                return "flash_attention_4" if name == f"{PUBLISHER}/flash-attn4" else name
    return next((choice for start, choice in _PACKAGES if module.startswith(start)), f"flash ({module})")
