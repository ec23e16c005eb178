"""Whose code computes the layers: the model's own, kernels from the Hub, or those of a local folder."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from backend import kernel_folders
from backend.messages import Finding
from backend.models.families import ENCODERS
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.optimizations.compile import compiles
from backend.optimizations.mxfp4_rules import stays_packed
from backend.plan import KernelsKind, Plan
from backend.script import Script
from backend.source import call, quoted

_MAPPING = "transformers 5.22: integrations/hub_kernels._build_kernel_mapping"
_NO_NORMS = frozenset(
    {"gemma", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "opt", "phi", "stablelm"} | {"bert", *ENCODERS}
)
"""Architectures without an RMSNorm that a kernel may stand in for: Gemma's adds 1 to its weight, the others have
LayerNorm."""
_REPOSITORIES = {
    "gpt_oss": ("megablocks", "liger-kernels", "rotary"),
    "gpt2": ("activation",),
    "bert": ("activation",),
    "gemma3_text": ("activation", "rotary"),
}
"""Repositories of kernels-community that transformers maps to layers of an architecture on CUDA; others: `_USUAL`."""
_USUAL = ("liger-kernels", "activation", "rotary")


def repositories(subject: Subject) -> tuple[str, ...]:
    """Kernel repositories of the Hub that have something for this model on this device."""
    names = _REPOSITORIES.get(subject.facts.architecture, _USUAL)
    if subject.machine.device == "cpu":
        names = ("megablocks",) if subject.facts.architecture == "gpt_oss" else ()
    return tuple(f"{kernel_folders.PUBLISHER}/{name}" for name in names)


def _near(subject: Subject) -> tuple[str, ...]:
    return tuple(name for name in repositories(subject) if name in subject.machine.hub_kernels)


def takes_hub_kernels(subject: Subject) -> bool:
    """Whether kernels of the Hub are asked for, and transformers has some for this model."""
    return subject.choices.get("kernels", "off") == "hub" and bool(repositories(subject))


_OFF = (("kernels", "off"),)
_NO_PACKAGE = Rule(
    "blocked",
    lambda s: not s.machine.has("kernels"),
    "The package kernels, which puts kernels in the place of layers, is not installed.",
    "https://huggingface.co/docs/kernels",
    fix=_OFF,
)
_HUB_RULES = (
    _NO_PACKAGE,
    Rule(
        "fallback",
        lambda s: not repositories(s),
        "On a CPU use_kernels=True is taken and replaces no layer of this model: the Hub has kernels for CPUs only for "
        "gpt-oss's experts.",
        _MAPPING,
        becomes="off",
        fix=_OFF,
    ),
    Rule(
        "blocked",
        lambda s: bool(repositories(s)) and s.machine.hub_offline and not _near(s),
        "The Hub is switched off (HF_HUB_OFFLINE), and none of the kernels that transformers would take for this model "
        "is in its cache. Name folders that have them in LOCAL_KERNELS, or fetch them once while online.",
        _MAPPING,
        fix=_OFF,
    ),
    Rule(
        "note",
        lambda s: s.machine.hub_offline and 0 < len(_near(s)) < len(repositories(s)),
        "The Hub is switched off (HF_HUB_OFFLINE): only kernels that are here already will stand in.",
        _MAPPING,
    ),
    Rule(
        "blocked",
        stays_packed,
        "transformers unpacks MXFP4 weights to bfloat16 when it is asked for kernels: use_kernels is for weights in "
        "full precision, packed ones have kernels of their own.",
        "transformers 5.22: quantizers/quantizer_mxfp4.py",
        fix=_OFF,
    ),
    Rule(
        "note",
        lambda s: s.machine.device == "cuda" and compiles(s),
        "Kernels that torch.compile cannot trace are left out, RMSNorm's and the rotary embedding's among them.",
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
            and s.choices.get("loop") == "own"
            and s.choices.get("projections") == "fused"
        ),
        "A single new token goes through whole decoder layers of the kernel folder, attention included: the attention "
        "chosen above computes the prompt, and batches.",
        "presets/kernels/matvec/build/torch-cuda/layers.py",
    ),
    Rule(
        "blocked",
        lambda s: not s.machine.kernel_layers,
        "There is no folder with kernels for this device. Name one with --kernels-dir or TOKENDYNO_KERNELS; it holds "
        "kernel packages, each with build/torch-cpu or build/torch-cuda.",
        "backend/kernel_folders.py",
        fix=_OFF,
    ),
    Rule(
        "fallback",
        lambda s: s.machine.kernel_layers == ("RMSNorm",) and s.facts.architecture in _NO_NORMS,
        "The kernel folder has RMSNorm alone, and this architecture has none that it could stand in for.",
        "transformers 5.22: @use_kernel_forward_from_hub in its modeling file",
        becomes="off",
        fix=_OFF,
    ),
)


class Kernels(Optimization):
    """Told by the forward functions that were replaced, and by the loaded kernel that each new one comes from."""

    name = "kernels"
    title = "Kernels"
    summary = "Kernels that stand in for layers of the model, loaded by the package kernels."
    default = "off"
    order = 22
    choices = (
        Choice("off", "off", "The model's own code."),
        Choice(
            "hub",
            "from the Hub",
            "use_kernels=True: layers become compiled kernels of kernels-community, downloaded binaries that run here.",
            _HUB_RULES,
        ),
        Choice(
            "local",
            "local folder",
            "Layers of a kernel folder on this machine: the one you name, else those that come with tokendyno.",
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
        mode = "Mode.INFERENCE | Mode.TORCH_COMPILE" if load.kernels_compiled else "Mode.INFERENCE"
        script.imports.add("from kernels import Mode")
        if load.kernels == "hub":
            script.patch.append(f"model.set_use_kernels(True, mode={mode})")
            return
        script.imports |= {
            "from pathlib import Path",
            "from kernels import LocalLayerRepository, kernelize, use_kernel_mapping",
        }
        script.patch.append("local = {}")
        for name, package in kernel_folders.layers(Path(load.kernels_path), load.device).items():
            layer = {"layer_name": quoted(name)}
            script.patch.append(call("kernel = LocalLayerRepository", [f"Path({quoted(str(package))})"], layer))
            script.patch.append(f"local[{quoted(name)}] = {{DEVICE: kernel}}")
            if name == "Linear":  # as `hub._extend`: torch's own class, and no subclass of it
                script.imports.add("from kernels import replace_kernel_forward_from_hub")
                own = "lambda module: type(module) is torch.nn.Linear"
                script.patch.append(call("replace_kernel_forward_from_hub", ["torch.nn.Linear", '"Linear"', own], {}))
        script.patch += [
            "with use_kernel_mapping(local, inherit_mapping=False):",
            f"    kernelize(model, mode={mode}, device=DEVICE)",
        ]

    def find(self, seen: Seen) -> Finding:
        """Looks at every layer whose forward is not its class's own, and for the loaded kernel that it comes from."""
        found = Counter(_replaced(seen.model))
        if not found:
            return Finding(self.name, "off", "no layer's forward is a kernel's")
        by_kind: Counter[str] = Counter()
        for (kind, _, _), n in found.items():
            by_kind[kind] += n
        shown = ", ".join(f"{n} x {layer} by {origin}" for (_, origin, layer), n in found.most_common())
        ran = seen.trace().matching("rms_norm", "rmsnorm", "liger", "rotary", "megablocks", "tokendyno")
        names = ", ".join(f"{n} x {name[:60]}" for name, n in ran.most_common(3))
        return Finding(self.name, by_kind.most_common(1)[0][0], shown + (f"; traced: {names}" if names else ""))


def _replaced(model: Any) -> Iterator[tuple[str, str, str]]:
    """(hub or local, where the kernel comes from, layer), for each layer that a kernel stands in for."""
    from kernels import get_loaded_kernels

    loaded = {str(kernel.metadata.id): kernel for kernel in get_loaded_kernels()}
    folders = {folder.resolve(): repo for repo, folder in kernel_folders.overrides().items()}
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
