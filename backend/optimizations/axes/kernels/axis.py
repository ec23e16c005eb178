"""Whether layers are replaced by kernels: none, those of the Hub, or those of a local folder."""

import re
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.optimizations.axes.kernels.replaced import Layer, layers, measured, own_names
from tokendyno.backend.optimizations.axes.kernels.rules import (
    HUB_RULES,
    LOCAL_RULES,
    MAPPING_RULES,
    may_replace,
    whole_as_they_come,
)
from tokendyno.backend.optimizations.base import LAYER_OF, Choice, Optimization, divided, joined
from tokendyno.backend.optimizations.conditions import compiles, hub_kernel_layers
from tokendyno.backend.optimizations.proof import Observation, coverage, hides
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.optimizations.tensor_bytes import has_packed_weights
from tokendyno.backend.plan import KernelsKind, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import literal

MOST_TEXTS = 32
"""As presets/kernels/matvec/build/torch-cuda/settings.py: MOST_VECTORS."""


_LAYERS = ("RMSNorm", "MLP", "SiLU", "Linear", "MegaBlocksMoeMLP", "rotary_pos_emb")
"""Layers that a mapping may name: those that models of transformers mark as replaceable, and torch.nn.Linear."""


class Kernels(Optimization):
    """Told by the operators and kernels that only the loaded packages define, called by every layer in every pass."""

    name = "kernels"
    title = "Kernels"
    summary = "Kernels that replace layers of the model, loaded by the package kernels."
    default = "off"
    off = "off"
    order = 22
    aliases = {"hub": ("use_kernels", "KernelConfig"), "local": ("KernelConfig", "LOCAL_KERNELS")}
    costs = {"hub": "a download of binaries that run here"}
    choices = (
        Choice("off", "off", "No layers replaced: the model's own code."),
        Choice(
            "hub",
            "from the Hub",
            "use_kernels=True: layers are replaced by prebuilt kernels of kernels-community, binaries that run here.",
            HUB_RULES,
        ),
        Choice(
            "local",
            "local folder",
            "Layers are replaced by kernels of a local folder: yours if set, otherwise those shipped with tokendyno.",
            LOCAL_RULES,
        ),
        Choice(
            "mapping",
            "your mapping",
            "Any kernels of the Hub, as KernelConfig maps layers to them: kernels=mapping:RMSNorm=org/name:Layer.",
            MAPPING_RULES,
            values=dict.fromkeys(_LAYERS, ("", LAYER_OF)),
            example="mapping:RMSNorm=org/norms:RMSNorm",
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        name, mapped = divided(name)
        kind = cast(KernelsKind, name)
        load = msgspec.structs.replace(
            plan.load,
            kernels=kind,
            kernels_path=subject.machine.kernels if kind == "local" else "",
            kernels_mapping=tuple(sorted(mapped.items())),
            kernels_compiled=kind != "off" and compiles(subject),
            kernels_rows=kind == "local" and whole_as_they_come(subject),
        )
        return msgspec.structs.replace(plan, load=load)

    def details(self, plan: Plan, subject: Subject) -> str:
        load = plan.load
        if load.kernels == "hub":
            by = ", ".join(f"{layer} by {repo}" for layer, repo in hub_kernel_layers(subject).items())
            return f"transformers maps layers of this model to kernels of the Hub: {by}."
        if load.kernels in ("off", "mapping"):
            return ""
        by_package: dict[str, list[str]] = {}
        for layer, package in kernel_packages.layers(Path(load.kernels_path), load.device).items():
            if may_replace(layer, subject):
                by_package.setdefault(package.name, []).append(layer)
        by = "; ".join(f"{', '.join(layers)} by {package}" for package, layers in by_package.items())
        return f"The kernel folder has layers for this model: {by}." if by else ""

    def write(self, script: Script, plan: Plan) -> None:
        load = plan.load
        if load.kernels == "off":
            return
        if load.kernels == "hub":
            mode = "Mode.INFERENCE | Mode.TORCH_COMPILE" if load.kernels_compiled else "Mode.INFERENCE"
            script.imports.add("from kernels import Mode")
            script.patch.append(f"model.set_use_kernels(True, mode={mode})")
            return
        if load.kernels == "mapping":
            script.define("worker/patch/kernels.py", "mapping_of", "replace_layers")
            script.patch.append(literal(dict(load.kernels_mapping), "mapping = "))
            script.patch.append(f"replace_layers(model, mapping_of(mapping, DEVICE), DEVICE, {load.kernels_compiled})")
            return
        packages = kernel_packages.layers(Path(load.kernels_path), load.device)
        script.define("worker/patch/kernels.py", "local_mapping", "replace_layers")
        script.patch.append(literal({name: str(package) for name, package in packages.items()}, "packages = "))
        script.patch.append("mapping = local_mapping(packages, DEVICE)")
        if "StepEnd" in packages and plan.generate.loop == "own":
            script.define("worker/patch/kernels.py", "add_step_end")
            script.patch.append("add_step_end(model)")
        if load.parallel.ranks > 1 and "SummedLinear" in packages:
            script.define("worker/patch/kernels.py", "add_exchanges")
            script.patch.append("add_exchanges()")
        if load.kernels_rows:
            script.define("worker/patch/rows.py", "store_by_rows")
            script.patch.append("store_by_rows(model)")
        script.patch.append(f"replace_layers(model, mapping, DEVICE, compiled={load.kernels_compiled})")

    def find(self, observation: Observation) -> Finding:
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
            return Finding(self.name, _planned(observation), none, outcome="not_applicable")
        if not slots:
            return Finding(self.name, "off", "no layers replaced")
        names = own_names({one.package for one in slots})
        if (texts := _texts(observation)) > _most_texts(observation) and names and not _ran(observation, names):
            own = f"{len(slots)} layers have kernels for steps of fewer than {texts} texts; the model's own code ran"
            return Finding(self.name, "local", own, outcome="not_applicable")
        reached, expected = _counted(observation, slots, len(wanted), names)
        kinds = {one.kind for one in slots}
        said = ", ".join(f"{n} x {layer} by {kernel}" for (kernel, layer), n in Counter(map(_by, slots)).most_common())
        if len(wanted) > len(slots):
            said += f"; {len(wanted) - len(slots)} of {len(wanted)} such layers have the model's own code"
        if not names:
            said += "; its package defines no operator or Triton kernel of its own, so the trace cannot show it"
        for vectors, ways in sorted(measured({one.package for one in slots}).items()):
            best = ", ".join(f"{way} for {n}" for way, n in ways.most_common())
            said += f"; products with {vectors} vectors, fastest in warm-up by shape of matrix: {best}"
        if ran := ", ".join(f"{n} x {name[:60]}" for name, n in _ran(observation, names).most_common(3)):
            said += f"; traced: {ran}"
        if hidden := hides(observation):
            said += f"; decode steps ran {hidden}"
        effective = "local" if "local" in kinds else "hub"
        if load.kernels == "mapping":
            effective = joined("mapping", _as_mapped(load.kernels_mapping, slots))
            if not names:  # plain code of torch: which layers have it is all that can be told
                reached, expected = len(slots), len(wanted)
        return Finding(self.name, effective, said, reached, expected)


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
    held = getattr(observation.cache, "layers", ())
    return max((len(layer.keys) for layer in held if getattr(layer, "keys", None) is not None), default=0)


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


AXIS = Kernels()
