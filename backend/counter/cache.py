"""What a model puts into transformers' cache, and into which caches of a fixed form its layers fit: by passes over the
meta device, whose tensors have no values."""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache, GenerationConfig, StaticCache
from transformers.cache_utils import DynamicSlidingWindowLayer, StaticLayer, StaticSlidingWindowLayer
from transformers.generation.continuous_batching.cache import PagedAttentionCache, group_layers_by_attn_type
from transformers.generation.continuous_batching.utils import find_head_dim, find_num_key_value_heads

from tokendyno.backend.models.facts import CacheLayers, LayerKind
from tokendyno.backend.optimizations.axes.cache import keeps_latents
from tokendyno.backend.optimizations.axes.loop import slot_masks


class Refused(Exception):
    """A model cannot be counted. The message completes "cannot be predicted: ..."."""


SHORT, LONG = 3, 70
"""Lengths of the two passes: a growing tensor differs between them, a state does not."""

aten = torch.ops.aten


class Answers(TorchDispatchMode):  # type: ignore[misc]
    """Gives the answers that meta tensors cannot. waited: a real pass would have waited for a device."""

    def __init__(self) -> None:
        super().__init__()
        self.waited = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        meta = bool(args) and isinstance(args[0], torch.Tensor) and args[0].device.type == "meta"
        if func is aten._local_scalar_dense.default and meta:  # `.item()`
            self.waited = True
            return True if args[0].dtype == torch.bool else args[0].new_ones((), device="cpu").item()
        if func is aten.nonzero.default and meta:
            self.waited = True
            return args[0].new_empty((0, args[0].dim()), dtype=torch.long)
        if func is aten._to_copy.default and kwargs.get("device") is not None:
            to_meta = torch.device(kwargs["device"]).type == "meta"
            self.waited = self.waited or to_meta != meta
            if meta and not to_meta:  # `.cpu()`, `.tolist()`
                return torch.ones(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if func is aten.split_with_sizes.default:
            tensor, sizes, *dim = args
            size = tensor.shape[dim[0] if dim else 0]
            if sum(sizes) != size:  # sizes that were computed from values
                args = (tensor, [size, *[0] * (len(sizes) - 1)], *dim)
        return func(*args, **kwargs)


@contextmanager
def observed() -> Iterator[Answers]:
    """Around a pass whose tensors have no values."""
    with torch.no_grad(), Answers() as answers:
        yield answers


class Ran:
    """While entered, collects the names of the modules that are called."""

    def __init__(self, model: Any) -> None:
        self.names: set[str] = set()
        self._model, self._hooks = model, list[Any]()

    def __enter__(self) -> "Ran":
        for name, module in self._model.named_modules():
            self._hooks.append(module.register_forward_pre_hook(lambda *_, name=name: self.names.add(name)))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()


def count_cache(model: Any, config: Any) -> tuple[list[CacheLayers], tuple[int, int], Any]:
    """(the cache's layers in order, equal neighbours together; the commonest heads and width of keys; the cache itself
    after a pass over `LONG` tokens)."""
    short, long = (_filled(model, config, length) for length in (SHORT, LONG))
    layers = [_layer(*pair) for pair in zip(short.layers, long.layers, strict=True)]
    if not any(layer.elements or layer.state_bytes or layer.state_elements for layer in layers):
        raise Refused("it does not use transformers' cache, so what it keeps between tokens is unknown")
    groups = [replace(layer, count=len(list(equal))) for layer, equal in itertools.groupby(layers)]
    shapes = [tuple(layer.keys.shape) for layer in long.layers if getattr(layer, "keys", None) is not None]
    commonest = max(shapes, key=shapes.count, default=(1, 0, 0, 0))
    return groups, (commonest[1], commonest[-1]), long


def _filled(model: Any, config: Any, length: int) -> Any:
    cache = DynamicCache(config=config.get_text_config(decoder=True))
    ids = torch.zeros((1, length), dtype=torch.long, device="meta")
    with observed():
        answer = model(input_ids=ids, past_key_values=cache, use_cache=True)
    returned = getattr(answer, "past_key_values", None)
    if returned is not None and returned is not cache:
        raise Refused(f"it replaces the cache by one of its own ({type(returned).__name__})")
    if returned is None:
        raise Refused("it does not return a cache, so it is recurrent or keeps its state elsewhere")
    return cache


def _layer(short: Any, long: Any) -> CacheLayers:
    """One layer, from its caches after the short and the long pass."""
    window = getattr(short, "sliding_window", None) if isinstance(short, DynamicSlidingWindowLayer) else None
    few_tokens, many_tokens = SHORT, LONG
    if window is not None:
        few_tokens, many_tokens = min(SHORT, window - 1), min(LONG, window - 1)
    before, after = dict(layer_tensors(short)), dict(layer_tensors(long))
    elements = index_elements = state_elements = state_bytes = 0
    for name, tensor in after.items():
        if name not in before or before[name].dtype != tensor.dtype:
            raise Refused(f"its cache ({type(long).__name__}) changes its form while it grows")
        old, new = before[name].numel(), tensor.numel()
        per_token, rest = divmod(new - old, many_tokens - few_tokens) if many_tokens > few_tokens else (0, 0)
        fixed = old - per_token * few_tokens
        uneven = rest or fixed < 0 or (window and name in KEYS and many_tokens == few_tokens)
        if uneven or (per_token and tensor.dtype != torch.bfloat16):
            raise Refused(f"its cache ({type(long).__name__}) does not grow evenly with the tokens")
        elements += per_token
        index_elements += per_token if name.startswith("indexer") else 0
        if tensor.dtype == torch.bfloat16:
            state_elements += fixed
        else:
            state_bytes += fixed * tensor.element_size()
    if set(before) != set(after):
        raise Refused(f"its cache ({type(long).__name__}) changes its form while it grows")
    kind: LayerKind = "sliding" if window is not None and elements else "full" if elements else "fixed"
    even = elements == 2 * _key_elements(long)
    window = window if kind == "sliding" else None
    latent = keeps_latents(long)
    return CacheLayers(1, kind, elements, window, state_elements, state_bytes, even, latent, index_elements)


KEYS = ("keys", "values")


def _key_elements(layer: Any) -> int:
    """Elements of one token's keys; 0 without keys, or where values have another shape."""
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    if keys is None or values is None or keys.shape != values.shape:
        return 0
    return int(keys.shape[1] * keys.shape[3])


def layer_tensors(layer: Any) -> Iterator[tuple[str, Any]]:
    """The tensors that hold something for each sequence, by name."""
    for name, value in vars(layer).items():
        if not name.startswith("cumulative") and name != "_sliding_window_tensor":
            yield from _tensors_in(name, value)


def _tensors_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _tensors_in(f"{name}.{key}", item)


# --- fixed forms ---------------------------------------------------------------------------------

# Whether a model's layers fit into caches of a fixed form: static ones, the slots of the custom decode loop, and the
# pages of transformers' continuous batching. There is no list of architectures: `generate` and a step of continuous
# batching run without values, the static cache gives the class of each layer, and continuous batching gives its groups
# of layers and its sizes of keys and values.

LONGEST = 1 << 40
"""Longer than every window. Nothing is allocated before the first update."""

SLOTTED = {
    "StaticLayer",
    "StaticSlidingWindowLayer",
    "LinearAttentionLayer",
    "LinearAttentionAndStaticFullAttentionLayer",
    "LinearAttentionAndStaticSlidingWindowAttentionLayer",
}
"""Classes of layers that `backend/worker/loop/cache.py: StaticSlotCache` takes; a test compares them."""


def fits_static(model: Any, filled: Any) -> bool:
    """Whether `generate` reads a prompt into a static cache. filled: a dynamic one after a pass over `LONG` tokens."""
    keys = [layer.keys for layer in filled.layers if getattr(layer, "keys", None) is not None]
    if any(tensor.shape[2] > LONG for tensor in keys):
        return False  # the model puts tokens of its own in front
    ids = torch.zeros((1, LONG), dtype=torch.long, device="meta")
    try:
        cache = StaticCache(config=model.config.get_text_config(decoder=True), max_cache_len=2 * LONG)
        cache.get_seq_length = lambda *_, **__: 0  # tensors without values have no such number
        with observed():
            model.generation_config = GenerationConfig()  # processors of scores would need values
            model.generate(
                ids, attention_mask=torch.ones_like(ids), past_key_values=cache, max_new_tokens=1, disable_compile=True
            )
    except Exception:  # of any model's code
        return False
    return True


def fits_slots(layers: Sequence[Any]) -> bool:
    """Whether the custom decode loop takes each layer of a static cache, and at least one of them has slots."""
    windows = {layer.max_cache_len for layer in layers if isinstance(layer, StaticSlidingWindowLayer)}
    slotted = any(isinstance(layer, StaticLayer) for layer in layers)
    return slotted and len(windows) <= 1 and {type(layer).__name__ for layer in layers} <= SLOTTED


def slot_step(model: Any) -> bool | None:
    """Whether a decode step over slots waits for the device; None: the custom decode loop has no such step for it."""
    config = model.config.get_text_config(decoder=True)
    ids = torch.zeros((1, LONG), dtype=torch.long, device="meta")
    try:
        if not fits_slots(StaticCache(config=config, max_cache_len=LONGEST).layers):
            return None
        cache = StaticCache(config=config, max_cache_len=2 * LONG)
        cache.get_seq_length = lambda *_, **__: 0
        with observed():
            model(input_ids=ids, position_ids=ids, past_key_values=cache, use_cache=True)
        cache.get_mask_sizes = None  # slots are in no order: code that asks where a token lies must fail
        sizes = {layer.is_sliding: layer.max_cache_len for layer in cache.layers if isinstance(layer, StaticLayer)}
        full, sliding = (
            torch.ones((1, 1, 1, sizes[slides]), dtype=torch.bool, device="meta") if slides in sizes else None
            for slides in (False, True)
        )
        with observed() as answers:
            model(
                input_ids=ids[:, :1],
                attention_mask=slot_masks(config, full, sliding),
                position_ids=ids[:, :1],
                past_key_values=cache,
                use_cache=True,
            )
    except Exception:  # of any model's code
        return None
    return answers.waited


class _Pages(PagedAttentionCache):  # type: ignore[misc]
    """Pages that hold nothing: each layer finds as many earlier tokens as it brings. size: (KV heads, their width)."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.size, self.layers = size, set[int]()

    def update(self, key_states: Any, value_states: Any, layer_idx: int, kwargs: dict[str, Any]) -> tuple[Any, Any]:
        for states in (key_states, value_states):
            if states.shape[1::2] != self.size:
                raise ValueError("of another size than a page's tokens")
        self.layers.add(layer_idx)
        return torch.cat([key_states] * 2, 2), torch.cat([value_states] * 2, 2)


def fits_pages(model: Any, filled: Any) -> bool:
    """Whether a step of continuous batching writes into pages in each layer. filled: a dynamic cache after a pass."""
    config = model.config.get_text_config()
    try:
        groups = group_layers_by_attn_type(config)
        pages = _Pages((find_num_key_value_heads(config), find_head_dim(config)))
        if config._attn_implementation == "eager":
            model.set_attn_implementation("paged|eager")
        ids = torch.zeros((1, LONG), dtype=torch.long, device="meta")
        mask = torch.zeros((1, 1, LONG, 2 * LONG), dtype=model.dtype, device="meta")
        with observed():
            model(
                input_ids=ids,
                position_ids=ids,
                cache=pages,
                use_cache=False,
                attention_mask=dict.fromkeys(groups, mask) if len(groups) > 1 else mask,
            )
    except Exception:  # other kinds or sizes of layers, and whatever else a model's code raises
        return False
    return len(pages.layers) == sum(map(len, groups.values())) == len(filled.layers)
