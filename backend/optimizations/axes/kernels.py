"""Whether layers are replaced by kernels: none, those of the Hub, or those of a local folder."""

import re
from pathlib import Path

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.families import ENCODERS
from tokendyno.backend.optimizations import routed
from tokendyno.backend.optimizations.base import LAYER_OF, Choice, Optimization, blocked, divided, fallback, note
from tokendyno.backend.optimizations.shared_rules import named_kernels
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.optimizations.whole_layers import WHOLE, known_router
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import literal

_MAPPING = "transformers 5.22: integrations/hub_kernels._build_kernel_mapping"
NO_NORMS = frozenset(
    {"gemma", "gemma2", "gemma3_text", "gemma3n_text", "gemma4", "helium", "qwen3_next", "zamba2"}
    | {"qwen3_5", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_text"}
    | {"gpt2", "gpt_neox", "opt", "phi", "stablelm", "bert", *ENCODERS}
)
"""Architectures without an RMSNorm that a kernel can replace: the first have one that transformers does not offer to
any (Gemma's adds 1 to its weight), the others LayerNorm."""
_DENSE = ("falcon_h1", "qwen2_moe", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next")
"""Architectures with multipliers that are folded into dense rows, or a shared expert whose gate must be dense."""
ROWS = "DecoderLayerOfGPT2"
"""The layer of a folder that replaces those of GPT-2 as a whole, once their matrices are stored by rows."""


def _cached(subject: Subject) -> tuple[str, ...]:
    return tuple(name for name in subject.hub_kernel_layers.values() if name in subject.machine.hub_kernels)


def _fused_whole(s: Subject) -> bool:
    """Whether whole layers with fused projections are replaced, in a mixture where kernels of ours compute experts."""
    experts = s.choices["experts"] == "triton" or s.runs_own_mxfp4
    return (
        "DecoderLayer" in s.machine.kernel_layers
        and s.facts.architecture in WHOLE
        and (s.facts.architecture not in (*routed.ALIKE, "gpt_oss") or experts)
        and (s.choices["quantization"] == "none" or not (s.facts.architecture in _DENSE or _has_latents(s)))
        and s.own_loop
        and (s.choices["projections"] == "fused" or _comes_joined(s))
    )


def _has_latents(s: Subject) -> bool:
    """Whether attention is to latents, whose matrices kernels read as dense."""
    return any(layers.latent for layers in s.facts.counted_cache)


def _computes_heads(s: Subject) -> bool:
    """Whether the kernel of attention has this size of heads and as many queries for each KV head: `ops.fits`; or
    that of latents their size: `latents.fits`."""
    if _has_latents(s):
        return s.facts.head_dim in (16, 32, 64, 128, 256, 512)
    return s.facts.head_dim in (16, 32, 64, 128, 256) and s.facts.heads <= 16 * s.facts.kv_heads


def _comes_joined(s: Subject) -> bool:
    """Whether q, k and v are one matrix without being fused, and one that kernels read."""
    readable = s.choices["quantization"].startswith(("none", "torchao"))
    return s.facts.architecture == "phi3" and s.facts.quantization is None and readable


def _left_packed(s: Subject) -> bool:
    """Whether kernels would read packed weights, but not with a vector in this dtype."""
    blocks = s.choices["quantization"].startswith(("bnb-nf4", "bnb-fp4"))
    return blocks and s.choices["projections"] == "fused" and s.compute_dtype == "float32"


def _not_called(s: Subject) -> bool:
    """Whether the kernels are those that come with tokendyno, none of which an encoder's layers would call."""
    return not s.decoder and s.machine.kernels == str(kernel_packages.BUNDLED)


def _by_rows(s: Subject) -> bool:
    """Whether whole layers of GPT-2 are replaced, whose matrices come stored by columns."""
    dense = s.choices["quantization"] == "none" and s.facts.quantization is None
    return s.facts.architecture == "gpt2" and ROWS in s.machine.kernel_layers and s.own_loop and dense


def _runs_whole(s: Subject) -> bool:
    """Whether decode steps run whole layers, of a mixture at least those without experts."""
    return _computes_heads(s) and ((_fused_whole(s) and not _left_packed(s)) or _by_rows(s))


HUB_RULES = (
    fallback(
        lambda s: not s.hub_kernel_layers,
        "On a CPU use_kernels=True replaces no layer of this model: the only CPU kernels on the Hub are for "
        "gpt-oss's experts.",
        _MAPPING,
        becomes="off",
    ),
    blocked(
        lambda s: bool(s.hub_kernel_layers) and s.machine.hub_offline and not _cached(s),
        "The Hub is offline (HF_HUB_OFFLINE), and none of the kernels that transformers would use for this model is "
        "in the Hub cache. Point to local copies with LOCAL_KERNELS, or download them once while online.",
        _MAPPING,
    ),
    note(
        lambda s: s.machine.hub_offline and 0 < len(_cached(s)) < len(s.hub_kernel_layers),
        "The Hub is offline (HF_HUB_OFFLINE): only kernels that are already cached are used.",
        _MAPPING,
    ),
    blocked(
        lambda s: s.runs_mxfp4,
        "With use_kernels transformers dequantizes MXFP4 weights to bfloat16: use_kernels is for weights in full "
        "precision, and MXFP4 has its own kernels.",
        "transformers 5.22: quantizers/quantizer_mxfp4.py",
    ),
    note(
        lambda s: s.cuda and s.compiles,
        "Kernels that torch.compile cannot trace are left out, such as those for RMSNorm and the rotary embedding.",
        _MAPPING,
    ),
)


def _mapped(s: Subject) -> set[str]:
    """Repositories that the choice "mapping" names, without revision and layer."""
    return {re.split("[@:]", kernel)[0] for kernel in s.values.get("kernels", {}).values()}


LOCAL_RULES = (
    note(
        lambda s: _runs_whole(s) and known_router(s.facts.router),
        "Decode steps run whole decoder layers of the kernel folder, for up to 32 sequences (one with layers of 4 "
        "bits, or with ranks that share experts); the chosen attention computes prefill and larger batches.",
        "presets/kernels/matvec/build/torch-cuda/layers.py",
    ),
    note(
        lambda s: _runs_whole(s) and not known_router(s.facts.router),
        "No kernel knows this model's router: layers with experts run the model's own code, with kernels for experts.",
        "presets/kernels/matvec/build/torch-cuda/description.py: routing_of",
    ),
    note(
        _left_packed,
        "bitsandbytes' 4-bit weights are read by kernels with vectors in bfloat16 or float16 only; in float32 its own "
        "code multiplies with them.",
        "presets/kernels/matvec/build/torch-cuda/nibbles.py",
        fix=(("dtype", "bfloat16"),),
    ),
    blocked(
        lambda s: not s.machine.kernel_layers,
        "No folder with kernels for this device was found. Set one with --kernels-dir or TOKENDYNO_KERNELS; it "
        "contains kernel packages, each with build/torch-cpu or build/torch-cuda.",
        "backend/hardware/kernel_packages.py",
    ),
    blocked(
        _not_called,
        "The kernels that come with tokendyno multiply with the newest token of each text, or normalize as no encoder "
        "does: in a pass of an encoder none of them would run.",
        "presets/kernels/matvec/build/torch-cuda/ops.py: few",
    ),
    blocked(
        lambda s: s.machine.kernel_layers == ("RMSNorm",) and s.facts.architecture in NO_NORMS and not _not_called(s),
        "The kernel folder has RMSNorm only, and this architecture has no layer that it can replace.",
        "transformers 5.22: @use_kernel_forward_from_hub in its modeling file",
    ),
)


_LAYERS = ("RMSNorm", "MLP", "SiLU", "Linear", "MegaBlocksMoeMLP", "rotary_pos_emb")
"""Layers that a mapping may name: those that models of transformers mark as replaceable, and torch.nn.Linear."""


class Kernels(Optimization):
    name = "kernels"
    title = "Kernels"
    summary = "Kernels that replace layers of the model, loaded by the package kernels."
    default = "off"
    off = "off"
    order = 22
    aliases = {"hub": ("use_kernels", "KernelConfig"), "local": ("KernelConfig", "LOCAL_KERNELS")}
    costs = {"hub": "a download of binaries that run here"}
    choices = (
        Choice("off", "No layers replaced: the model's own code."),
        Choice(
            "hub",
            "use_kernels=True: layers are replaced by prebuilt kernels of kernels-community, binaries that run here.",
            HUB_RULES,
            title="from the Hub",
        ),
        Choice(
            "local",
            "Layers are replaced by kernels of a local folder: yours if set, otherwise those shipped with tokendyno.",
            LOCAL_RULES,
            title="local folder",
        ),
        Choice(
            "mapping",
            "Any kernels of the Hub, as KernelConfig maps layers to them: kernels=mapping:RMSNorm=org/name:Layer.",
            named_kernels(_mapped, "kernels=mapping:RMSNorm=org/name:Layer", _MAPPING),
            values=dict.fromkeys(_LAYERS, ("", LAYER_OF)),
            example="mapping:RMSNorm=org/norms:RMSNorm",
            title="your mapping",
        ),
    )

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        name, mapping = divided(name)
        return plan.with_load(
            kernels=name,
            kernels_path=subject.machine.kernels if name == "local" else "",
            kernels_mapping=tuple(sorted(mapping.items())),
            kernels_compiled=name != "off" and subject.compiles,
            kernels_rows=name == "local" and (_by_rows(subject) or (_comes_joined(subject) and _fused_whole(subject))),
        )

    def details(self, plan: Plan, subject: Subject) -> str:
        if plan.load.kernels != "hub":
            return ""
        by = ", ".join(f"{layer} by {repo}" for layer, repo in subject.hub_kernel_layers.items())
        return f"transformers maps layers of this model to kernels of the Hub: {by}."

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
            script.patched("worker/patch/kernels.py", "add_step_end(model)")
        if load.parallel.ranks > 1 and "SummedLinear" in packages:
            script.patched("worker/patch/kernels.py", "add_exchanges()")
        if load.kernels_rows:
            script.patched("worker/patch/kernels.py", "store_by_rows(model)")
        script.patch.append(f"replace_layers(model, mapping, DEVICE, compiled={load.kernels_compiled})")
