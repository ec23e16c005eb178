"""Whether projections of the same input are fused into one matrix."""

from collections import Counter
from typing import Any

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.proof import Observation, coverage, hides, prompt_passes, traced_passes, weight_of
from tokendyno.backend.optimizations.subject import Subject, blocked, note
from tokendyno.backend.optimizations.tensor_bytes import local_part
from tokendyno.backend.optimizations.whole_layers import WHOLE
from tokendyno.backend.plan import Plan
from tokendyno.backend.script.parts import Script

_SOURCE = "backend/worker/patch/projections.py, with a test for each of these architectures"
GROUPS = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"), ("query", "key", "value"))
"""Names of linear layers that a model's code applies to one input, in the order of the calls. Llama has the first two
groups, mixtures and GLM-4 the first, BERT the last."""
_LARGEST = max(map(len, GROUPS))
LAST_FIRST = ("FalconH1MLP",)
"""Classes whose code applies the last matrix of a group before the first."""

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
    joined = [one for one in s.facts.matrices if one.kind == "linear" and one.side == "rows"]
    return block > 1 and any(one.columns % 64 or one.rows * one.columns % block for one in joined)


class Projections(Optimization):
    """Told by the products of the run's own steps: one for each group of matrices that share an input."""

    name = "projections"
    title = "Projections"
    summary = "Whether q, k, v and gate, up are separate matrices or one matrix for each group."
    default = "separate"
    off = "separate"
    order = 26
    aliases = {"fused": ("qkv",)}
    costs = {"fused": "a slower load"}
    choices = (
        Choice("separate", "separate", "As in the model's code: q, k, v, gate and up are five GEMMs per layer."),
        Choice(
            "fused",
            "fused",
            "One matrix for q, k, v and one for gate, up: two GEMMs instead of five, in the same memory.",
            (
                blocked(
                    lambda s: s.facts.architecture in _WHOLE,
                    "This architecture already has q, k and v in one matrix, and no gate or one fused with up: "
                    "nothing is left to fuse.",
                    "transformers 5.22: GPT2Attention.c_attn, Phi3Attention.qkv_proj; fused by a test",
                    fix=(("projections", "separate"),),
                ),
                blocked(
                    lambda s: s.facts.shared_inputs == 0 and s.facts.architecture not in _WHOLE,
                    "No linear layers that this model's text passes through have an input in common and names like "
                    "those of Llama or BERT: there is nothing to fuse.",
                    "counted in the model that transformers builds",
                    fix=(("projections", "separate"),),
                ),
                blocked(
                    lambda s: s.facts.architecture in ("zamba", "zamba2"),
                    "Several layers of this architecture are one block with the same matrices, which would be copied "
                    "for each.",
                    "transformers 5.22: Zamba2Model, _tied_weights_keys",
                    fix=(("projections", "separate"),),
                ),
                blocked(
                    lambda s: (
                        s.choices["quantization"] not in _JOINED
                        or s.facts.quantization not in (None, "mxfp4", "torchao")
                    ),
                    "Matrices that are quantized like this cannot be concatenated. Dense ones, torchao's 8-bit rows "
                    "and 4-bit tiles, and what tokendyno quantizes with bitsandbytes to 4 bits can.",
                    _SOURCE,
                    fix=(("projections", "separate"),),
                ),
                blocked(
                    lambda s: s.choices["quantization"] in _BLOCKS and s.machine.device != "cuda",
                    "On a CPU bitsandbytes rearranges each of its 4-bit matrices for its own kernels; they are "
                    "concatenated on a GPU only.",
                    "bitsandbytes 0.50: nn/modules.py, Linear4bit.forward",
                    fix=(("projections", "separate"),),
                ),
                blocked(
                    _across,
                    "In this model a block of bitsandbytes' 4-bit weights with one scale, or of scales that share one, "
                    "has numbers of two rows or of two matrices, which cannot be concatenated then.",
                    "backend/worker/patch/quantized.py, joinable_4bit",
                    fix=(("projections", "separate"),),
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

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        projections = "fused" if name == "fused" else "separate"
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, projections=projections))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.projections == "fused":
            script.define("worker/patch/projections.py", "fuse")
            script.patch.insert(0, "fuse(model)")  # before kernels replace the layers that it fuses

    def find(self, observation: Observation) -> Finding:
        """Counts the groups of matrices in the model, and in the trace the products with a fused one."""
        fused = [module.whole for module in observation.model.modules() if type(module).__name__ == "Fused"]
        groups = len(fused) + shared_inputs(observation.model)
        if not groups and observation.plan.load.projections == "fused":
            none = "the model has no matrices with an input in common that are named like those of Llama or BERT"
            return Finding(self.name, "fused", none, outcome="not_applicable")
        if not fused:
            return Finding(self.name, "separate", f"{groups} groups of matrices share an input; none is fused")
        seen = products(observation, fused)
        packed = any(type(matrix.weight).__name__ != "Parameter" for matrix in fused)
        unseen = packed and not seen
        reached, expected = (len(fused), groups) if unseen else coverage(observation, seen, groups)
        said = f"{len(fused)} of {groups} groups of matrices are one matrix each; "
        said += f"{seen} products with such a matrix in {observation.trace().steps} passes"
        if apart := products(observation, fused, parts=True):  # what was multiplied in both ways proves neither
            expected = expected or groups
            reached = max(0, min(reached or 0, expected - -(-apart // _LARGEST)))
            said += f", {apart} with a part of one"
        if unseen:
            said += "; packed matrices are multiplied by operators that do not show their shapes"
        if hidden := hides(observation):
            said += f"; decode steps ran {hidden}"
        return Finding(self.name, "fused", said, reached, expected)


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


def shared_inputs(model: Any) -> int:
    """How many groups of linear layers that can be fused a model has. Other things may have these names."""
    from torch import nn

    return sum(
        all(isinstance(getattr(module, part, None), nn.Linear) for part in group)
        for _, module in text_modules(model)
        for group in GROUPS
    )


def products(observation: Observation, matrices: list[Any], parts: bool = False) -> int:
    """Products with these matrices in the trace, or with the `parts` that were joined in each, told by rows and
    columns; those of equal matrices beside them are taken off. Of parts that are as large as an expert's matrix nothing
    is told: how many products a pass makes with experts depends on the text."""
    from torch.nn import Embedding, Linear

    trace = observation.trace()
    ours = {id(matrix) for matrix in matrices}
    sizes = {_size(matrix) for matrix in matrices}
    if parts:
        joined = [module for module in observation.model.modules() if type(module).__name__ == "Fused"]
        apart: set[tuple[int, ...]] = {(rows, one.whole.in_features) for one in joined for rows in one.sizes}
        sizes = apart - sizes - _experts(observation)
    beside = [module for _, module in text_modules(observation.model)]
    if observation.model.can_generate():
        beside.append(observation.model.get_output_embeddings())
    passes = traced_passes(observation)
    shown = prompt_passes(observation) if hides(observation) else passes  # kernels replace linear layers, no routers
    equal = sum(
        shown if isinstance(module, Linear) else passes
        for module in beside
        if getattr(getattr(module, "weight", None), "ndim", 0) == 2
        and not isinstance(module, Embedding)
        and id(module) not in ours
        and _size(module) in sizes
    )
    by_operator: Counter[str] = Counter()
    for (name, shapes), n in trace.shapes.items():
        weight = weight_of(name, shapes)
        if (weight if name == "aten::linear" else weight[::-1]) in sizes:  # a product takes it transposed
            by_operator[name] += n
    return max(0, max(by_operator.values(), default=0) - equal)


def _experts(observation: Observation) -> set[tuple[int, ...]]:
    """Rows and columns of experts' matrices, which lie in stacks, either way round."""
    stacked = {tuple(one.shape[1:]) for one in observation.model.parameters() if one.ndim == 3}
    return stacked | {shape[::-1] for shape in stacked}


def _size(matrix: Any) -> tuple[int, ...]:
    """Rows and columns, which a weight of packed numbers does not tell; a router of experts has nothing else."""
    if hasattr(matrix, "in_features"):
        return matrix.out_features, matrix.in_features
    return tuple(local_part(matrix.weight).shape)


AXIS = Projections()
