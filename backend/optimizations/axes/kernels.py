"""Whether layers are replaced by kernels: none, those of the Hub, or those of a local folder."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backend.evidence import Finding
from backend.hardware import kernel_packages
from backend.models.families import ENCODERS
from backend.optimizations.base import Choice, Optimization
from backend.optimizations.conditions import compiles, hub_kernel_repositories, runs_mxfp4, uses_own_loop
from backend.optimizations.proof import Observation
from backend.optimizations.subject import Rule, Subject
from backend.plan import KernelsKind, Plan
from backend.script.parts import Script
from backend.script.source import literal

_MAPPING = "transformers 5.22: integrations/hub_kernels._build_kernel_mapping"
_NO_NORMS = frozenset(
    {"gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "opt", "phi", "stablelm"} | {"bert", *ENCODERS}
)
"""Architectures without an RMSNorm that a kernel can replace: Gemma's adds 1 to its weight, the others have
LayerNorm."""


def _near(subject: Subject) -> tuple[str, ...]:
    return tuple(name for name in hub_kernel_repositories(subject) if name in subject.machine.hub_kernels)


_OFF = (("kernels", "off"),)
_NO_PACKAGE = Rule(
    "blocked",
    lambda s: not s.machine.has("kernels"),
    "The package kernels, which replaces layers with kernels, is not installed.",
    "https://huggingface.co/docs/kernels",
    fix=_OFF,
)
_HUB_RULES = (
    _NO_PACKAGE,
    Rule(
        "fallback",
        lambda s: not hub_kernel_repositories(s),
        "On a CPU use_kernels=True replaces no layer of this model: the only CPU kernels on the Hub are for "
        "gpt-oss's experts.",
        _MAPPING,
        becomes="off",
        fix=_OFF,
    ),
    Rule(
        "blocked",
        lambda s: bool(hub_kernel_repositories(s)) and s.machine.hub_offline and not _near(s),
        "The Hub is offline (HF_HUB_OFFLINE), and none of the kernels that transformers would use for this model is "
        "in the Hub cache. Point to local copies with LOCAL_KERNELS, or download them once while online.",
        _MAPPING,
        fix=_OFF,
    ),
    Rule(
        "note",
        lambda s: s.machine.hub_offline and 0 < len(_near(s)) < len(hub_kernel_repositories(s)),
        "The Hub is offline (HF_HUB_OFFLINE): only kernels that are already cached are used.",
        _MAPPING,
    ),
    Rule(
        "blocked",
        runs_mxfp4,
        "With use_kernels transformers dequantizes MXFP4 weights to bfloat16: use_kernels is for weights in full "
        "precision, and MXFP4 has its own kernels.",
        "transformers 5.22: quantizers/quantizer_mxfp4.py",
        fix=_OFF,
    ),
    Rule(
        "note",
        lambda s: s.machine.device == "cuda" and compiles(s),
        "Kernels that torch.compile cannot trace are left out, such as those for RMSNorm and the rotary embedding.",
        _MAPPING,
    ),
)
_LOCAL_RULES = (
    _NO_PACKAGE,
    Rule(
        "note",
        lambda s: (
            "DecoderLayer" in s.machine.kernel_layers
            and s.facts.architecture in ("llama", "mistral", "qwen3")
            and uses_own_loop(s)
            and s.choices["projections"] == "fused"
        ),
        "Decode steps of a single sequence run whole decoder layers of the kernel folder, attention included; the "
        "chosen attention computes prefill and batches only.",
        "presets/kernels/matvec/build/torch-cuda/layers.py",
    ),
    Rule(
        "blocked",
        lambda s: not s.machine.kernel_layers,
        "No folder with kernels for this device was found. Set one with --kernels-dir or TOKENDYNO_KERNELS; it "
        "contains kernel packages, each with build/torch-cpu or build/torch-cuda.",
        "backend/hardware/kernel_packages.py",
        fix=_OFF,
    ),
    Rule(
        "fallback",
        lambda s: s.machine.kernel_layers == ("RMSNorm",) and s.facts.architecture in _NO_NORMS,
        "The kernel folder has RMSNorm only, and this architecture has no layer that it can replace.",
        "transformers 5.22: @use_kernel_forward_from_hub in its modeling file",
        becomes="off",
        fix=_OFF,
    ),
)


class Kernels(Optimization):
    """Told by the forward functions that were replaced, and by the loaded kernel that each one comes from."""

    name = "kernels"
    title = "Kernels"
    summary = "Kernels that replace layers of the model, loaded by the package kernels."
    default = "off"
    off = "off"
    order = 22
    choices = (
        Choice("off", "off", "No layers replaced: the model's own code."),
        Choice(
            "hub",
            "from the Hub",
            "use_kernels=True: layers are replaced by prebuilt kernels of kernels-community, binaries that run here.",
            _HUB_RULES,
        ),
        Choice(
            "local",
            "local folder",
            "Layers are replaced by kernels of a local folder: yours if set, otherwise those shipped with tokendyno.",
            _LOCAL_RULES,
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        kind: KernelsKind = "hub" if name == "hub" else "local" if name == "local" else "off"
        load = msgspec.structs.replace(
            plan.load,
            kernels=kind,
            kernels_path=subject.machine.kernels if kind == "local" else "",
            kernels_compiled=kind != "off" and compiles(subject),
        )
        return msgspec.structs.replace(plan, load=load)

    def write(self, script: Script, plan: Plan) -> None:
        load = plan.load
        if load.kernels == "off":
            return
        if load.kernels == "hub":
            mode = "Mode.INFERENCE | Mode.TORCH_COMPILE" if load.kernels_compiled else "Mode.INFERENCE"
            script.imports.add("from kernels import Mode")
            script.patch.append(f"model.set_use_kernels(True, mode={mode})")
            return
        packages = kernel_packages.layers(Path(load.kernels_path), load.device)
        script.define("worker/patch/kernels.py", "local_mapping", "replace_layers")
        script.patch.append(literal({name: str(package) for name, package in packages.items()}, "packages = "))
        script.patch.append("mapping = local_mapping(packages, DEVICE)")
        if "StepEnd" in packages and plan.generate.loop == "own":
            script.define("worker/patch/kernels.py", "add_step_end")
            script.patch.append("add_step_end(model)")
        script.patch.append(f"replace_layers(model, mapping, DEVICE, compiled={load.kernels_compiled})")

    def find(self, observation: Observation) -> Finding:
        """Finds every layer whose forward was replaced, and the loaded kernel that the new one comes from."""
        found = Counter(_replaced(observation.model))
        if not found:
            return Finding(self.name, "off", "no layers replaced")
        by_kind: Counter[str] = Counter()
        for (kind, _, _), n in found.items():
            by_kind[kind] += n
        shown = ", ".join(f"{n} x {layer} by {origin}" for (_, origin, layer), n in found.most_common())
        ran = observation.trace().matching("rms_norm", "rmsnorm", "liger", "rotary", "megablocks", "tokendyno")
        names = ", ".join(f"{n} x {name[:60]}" for name, n in ran.most_common(3))
        return Finding(self.name, by_kind.most_common(1)[0][0], shown + (f"; traced: {names}" if names else ""))


def _replaced(model: Any) -> Iterator[tuple[str, str, str]]:
    """(hub or local, origin of the kernel, layer) for each replaced layer."""
    from kernels import get_loaded_kernels

    loaded = {str(kernel.metadata.id): kernel for kernel in get_loaded_kernels()}
    folders = {folder.resolve(): repo for repo, folder in kernel_packages.local_overrides().items()}
    for module in model.modules():
        for one in (module, *getattr(module, "_kernel_funcs", {}).values()):
            forward = getattr(vars(one).get("forward"), "__func__", None)
            kernel = loaded.get(str(getattr(forward, "__module__", "")).split(".")[0])
            if kernel is None or forward is type(one).forward:
                continue
            layer = getattr(type(one), "kernel_layer_name", type(one).__name__)
            named = [
                repo for folder, repo in folders.items() if folder in Path(kernel.module.__file__).resolve().parents
            ]
            if kernel.repo_info is not None:
                yield "hub", f"{kernel.repo_info.repo_id} at {kernel.repo_info.revision[:7]}", layer
            elif named:
                yield "hub", f"{named[0]} (LOCAL_KERNELS)", layer
            else:
                yield "local", str(kernel.metadata.name), layer


AXIS = Kernels()
