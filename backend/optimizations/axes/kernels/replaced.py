"""Which layers of a model kernels could replace, which ones they did, and what only those kernels leave in a trace."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokendyno.backend.hardware import kernel_packages


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that a kernel may replace. kernel, kind, package: of the one that does, "" where the model's own runs.
    module: that is replaced."""

    layer: str
    kernel: str = ""
    kind: str = ""
    package: str = ""
    module: Any = field(default=None, compare=False, repr=False)


def layers(model: Any) -> Iterator[Layer]:
    """Every layer that transformers, or a kernel's mapping, marks as replaceable; functions that act as layers too."""
    for module in model.modules():
        for one in (module, *getattr(module, "_kernel_funcs", {}).values()):
            layer = getattr(type(one), "kernel_layer_name", "")
            if layer and getattr(type(one), "kernel_condition", lambda module: True)(one):
                yield _replaced(one, layer)


def _replaced(one: Any, layer: str) -> Layer:
    """By which loaded kernel, if its forward was replaced."""
    from kernels import get_loaded_kernels

    forward = getattr(vars(one).get("forward"), "__func__", None)
    package = str(getattr(forward, "__module__", "")).split(".")[0]
    kernel = {str(kernel.metadata.id): kernel for kernel in get_loaded_kernels()}.get(package)
    if kernel is None or forward is type(one).forward:
        return Layer(layer)
    folders = {folder.resolve(): repo for repo, folder in kernel_packages.local_overrides().items()}
    named = [repo for folder, repo in folders.items() if folder in Path(kernel.module.__file__).resolve().parents]
    if kernel.repo_info is not None:
        return Layer(layer, f"{kernel.repo_info.repo_id} at {kernel.repo_info.revision[:7]}", "hub", package, one)
    if named:
        return Layer(layer, f"{named[0]} (LOCAL_KERNELS)", "hub", package, one)
    return Layer(layer, str(kernel.metadata.name), "local", package, one)


def measured(packages: set[str]) -> dict[int, Counter[str]]:
    """Of these Python packages: vectors multiplied at once -> the way that warm-up found fastest -> shapes of matrices.

    A package that measures keeps `CHOSEN`: (card, vectors, ...) -> (way, microseconds by way).
    """
    found: dict[int, Counter[str]] = {}
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in packages:
            for key, (way, _) in getattr(module, "CHOSEN", {}).items():
                found.setdefault(key[1], Counter())[way] += 1
    return found


def own_names(packages: set[str]) -> set[str]:
    """Names of the operators and Triton kernels that these Python packages define: what only they can leave in a trace.

    A name that ends in "::" stands for a whole namespace of operators.
    """
    found: set[str] = set()
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] in packages]
    for value in (value for module in modules for value in vars(module).values()):
        match type(value).__name__:
            case "JITFunction" | "GluonJITFunction":
                found.add(value.fn.__name__)
            case "CustomOpDef":
                found.add(value._qualname)
            case "OpOverload":
                found.add(value.name())
            case "OpOverloadPacket":
                found.add(value._qualified_op_name)
            case "_OpNamespace":
                found.add(f"{value.name}::")
    return {name for name in found if not name.startswith(("aten::", "prims::"))}
