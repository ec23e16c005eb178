"""Which parameters of rotary positions no model can have: transformers fails on them, or every score becomes NaN.

Rules: `modeling_rope_utils.py` and the configs in transformers 5.22. Tests compare them with that package.
"""

import math
from collections.abc import Iterator

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.families import FAMILIES, Family
from tokendyno.backend.models.files.config_fields import Fields, show
from tokendyno.backend.models.windows import LAYER_KINDS

NEEDED: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
    "proportional": (),
}
"""`rope_type` -> what it cannot do without. What else it needs has a default."""

MAY_BE_NULL = (("yarn", "factor"),)  # then it is the ratio of the lengths
POSITIVE = ("factor", "rope_theta", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
TYPES = ("rope_type", "type")
SETS = ("rope_scaling", "rope_parameters")
THETAS = ("rope_theta", "rope_local_base_freq")
LISTS = ("short_factor", "long_factor")
MAX_FACTORS = 1 << 16


def check_rope(fields: Fields, family: Family, head_dim: int) -> None:
    """InputError if the rotary positions of a config of the table are impossible. `head_dim`: elements of a head."""
    if family.rope_sets == "none":
        return
    for name in THETAS:
        _check_positive(fields, name)
    for part, given in _sets(fields, family):
        kind = _known(part, given, family is FAMILIES["phi3"])
        _check_numbers(part, kind)
        share = part.raw("partial_rotary_factor") or fields.raw("partial_rotary_factor") or 1.0
        if kind == "longrope" and _is_positive(share):
            _check_lengths(part, int(head_dim * min(share, 1)) // 2)


def check_some_rope(fields: Fields) -> None:
    """InputError for a factor that no architecture outside the table can have. What else it may have is known to
    transformers, which counts the model."""
    for name in SETS:
        given = fields.raw(name)
        for part in (given, *given.values()) if isinstance(given, dict) else ():
            if isinstance(part, dict) and isinstance(part.get("factor"), int | float):
                _check_positive(Fields(part, f"{fields.where}: {name}"), "factor")


def _sets(fields: Fields, family: Family) -> Iterator[tuple[Fields, object]]:
    """The sets of parameters that transformers would use, one or one for each kind of layer, with their types, whatever
    stands there. `type` is an older name, which is not read where the set is merged into one that has a type."""
    scaling, given = (fields.part(name) for name in SETS)
    each = family.rope_sets == "each"
    if scaling is not None:
        yield scaling, _first(scaling, *TYPES[: 1 if each else 2])
    if given is not None:
        parts = [given.part(kind) for kind in LAYER_KINDS] if each else [given]
        yield from ((part, _first(part, *TYPES)) for part in parts if part is not None)


def _first(part: Fields, *names: str) -> object:
    return next((part.raw(name) for name in names if name in part), "default")


def _known(part: Fields, kind: object, phi3: bool) -> str:
    """A set's type. InputError if transformers does not know it."""
    kinds = ("default", "longrope") if phi3 else tuple(NEEDED)
    if phi3 and kind in ("su", "yarn"):  # older names of its own
        kind = "longrope"
    if not isinstance(kind, str) or kind not in kinds:
        raise InputError(
            f"{part.where}: 'rope_type' is {show(kind)}; one of {', '.join(kinds)} is needed. Correct the file, or "
            "copy it again from the original checkpoint."
        )
    return kind


def _check_numbers(part: Fields, kind: str) -> None:
    """InputError if a set lacks what its type needs, or has a number of which no frequency comes."""
    for name in NEEDED[kind]:
        if not (part.has(name) or (name in part and (kind, name) in MAY_BE_NULL)):
            raise InputError(
                f"{part.where} has no {name!r}, which rope_type {kind!r} needs. Copy it again from the original "
                "checkpoint."
            )
    for name in POSITIVE if kind != "default" else ("rope_theta",):
        _check_positive(part, name)
    for name in LISTS if kind == "longrope" else ():
        if not all(_is_positive(value) for value in part.items(name, MAX_FACTORS) or ()):
            raise InputError(f"{part.where}: {name!r} must hold positive numbers only. Correct the file.")


def _check_lengths(part: Fields, pairs: int) -> None:
    """InputError unless the lists have a factor for each pair of rotated elements."""
    for name in LISTS:
        found = len(part.items(name, MAX_FACTORS) or ())
        if found != pairs:
            raise InputError(
                f"{part.where}: {name!r} has {found:,} numbers; {pairs:,} are needed, one for each pair of rotated "
                "elements of a head. Copy it again from the original checkpoint."
            )


def _check_positive(part: Fields, name: str) -> None:
    value = part.raw(name)
    if value is not None and not _is_positive(value):
        raise InputError(
            f"{part.where}: {name!r} is {show(value)}; a number greater than 0 is needed. Copy it again from the "
            "original checkpoint."
        )


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and 0 < value < math.inf
