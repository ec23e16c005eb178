"""Told by the operators and kernels that only the loaded packages define, called by every layer in every pass."""

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.optimizations.base import joined
from tokendyno.backend.worker.prove.observation import Observation, coverage, hidden_by
from tokendyno.backend.worker.prove.tensor_bytes import has_packed_weights


class Layer(NamedTuple):
    """A layer that a kernel may replace, by the name under which kernels are offered for it, such as "RMSNorm"; the
    kernel that replaces it, its kind and its package: "" where the model's own code runs."""

    layer: str
    kernel: str = ""
    kind: str = ""
    package: str = ""


def layers(model: Any) -> Iterator[Layer]:
    """Every layer that transformers, or a kernel's mapping, marks as replaceable; functions that act as layers too."""
    for module in model.modules():
        for candidate in (module, *getattr(module, "_kernel_funcs", {}).values()):
            layer = getattr(type(candidate), "kernel_layer_name", "")
            if layer and getattr(type(candidate), "kernel_condition", lambda module: True)(candidate):
                yield _with_kernel(candidate, layer)


def _with_kernel(module: Any, layer: str) -> Layer:
    """The layer with the loaded kernel that replaces the module's forward, if one does."""
    forward = getattr(vars(module).get("forward"), "__func__", None)
    kernel, local = loaded_kernel(forward)
    if kernel is None or forward is type(module).forward:
        return Layer(layer)
    package = str(kernel.metadata.id)
    if kernel.repo_info is not None:
        return Layer(layer, f"{kernel.repo_info.repo_id} at {kernel.repo_info.revision[:7]}", "hub", package)
    if local:
        return Layer(layer, f"{local} (LOCAL_KERNELS)", "hub", package)
    return Layer(layer, str(kernel.metadata.name), "local", package)


def loaded_kernel(function: Any) -> tuple[Any, str]:
    """The loaded kernel that a function belongs to, None for one of another package; and the repository for which
    LOCAL_KERNELS names the kernel's folder, "" without one."""
    from kernels import get_loaded_kernels

    package = str(getattr(function, "__module__", "")).split(".")[0]
    kernel = next((kernel for kernel in get_loaded_kernels() if str(kernel.metadata.id) == package), None)
    if kernel is None:
        return None, ""
    file, folders = Path(kernel.module.__file__).resolve(), kernel_packages.local_overrides().items()
    return kernel, next((repo for repo, folder in folders if file.is_relative_to(folder.resolve())), "")


def own_names(packages: set[str]) -> set[str]:
    """Names of the operators and Triton kernels that these Python packages define: what only they can leave in a trace.
    One that ends in "::" stands for a whole namespace of operators."""
    names: set[str] = set()
    modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] in packages]
    for value in (value for module in modules for value in vars(module).values()):
        match type(value).__name__:
            case "JITFunction" | "GluonJITFunction":
                names.add(value.fn.__name__)
            case "CustomOpDef":
                names.add(value._qualname)
            case "OpOverload":
                names.add(value.name())
            case "OpOverloadPacket":
                names.add(value._qualified_op_name)
            case "_OpNamespace":
                names.add(f"{value.name}::")
    return {name for name in names if not name.startswith(("aten::", "prims::"))}


def find(observation: Observation) -> Finding:
    """Counts the layers that should have a kernel, those that have, and the calls of the kernels' own operators."""
    model, load = observation.model, observation.plan.load
    slots = [layer for layer in layers(model) if layer.kernel]
    offered = {slot.layer for slot in slots}
    if load.kernels == "mapping":
        offered |= dict(load.kernels_mapping).keys()
    if load.kernels == "local":
        offered |= set(kernel_packages.layers(Path(load.kernels_path), load.device))
    replaceable = [layer for layer in layers(model) if layer.layer in offered]
    if offered and not replaceable:
        reason = f"the model has no layer that there is a kernel for ({', '.join(sorted(offered))})"
        planned = joined("mapping", dict(load.kernels_mapping)) if load.kernels == "mapping" else "local"
        return Finding("kernels", planned, reason, outcome="not_applicable")
    if not slots:
        return Finding("kernels", "off", "no layers replaced")
    packages = {slot.package for slot in slots}
    names = own_names(packages)
    if (texts := _too_many_texts(observation)) and names and not _ran(observation, names):
        reason = f"{len(slots)} layers have kernels for steps of fewer than {texts} texts; the model's own code ran"
        return Finding("kernels", "local", reason, outcome="not_applicable")
    reached, expected = _counted(observation, slots, len(replaceable), names)
    by_kernel = Counter((slot.kernel, slot.layer) for slot in slots)
    proof = ", ".join(f"{n} x {layer} by {kernel}" for (kernel, layer), n in by_kernel.most_common())
    if len(replaceable) > len(slots):
        proof += f"; {len(replaceable) - len(slots)} of {len(replaceable)} such layers have the model's own code"
    if not names:
        proof += "; its package defines no operator or Triton kernel of its own, so the trace cannot show it"
    if ran := ", ".join(f"{n} x {name[:60]}" for name, n in _ran(observation, names).most_common(3)):
        proof += f"; traced: {ran}"
    if hidden := hidden_by(observation):
        proof += f"; decode steps ran {hidden}"
    effective = "local" if any(slot.kind == "local" for slot in slots) else "hub"
    if load.kernels == "mapping":
        used = {(slot.layer, slot.kernel.split(" ")[0]) for slot in slots}
        mapping = {layer: ref for layer, ref in load.kernels_mapping if (layer, re.split("[@:]", ref)[0]) in used}
        effective = joined("mapping", mapping)
        if not names:  # plain code of torch: which layers have it is all that can be told
            reached, expected = len(slots), len(replaceable)
    return Finding("kernels", effective, proof, reached, expected)


def _too_many_texts(observation: Observation) -> int:
    """Rows of the batch, by what the run cached, if the kernels that come with tokendyno multiply with fewer at once on
    a GPU (`few` in matvec's ops.py, MOST_VECTORS in its settings.py); else 0."""
    load = observation.plan.load
    if load.device != "cuda" or load.kernels_path != str(kernel_packages.BUNDLED):
        return 0
    keys = [getattr(layer, "keys", None) for layer in getattr(observation.cache, "layers", ())]
    texts = max((len(part) for part in keys if part is not None), default=0)
    return texts if texts > (1 if has_packed_weights(observation.model) else 32) else 0


def _ran(observation: Observation, names: set[str]) -> Counter[str]:
    """Events of the trace that have such a name; torch.compile and the variants of a kernel append to it."""
    both = observation.trace().ops + observation.trace().kernels
    return Counter({name: n for name, n in both.items() if name.startswith(tuple(names))})


def _counted(
    observation: Observation, replaced: Sequence[Layer], replaceable: int, names: set[str]
) -> tuple[int | None, int | None]:
    """(reached, expected): calls on a CPU, a layer's in each pass; on a GPU layers, if any of the kernels was seen."""
    seen = _ran(observation, names).total()
    if observation.plan.load.device == "cuda":
        proved = bool(seen) or not names  # a binary of the Hub may launch what has any name
        return (len(replaced) - _silent_norms(observation, replaced) if proved else 0), replaceable
    reached, expected = coverage(observation, seen, replaceable)
    return (0, replaceable) if reached is None or expected is None else (reached, expected)


def _silent_norms(observation: Observation, replaced: Sequence[Layer]) -> int:
    """Norms with a kernel of a local folder that did not run in every pass on a GPU, replayed ones included; where
    kernels compute whole layers, in the pass over the prompt."""
    norms = [slot for slot in replaced if slot.kind == "local" and slot.layer == "RMSNorm"]
    own, trace = tuple(own_names({slot.package for slot in norms})), observation.trace()
    calls = sum(n for name, n in trace.kernels.items() if name.startswith(own))
    whole_layers = any(slot.layer.startswith("DecoderLayer") for slot in replaced)
    return max(0, len(norms) - calls // (1 if whole_layers else max(1, trace.steps))) if calls else 0
