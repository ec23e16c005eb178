"""The parts of a model that proofs look at, and what each of them is."""

from collections.abc import Iterator
from typing import Any

from torch import nn

from backend.optimizations.proof import PartKind


def parts_of(model: Any) -> dict[str, PartKind]:
    """Layers, what these are made of, and modules beside them, by name; layers come before what they are made of."""
    return dict(_parts(model, ""))


def part_with(module: str, parts: dict[str, PartKind]) -> str:
    """The name of the part that this module is or is in; its own where it is in none."""
    place = module
    while place and place not in parts:
        place = place.rpartition(".")[0]
    return place or module


def _parts(module: Any, path: str) -> Iterator[tuple[str, PartKind]]:
    """Layers are the elements of the outermost lists."""
    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            for place, layer in child.named_children():
                yield f"{path}{name}.{place}", "other"
                for part, one in layer.named_children():
                    yield f"{path}{name}.{place}.{part}", _kind(one)
        elif any(isinstance(one, nn.ModuleList) for one in child.modules()):
            yield from _parts(child, f"{path}{name}.")
        else:
            yield f"{path}{name}", _kind(child)


def _kind(part: Any) -> PartKind:
    name = type(part).__name__.lower()
    if "attention" in name or "attn" in name:
        return "attention"
    inside = [*(path for path, _ in part.named_modules()), *(type(one).__name__ for one in part.modules())]
    return "mixture" if any("expert" in one.lower() for one in inside) else "other"
