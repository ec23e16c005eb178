"""Whether projections of the same input are fused into one matrix."""

from typing import Any

from tokendyno.backend.optimizations.base import Choice, Optimization, blocked, note
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.optimizations.whole_layers import WHOLE
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_SOURCE = "backend/worker/patch/projections.py, with a test for each of these architectures"
GROUPS = (
    ("q_proj", "k_proj", "v_proj"),
    ("gate_proj", "up_proj"),
    ("query", "key", "value"),
    ("w1", "w3"),
    ("in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"),
    ("in_proj_qkvz", "in_proj_ba"),
    ("q_proj", "kv_a_proj_with_mqa"),
    ("q_a_proj", "kv_a_proj_with_mqa"),
)
"""Names of linear layers that a model's code applies to one input, in the order of the calls. Llama has the first two
groups, mixtures and GLM-4 the first, BERT the third, LFM2 the fourth, linear attention of Qwen3.5 and of Qwen3-Next the
next two, latent attention (DeepSeek) one of the last."""
_KNOWN = ("bert", *WHOLE)
_WHOLE = ("gpt2", "phi3", "gpt_neox", "bloom")  # q, k and v are one matrix; a gate there is none, or one with up
_BLOCKS = {"bnb-nf4": 64, "bnb-fp4": 64, "bnb-nf4-double": 64 * 256, "bnb-fp4-double": 64 * 256}
"""Numbers of a matrix, row after row, that share a scale, or scales that share one."""
_JOINED = ("none", "torchao-int8", "torchao-fp8", "torchao-int4", "mxfp4", "mxfp4-dequantized", *_BLOCKS)
"""What can be laid one below the other: dense rows, 8-bit rows with a scale each, tiles of 8 rows of 4 bits, rows of
whole blocks of 4 bits; mxfp4 packs experts only."""


def _across(s: Subject) -> bool:
    """Whether a block of 4-bit numbers would have those of two rows or matrices."""
    block = _BLOCKS.get(s.choices["quantization"], 1)
    joined = [matrix for matrix in s.facts.matrices if matrix.kind == "linear" and matrix.side == "rows"]
    return block > 1 and any(m.columns % 64 or m.rows * m.columns % block for m in joined)


class Projections(Optimization):
    name = "projections"
    title = "Projections"
    summary = "Whether q, k, v and gate, up are separate matrices or one matrix for each group."
    default = "separate"
    sets = "load.projections"
    off = "separate"
    order = 26
    aliases = {"fused": ("qkv",)}
    costs = {"fused": "a slower load"}
    choices = (
        Choice("separate", "As in the model's code: q, k, v, gate and up are five GEMMs per layer."),
        Choice(
            "fused",
            "One matrix for q, k, v and one for gate, up: two GEMMs instead of five, in the same memory.",
            (
                blocked(
                    lambda s: s.facts.architecture in _WHOLE or s.facts.shared_inputs == 0,
                    "This architecture has q, k and v in one matrix already, or no linear layers with an input in "
                    "common and names like those of Llama or BERT: there is nothing to fuse.",
                    "counted in the model that transformers builds; fused by a test",
                ),
                blocked(
                    lambda s: s.facts.architecture in ("zamba", "zamba2"),
                    "Several layers of this architecture are one block with the same matrices, which would be copied "
                    "for each.",
                    "transformers 5.22: Zamba2Model, _tied_weights_keys",
                ),
                blocked(
                    lambda s: (
                        s.choices["quantization"] not in _JOINED
                        or s.facts.quantization not in (None, "mxfp4", "torchao")
                    ),
                    "Matrices that are quantized like this cannot be concatenated. Dense ones, torchao's 8-bit rows "
                    "and 4-bit tiles, and what tokendyno quantizes with bitsandbytes to 4 bits can.",
                    _SOURCE,
                ),
                blocked(
                    lambda s: s.choices["quantization"] in _BLOCKS and not s.cuda,
                    "On a CPU bitsandbytes rearranges each of its 4-bit matrices for its own kernels; they are "
                    "concatenated on a GPU only.",
                    "bitsandbytes 0.50: nn/modules.py, Linear4bit.forward",
                ),
                blocked(
                    _across,
                    "In this model a block of bitsandbytes' 4-bit weights with one scale, or of scales that share one, "
                    "has numbers of two rows or of two matrices, which cannot be concatenated then.",
                    "backend/worker/patch/quantized.py, joinable_4bit",
                ),
                note(
                    lambda s: s.facts.architecture not in (*_KNOWN, *_WHOLE) and s.facts.shared_inputs != 0,
                    "Untested with this architecture: matrices named like those of Llama or BERT will be fused.",
                    _SOURCE,
                ),
            ),
        ),
    )

    def matters(self, facts: Any) -> bool:
        return facts.architecture not in _WHOLE and facts.shared_inputs != 0

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.projections == "fused":
            # before kernels replace the layers that it fuses
            script.patched("worker/patch/projections.py", "fuse(model)", first=True)


def shared_inputs(model: Any, linear: type) -> int:
    """How many groups of linear layers that can be fused a model has. Other things may have these names."""
    return sum(
        all(isinstance(getattr(module, part, None), linear) for part in group)
        for _, module in text_modules(model)
        for group in GROUPS
    )


def text_modules(model: Any) -> list[tuple[str, Any]]:
    """Modules that run where there is a text and nothing else: not those of models for images or sounds, nor those that
    read what an encoder gave, nor layers that do nothing else (Mllama's)."""
    text = model.get_decoder() if hasattr(model, "get_decoder") and model.can_generate() else model
    modules = list(text.named_modules())
    across = {"encoder_attn", "crossattention", "cross_attn"}
    skipped = []
    for name, module in modules:
        parts = {part for part, _ in module.named_children()}
        tower = name and "text" not in getattr(module, "input_modalities", "text")
        if tower or name.split(".")[-1] in across or (parts & across and parts.isdisjoint(("self_attn", "attention"))):
            skipped.append(f"{name}.")
    return [(name, module) for name, module in modules if not f"{name}.".startswith(tuple(skipped))]
