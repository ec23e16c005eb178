"""Told by the operators and kernels that only the loaded packages define, called by every layer in every pass."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.optimizations.base import joined
from tokendyno.backend.worker.prove.observation import Observation, coverage, hidden_by
from tokendyno.backend.worker.prove.tensor_bytes import has_packed_weights


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


MOST_TEXTS = 32
"""As presets/kernels/matvec/build/torch-cuda/settings.py: MOST_VECTORS."""


def find(observation: Observation) -> Finding:
    """Counts the layers that should have a kernel, those that have, and the calls of the kernels' own operators."""
    model, load = observation.model, observation.plan.load
    slots = [one for one in layers(model) if one.kernel]
    offered = {one.layer for one in slots}
    if load.kernels == "mapping":
        offered |= {layer for layer, _ in load.kernels_mapping}
    if load.kernels == "local":
        offered |= set(kernel_packages.layers(Path(load.kernels_path), load.device))
    wanted = [one for one in layers(model) if one.layer in offered]
    if offered and not wanted:
        none = f"the model has no layer that there is a kernel for ({', '.join(sorted(offered))})"
        return Finding("kernels", _planned(observation), none, outcome="not_applicable")
    if not slots:
        return Finding("kernels", "off", "no layers replaced")
    names = own_names({one.package for one in slots})
    if (texts := _texts(observation)) > _most_texts(observation) and names and not _ran(observation, names):
        own = f"{len(slots)} layers have kernels for steps of fewer than {texts} texts; the model's own code ran"
        return Finding("kernels", "local", own, outcome="not_applicable")
    reached, expected = _counted(observation, slots, len(wanted), names)
    kinds = {one.kind for one in slots}
    proof = ", ".join(f"{n} x {layer} by {kernel}" for (kernel, layer), n in Counter(map(_by, slots)).most_common())
    if len(wanted) > len(slots):
        proof += f"; {len(wanted) - len(slots)} of {len(wanted)} such layers have the model's own code"
    if not names:
        proof += "; its package defines no operator or Triton kernel of its own, so the trace cannot show it"
    for vectors, ways in sorted(measured({one.package for one in slots}).items()):
        best = ", ".join(f"{way} for {n}" for way, n in ways.most_common())
        proof += f"; products with {vectors} vectors, fastest in warm-up by shape of matrix: {best}"
    if ran := ", ".join(f"{n} x {name[:60]}" for name, n in _ran(observation, names).most_common(3)):
        proof += f"; traced: {ran}"
    if hidden := hidden_by(observation):
        proof += f"; decode steps ran {hidden}"
    effective = "local" if "local" in kinds else "hub"
    if load.kernels == "mapping":
        effective = joined("mapping", _as_mapped(load.kernels_mapping, slots))
        if not names:  # plain code of torch: which layers have it is all that can be told
            reached, expected = len(slots), len(wanted)
    return Finding("kernels", effective, proof, reached, expected)


def _planned(observation: Observation) -> str:
    """The choice as it was planned, of a model without a layer for it."""
    load = observation.plan.load
    return joined("mapping", dict(load.kernels_mapping)) if load.kernels == "mapping" else "local"


def _as_mapped(mapping: Sequence[tuple[str, str]], slots: Sequence[Layer]) -> dict[str, str]:
    """Of a mapping, what is in effect: layers whose kernel is of the repository that was named."""
    by_layer = {one.layer: one.kernel.split(" ")[0] for one in slots}
    return {layer: named for layer, named in mapping if by_layer.get(layer) == re.split("[@:]", named)[0]}


def _texts(observation: Observation) -> int:
    """Rows of the batch, by what the run cached; 0 without a cache."""
    cached = getattr(observation.cache, "layers", ())
    return max((len(layer.keys) for layer in cached if getattr(layer, "keys", None) is not None), default=0)


def _most_texts(observation: Observation) -> int:
    """With how many texts at once the kernels that come with tokendyno multiply on a GPU: matvec's `ops.few`."""
    load = observation.plan.load
    if load.device != "cuda" or load.kernels_path != str(kernel_packages.BUNDLED):
        return sys.maxsize
    return 1 if has_packed_weights(observation.model) else MOST_TEXTS


def _by(layer: Layer) -> tuple[str, str]:
    return layer.kernel, layer.layer


def _ran(observation: Observation, names: set[str]) -> Counter[str]:
    """Events of the trace that have such a name; torch.compile and the variants of a kernel append to it."""
    trace = observation.trace()
    return Counter(
        {name: n for name, n in (trace.ops + trace.kernels).items() if any(name.startswith(own) for own in names)}
    )


def _counted(
    observation: Observation, replaced: Sequence[Layer], wanted: int, names: set[str]
) -> tuple[int | None, int | None]:
    """(reached, expected): calls on a CPU, a layer's in each pass; on a GPU layers, if any of the kernels was seen."""
    seen = _ran(observation, names).total()
    if observation.plan.load.device == "cuda":
        proved = bool(seen) or not names  # a binary of the Hub may launch what has any name
        return (len(replaced) - _silent_norms(observation, replaced) if proved else 0), wanted
    reached, expected = coverage(observation, seen, wanted)
    return (0, wanted) if reached is None or expected is None else (reached, expected)


def _silent_norms(observation: Observation, replaced: Sequence[Layer]) -> int:
    """Norms of a local folder without a kernel in each pass on a GPU, replayed ones included; where kernels compute
    whole layers, in the prompt's."""
    norms = [one for one in replaced if one.kind == "local" and one.layer == "RMSNorm"]
    own, trace = tuple(own_names({one.package for one in norms})), observation.trace()
    ran = sum(n for name, n in trace.kernels.items() if name.startswith(own))
    whole = any(one.layer.startswith("DecoderLayer") for one in replaced)
    return max(0, len(norms) - ran // (1 if whole else max(1, trace.steps))) if ran else 0
