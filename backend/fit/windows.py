"""The KV cache over the context: by kind, and with and without a sliding window, beside models that have one."""

from collections.abc import Sequence

import msgspec

from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.plan import DYNAMIC, UNWINDOWED
from tokendyno.backend.predict.kv import kv_bytes, kv_polyline
from tokendyno.backend.units import bytes_text

BESIDE = ("gpt-oss-20b", "Mistral-7B-v0.1", "Gemma-3-1b")
"""One with a window in every other layer, in all layers, and in five of six."""

ITEM_BYTES = 2
"""Of a key's or value's number: all of these models are published in bfloat16."""

MOST_TOKENS = 32_768
"""As far as Mistral and Gemma go."""


class WindowCurve(msgspec.Struct, frozen=True):
    """Bytes of one sequence's cache at the corners of the curve. `said`: its end, in words."""

    title: str
    contexts: list[int]
    windowed: list[int]
    unwindowed: list[int]
    said: str


class KindCurves(msgspec.Struct, frozen=True):
    """Bytes of one sequence's cache by kind, at the corners of the curves. `said`: their ends, in words."""

    contexts: list[int]
    kinds: dict[str, list[int]]
    said: str


def kind_curves(facts: ModelFacts) -> KindCurves:
    """Of the model's layers, the kinds that it has; none of an encoder."""
    last = min(MOST_TOKENS, facts.max_positions)
    contexts = [corner.length for corner in kv_polyline(facts, DYNAMIC, 1, last, 1, ITEM_BYTES, 0)]
    sizes = [kv_bytes(facts, DYNAMIC, length, 1, ITEM_BYTES).by_kind() for length in contexts]
    kinds = {kind: [size[kind] for size in sizes] for kind, most in sizes[-1].items() if most}
    ends = [f"{kind} {' '.join(bytes_text(curve[-1]))}" for kind, curve in kinds.items()]
    return KindCurves(contexts, kinds, f"{facts.label}, after {last:,} tokens: {', '.join(ends)}." if kinds else "")


def window_curves(facts: ModelFacts) -> Sequence[WindowCurve]:
    """The model's, where it has a window, before those of `BESIDE`."""
    own = [facts] if any(layers.window for layers in facts.cache_layers) else []
    every = [*own, *map(resolve, BESIDE)]
    return list({one.label: _curve(one) for one in every}.values())


def _curve(facts: ModelFacts) -> WindowCurve:
    last = min(MOST_TOKENS, facts.max_positions)
    corners = kv_polyline(facts, DYNAMIC, 1, last, 1, ITEM_BYTES, 0)
    contexts = [corner.length for corner in corners]
    windowed = [corner.sliding + corner.full for corner in corners]
    unwindowed = [kv_bytes(facts, UNWINDOWED, length, 1, ITEM_BYTES).total for length in contexts]
    ends = [" ".join(bytes_text(sizes[-1])) for sizes in (windowed, unwindowed)]
    said = f"{facts.label}: {ends[0]} after {last:,} tokens; {ends[1]} without its window."
    return WindowCurve(facts.label, contexts, windowed, unwindowed, said)
