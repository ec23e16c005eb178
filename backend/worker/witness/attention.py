"""Told by the calls of every layer in a trace of the run's own steps."""

import contextlib
import functools
import re
import sys
from collections import Counter
from typing import Any, NamedTuple
from unittest import mock

import torch
from transformers import DynamicCache
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware.kernel_packages import PUBLISHER
from tokendyno.backend.optimizations.axes.attention import Attention
from tokendyno.backend.optimizations.base import joined
from tokendyno.backend.worker.prove.observation import Observation, coverage, hidden_by, traced_passes
from tokendyno.backend.worker.prove.profile import Trace, flex_calls
from tokendyno.backend.worker.witness.kernels import loaded_kernel

_MARKS = {
    "sdpa: flash": ("pytorch_flash::", "_scaled_dot_product_flash_attention"),
    "sdpa: cuDNN": ("cudnn_generated", "_scaled_dot_product_cudnn_attention"),
    "sdpa: memory-efficient": ("fmha_cutlass", "_scaled_dot_product_efficient_attention"),
    "sdpa: math": ("_scaled_dot_product_attention_math",),
    "our kernel": ("tokendyno_attention",),
    "flex": ("flex_attention", "flex_decoding"),
    "flash": (" flash::", "flash_fwd", "flashattnfwd", "FlashAttentionForward"),
    "softmax": ("aten::softmax", "softmax_warp_forward", "cunn_SoftMax"),
}
"""Parts of operator and kernel names in a profile, by attention backend."""

_NO_SINK = -1e4
"""Beside any scores a sink below this has no share of the softmax: it is 0 in every number format."""


class ProbedCall(NamedTuple):
    """A call of sdpa, softmax, flex_attention or a kernel, and the choice, or the repository, that it belongs to."""

    function: str
    choice: str


def find(observation: Observation) -> Finding:
    """Counts in the trace which attention every layer called in every pass; a short pass tells what it does not."""
    probed = probed_calls(observation.model)
    name = effective_choice(probed)
    if name == _kernel_of(observation.model):
        proof = f"the first layer's attention, which all layers fetch by one name, called {name}"
        return Finding("attention", _choice_of(name, observation.plan.load.attention), proof)
    trace, config = observation.trace(), observation.model.config.get_text_config(decoder=True)
    heads = int(config.num_attention_heads)
    kv_heads = getattr(config, "num_key_value_heads", None) or heads
    calls = traced_calls(trace, heads, kv_heads, inline=not probed).by_choice(name)
    others = Counter({other: n for other, n in calls.items() if n and other != name})
    fused_layers = trace.matching("::decoder_layer").total()
    if others and not calls[name] and not _is_flash(name):
        name, others = max(others, key=others.__getitem__), Counter()
    reached, expected = _counted(observation, calls[name], others.total(), name)
    called = ", ".join(f"{n} x {function}" for function, n in Counter(call.function for call in probed).items())
    parts = [f"a short pass called {called or 'no attention function'}", _traced(trace)]
    if fused_layers:
        parts.insert(0, f"{fused_layers} decoder layers ran in a fused layer kernel with its own attention; otherwise")
    if expected is not None:
        counts = "".join(f", {n} {other}" for other, n in others.items())
        parts.append(f"{reached} of {expected} calls were {name}{counts}")
    if hidden := hidden_by(observation):
        parts.append(f"decode steps ran {hidden}, where calls of attention cannot be counted")
    effective = _choice_of(name, observation.plan.load.attention)
    if sinks := [sink.max().item() for key, sink in observation.model.named_parameters() if key.endswith(".sinks")]:
        off = max(sinks) < _NO_SINK
        parts.append(f"{len(sinks)} layers with sinks, whose highest score is {max(sinks):.3g}")
        effective = joined(effective, {"sinks": "off"}) if off else effective
    return Finding("attention", effective, "; ".join(parts), reached, expected)


def _is_flash(name: str) -> bool:
    """Whether its kernels are no operators of torch: those of FlashAttention and of the Hub."""
    return name.startswith("flash") or "/" in name


def _choice_of(name: str, planned: str | None) -> str:
    """The choice that a kernel of the Hub belongs to: one of its own, or that of any. A loaded kernel does not tell the
    revision that was asked for."""
    if "/" not in name or any(choice.name == name for choice in Attention.choices):
        return name
    repository = planned if planned and planned.partition("@")[0] == name else name
    return joined("hub", {"repository": repository})


def _counted(observation: Observation, seen: int, other_calls: int, name: str) -> tuple[int | None, int | None]:
    """(reached, expected) calls of attention: every layer in every pass. Flash kernels are counted by their names."""
    layers = attending_layers(observation)
    all_calls = layers * traced_passes(observation)
    if _is_flash(name) and (flash := flash_calls(observation.trace())):
        return min(flash, all_calls), max(all_calls, min(flash, all_calls) + other_calls)
    if _is_flash(name) or (hidden_by(observation) and not seen):
        return (max(0, all_calls - other_calls), all_calls) if other_calls else (None, None)
    reached, expected = coverage(observation, seen, layers)
    if reached is None or expected is None:
        return None, None
    return reached, max(expected, reached + other_calls)


def _traced(trace: Trace) -> str:
    if not trace.steps:
        return "no trace"
    backends: list[str] = []
    for backend, marks in _MARKS.items():
        kernels = trace.matching(*marks).most_common(2)
        if kernels and not (backend == "softmax" and backends):
            shown = (f"{n} x {re.split('[<(]', name.removeprefix('void '))[0][:60]}" for name, n in kernels)
            backends.append(f"{backend} ({', '.join(shown)})")
    return f"{trace.steps} tokens traced: " + (", ".join(backends) or "no attention kernel visible in compiled code")


_SDPA = "aten::scaled_dot_product_attention"
_FUSED = (
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention",
    "aten::_scaled_dot_product_efficient_attention",
    "aten::_scaled_dot_product_cudnn_attention",
)
_MATH = "aten::_scaled_dot_product_attention_math"
_FLASH = ("flash_fwd", "flashattnfwd", "flashattentionforward")
_NOT_FLASH = ("pytorch_flash", "combine", "prepare")


class TracedCalls(NamedTuple):
    """Calls of attention in a trace.

    sdpa      PyTorch's scaled_dot_product_attention
    repeated  those of them, of a single new token, whose KV heads had been copied for each query head
    grouped   softmax over scores (B, KV heads, group, S): products written out by groups of heads
    eager     softmax over other scores of attention; a router's have fewer dimensions
    """

    sdpa: int
    repeated: int
    grouped: int
    eager: int
    flex: int

    def by_choice(self, chosen: str) -> Counter[str]:
        """By the choice that makes them: where sdpa-gqa was chosen, it makes sdpa's calls too, but for copied heads.
        Those of flash kernels are no operators of torch: see `flash_calls`."""
        calls = Counter(sdpa=self.sdpa, eager=self.eager, flex_attention=self.flex)
        if chosen == "sdpa-gqa":
            calls["sdpa"], calls["sdpa-gqa"] = self.repeated, self.sdpa - self.repeated + self.grouped
        else:
            calls["eager"] += self.grouped
        return calls


def traced_calls(trace: Trace, heads: int, kv_heads: int, inline: bool = False) -> TracedCalls:
    """Count them. Compiled code calls fused kernels without the operator in front; math is torch's own softmax.

    inline: the layers' code calls no function of attention, so that scores may have texts and heads in one dimension.
    """
    sdpa = repeated = softmax = grouped = 0
    for (name, shapes), n in trace.shapes.items():
        if name == _SDPA:
            sdpa += n
            query, key = shapes[0], shapes[1]
            single_token = len(query) == 4 and query[2] == 1
            repeated += n * (single_token and key[1] == query[1] == heads != kv_heads)
        elif name == "aten::softmax" and len(shapes[0]) == 4:
            _, first, second, _ = shapes[0]
            by_group = kv_heads < heads and first == kv_heads and first * second == heads
            grouped, softmax = grouped + n * by_group, softmax + n * (not by_group)
        elif name == "aten::softmax" and inline and len(shapes[0]) == 3:
            softmax += n * (shapes[0][0] % heads == 0)
    fused = sum(trace.ops[name] for name in _FUSED)
    flex = flex_calls(trace.ops).total()
    return TracedCalls(max(sdpa, fused), repeated, grouped, max(0, softmax - trace.ops[_MATH]), flex)


def flash_calls(trace: Trace) -> int:
    """Calls of FlashAttention 2, 3 or 4, by the one kernel of each that computes, in replayed graphs too."""
    kernels = ((name.lower(), n) for name, n in trace.kernels.items())
    flash = ((name, n) for name, n in kernels if any(mark in name for mark in _FLASH))
    return sum(n for name, n in flash if not any(mark in name for mark in _NOT_FLASH))


def attending_layers(observation: Observation) -> int:
    """Layers that attend: those with cached keys, and those that attend to another's; without a cache, all layers."""
    layers = getattr(observation.cache, "layers", ())
    if not layers:
        return int(observation.model.config.get_text_config(decoder=True).num_hidden_layers)
    cached = sum(getattr(layer, "keys", None) is not None for layer in layers)
    # Gemma 3n, Gemma 4 and Mistral Large 4 mark the layers that attend to the keys of another
    return cached + sum(bool(getattr(module, "is_kv_shared_layer", False)) for module in observation.model.modules())


_PACKAGES = (
    ("flash_attn.cute", "flash_attention_4"),
    ("flash_attn_interface", "flash_attention_3"),
    ("flash_attn", "flash_attention_2"),
)


def probed_calls(model: Any) -> list[ProbedCall]:
    """Calls made by a masked pass over two tokens and, of a decoder, by a decode step, each up to the first one."""
    seen: list[ProbedCall] = []
    ids = torch.tensor([[1, 2], [1, 2]], device=model.device)
    mask = torch.tensor([[0, 1], [1, 1]], device=model.device)
    cache = {"past_key_values": DynamicCache(config=model.config)} if model.can_generate() else {}
    with contextlib.ExitStack() as stack, torch.inference_mode():
        _watch(stack, seen, model)
        with contextlib.suppress(_Enough):
            model(input_ids=ids, attention_mask=mask, **cache)
        if cache:
            with contextlib.suppress(_Enough):
                model(input_ids=ids[:, :1], attention_mask=torch.cat([mask, mask[:, 1:]], 1), **cache)
    return seen


def effective_choice(seen: list[ProbedCall]) -> str:
    choices = [call.choice for call in seen]
    return "sdpa-gqa" if "sdpa-gqa" in choices else next((name for name in choices if name != "eager"), "eager")


class _Enough(Exception):
    """Ends the pass early: enough is known, and the rest may compile something."""


def _watch(stack: contextlib.ExitStack, seen: list[ProbedCall], model: Any) -> None:
    import transformers.integrations.flash_attention as flash
    import transformers.integrations.flex_attention as flex
    import transformers.masking_utils as masks

    owner, heads = _kernel_of(model), 0  # of the queries that sdpa was given

    def sdpa(original: Any, query: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal heads
        heads = query.shape[1]
        grouped = kwargs.get("enable_gqa") and key.shape[1] < heads  # a single KV head is broadcast without
        seen.append(ProbedCall("sdpa", "sdpa-gqa" if grouped else "sdpa"))
        raise _Enough

    def softmax(original: Any, scores: Any, *args: Any, **kwargs: Any) -> Any:
        if scores.dim() != 4:  # a router's have 2
            return original(scores, *args, **kwargs)
        _, kv_heads, group, _ = scores.shape  # where products are written out by groups; else all heads, and tokens
        seen.append(ProbedCall("softmax", "sdpa-gqa" if group > 1 and kv_heads * group == heads else "eager"))
        raise _Enough

    def flex_attention(original: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(ProbedCall("flex_attention", "flex_attention"))
        raise _Enough

    def flash_attention(original: Any, *args: Any, **kwargs: Any) -> Any:
        original(*args, **kwargs)  # loads the kernel whose name is asked for
        seen.append(ProbedCall(owner := _flash_owner(), owner))
        raise _Enough

    def kernel(*args: Any, **kwargs: Any) -> Any:
        seen.append(ProbedCall(owner, owner))
        raise _Enough

    def block_mask(original: Any, *args: Any, **kwargs: Any) -> Any:
        return original(*args, **{**kwargs, "_compile": False})

    for module, name, watcher in (
        (torch.nn.functional, "scaled_dot_product_attention", sdpa),
        (torch.nn.functional, "softmax", softmax),
        (flex, "compile_friendly_flex_attention", flex_attention),
        (masks, "create_block_mask", block_mask),
        (flash, "_flash_attention_forward", flash_attention),
    ):
        original = getattr(module, name)
        stack.enter_context(mock.patch.object(module, name, functools.partial(watcher, original)))
    if owner:
        functions = ALL_ATTENTION_FUNCTIONS._global_mapping
        stack.enter_context(mock.patch.dict(functions, {str(model.config._attn_implementation): kernel}))


def _kernel_of(model: Any) -> str:
    """The Hub's repository of a kernel with a function of its own, which layers look up by the model's setting."""
    name = str(model.config._attn_implementation)
    return _repository_of(ALL_ATTENTION_FUNCTIONS.get(name)) if "/" in name else ""


def _repository_of(function: Any) -> str:
    """The Hub's repository of the loaded kernel that a function belongs to; "" for a function of transformers."""
    kernel, local = loaded_kernel(function)
    if kernel is None:
        return ""
    return str(kernel.repo_info.repo_id) if kernel.repo_info else local or f"{PUBLISHER}/{kernel.metadata.name}"


def _flash_owner() -> str:
    """The choice that the FlashAttention function in use belongs to, told by its module."""
    import transformers.modeling_flash_attention_utils as utils

    function = utils._flash_varlen_fn or utils._flash_fn
    if "kernels" in sys.modules and (repository := _repository_of(function)):
        return "flash_attention_4" if repository == f"{PUBLISHER}/flash-attn4" else repository
    module = str(getattr(function, "__module__", ""))
    return next((choice for start, choice in _PACKAGES if module.startswith(start)), f"flash ({module})")
