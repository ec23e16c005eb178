"""Which layers of a model have a sliding window, and its size.

Rules: the config classes and `get_layer_types_and_kwargs` (cache_utils) in transformers 5.22.
"""

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.facts import LayerKind
from tokendyno.backend.models.families import Family
from tokendyno.backend.models.files.config_fields import Fields, show

LAYER_KINDS: dict[str, LayerKind] = {"sliding_attention": "sliding", "full_attention": "full"}


def read_windows(fields: Fields, family: Family, layers: int) -> tuple[int | None, tuple[LayerKind, ...]]:
    """The window in tokens and the kind of each layer; None and all "full" without a window. InputError if invalid."""
    window: int | None = None
    if fields.has("sliding_window") or family.window:
        window = fields.count(("sliding_window",), family.window, "positions", 0)
    if "sliding_window" in fields and not fields.has("sliding_window"):
        window = None  # an explicit null means no window
    if family.window_rule in ("flag", "late", "nope") and not fields.flag("use_sliding_window", False):
        window = None
    given = fields.items("layer_types", layers)
    kinds = _given_kinds(given, fields, layers) if given is not None else _ruled_kinds(fields, family, layers, window)
    if "sliding" not in kinds:
        return None, kinds
    if window is None or window < 2:
        raise InputError(
            f"{fields.where}: layers have a sliding window, but 'sliding_window' is {show(window)}; at least 2 tokens "
            "are needed. Correct the file."
        )
    return window, kinds


def _given_kinds(given: list[object], fields: Fields, layers: int) -> tuple[LayerKind, ...]:
    if len(given) != layers:
        raise InputError(
            f"{fields.where}: 'layer_types' has {len(given)} entries for {layers} layers. Correct the file."
        )
    strange = next((kind for kind in given if not isinstance(kind, str) or kind not in LAYER_KINDS), None)
    if strange is not None or None in given:
        raise InputError(
            f"{fields.where}: layers of type {show(strange)} are not supported. "
            f"Choose a model whose layers are {' or '.join(LAYER_KINDS)}."
        )
    return tuple(LAYER_KINDS[kind] for kind in given if isinstance(kind, str))


def _ruled_kinds(fields: Fields, family: Family, layers: int, window: int | None) -> tuple[LayerKind, ...]:
    if window is None and family.window_rule != "pattern":
        return tuple(_kind(False) for _ in range(layers))
    match family.window_rule:
        case "late":
            first = fields.count(("max_window_layers",), 28, "layers", 0)
            sliding = [layer >= first for layer in range(layers)]
        case "nope":
            rope = fields.items("no_rope_layers", layers)
            every = fields.count(("no_rope_layer_interval",), 4, "layers")
            whole = rope is not None and len(rope) == layers
            sliding = [not has for has in rope or ()] if whole else _each(every, layers)
        case "pattern":
            every = fields.count(("sliding_window_pattern",), family.pattern, "layers")
            sliding = [not last for last in _each(every, layers)]
        case "plain" | "flag":
            sliding = [True] * layers
    return tuple(_kind(is_sliding) for is_sliding in sliding)


def _kind(sliding: bool) -> LayerKind:
    return "sliding" if sliding else "full"


def _each(every: int, layers: int) -> list[bool]:
    """True for the last layer of each group of `every`."""
    return [(layer + 1) % every == 0 for layer in range(layers)]
