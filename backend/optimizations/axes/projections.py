"""Whether projections of the same input are fused into one matrix."""

from typing import Any

import msgspec

from backend.evidence import Finding
from backend.optimizations.base import Choice, Optimization
from backend.optimizations.proof import Observation
from backend.optimizations.subject import Rule, Subject
from backend.plan import Plan
from backend.script.parts import Script

_SOURCE = "backend/worker/patch/projections.py, with a test for each of these architectures"
FAMILIES = ("Llama", "Mistral", "Qwen3")
_OFFERED = ("DecoderLayer", "RotaryEmbedding")
LAYERS = {f"{family}{layer}": layer for family in FAMILIES for layer in _OFFERED}
"""Classes that a kernel may replace once projections are fused, and the layer name each is offered under."""

_KNOWN = ("llama", "mistral", "qwen3", "olmo3", "gemma3_text", "gpt_oss", "bert")
_WHOLE = ("gpt2", "phi3", "gpt_neox", "bloom")  # q, k and v are one matrix; a gate there is none, or one with up
_JOINED = ("none", "torchao-int8", "torchao-int4", "mxfp4", "mxfp4-dequantized")
"""What can be laid one below the other: dense rows, int8 rows with a scale each, tiles of 8 rows of 4 bits; mxfp4 packs
experts only."""


class Projections(Optimization):
    """Told by how many matrices share an input in a forward pass."""

    name = "projections"
    title = "Projections"
    summary = "Whether q, k, v and gate, up are separate matrices or one matrix for each group."
    default = "separate"
    off = "separate"
    order = 26
    choices = (
        Choice("separate", "separate", "As in the model's code: q, k, v, gate and up are five GEMMs per layer."),
        Choice(
            "fused",
            "fused",
            "One matrix for q, k, v and one for gate, up: two GEMMs instead of five, in the same memory.",
            (
                Rule(
                    "blocked",
                    lambda s: s.facts.architecture in _WHOLE,
                    "This architecture already has q, k and v in one matrix, and no gate or one fused with up: "
                    "nothing is left to fuse.",
                    "transformers 5.22: GPT2Attention.c_attn, Phi3Attention.qkv_proj; fused by a test",
                    fix=(("projections", "separate"),),
                ),
                Rule(
                    "blocked",
                    lambda s: (
                        s.choices["quantization"] not in _JOINED
                        or s.facts.quantization not in (None, "mxfp4", "torchao")
                    ),
                    "Matrices quantized in blocks or with lookup tables cannot be concatenated. Dense ones, "
                    "torchao's int8 rows and its 4-bit tiles can.",
                    _SOURCE,
                    fix=(("projections", "separate"),),
                ),
                Rule(
                    "note",
                    lambda s: s.facts.architecture not in (*_KNOWN, *_WHOLE),
                    "Untested with this architecture: matrices named like those of Llama or BERT will be fused.",
                    _SOURCE,
                ),
            ),
        ),
    )

    def matters(self, facts: Any) -> bool:
        return facts.architecture not in _WHOLE

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        projections = "fused" if name == "fused" else "separate"
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, projections=projections))

    def write(self, script: Script, plan: Plan) -> None:
        if plan.load.projections == "fused":
            script.define("worker/patch/projections.py", "fuse")
            script.patch.insert(0, "fuse(model)")  # before kernels replace the layers that it fuses

    def find(self, observation: Observation) -> Finding:
        """Watches which matrices get the same input in one forward pass over two tokens."""
        import torch

        met: dict[int, list[Any]] = {}

        def watch(module: Any, inputs: tuple[Any, ...]) -> None:
            met.setdefault(id(inputs[0]), []).append(inputs[0])  # the list keeps the tensor, and so its id

        matrices = [m for m in observation.model.modules() if getattr(getattr(m, "weight", None), "ndim", 0) == 2]
        matrices = [m for m in matrices if not isinstance(m, torch.nn.Embedding)]
        hooks = [module.register_forward_pre_hook(watch) for module in matrices]
        try:
            with torch.inference_mode():
                observation.model(input_ids=torch.tensor([[1, 2]], device=observation.model.device), use_cache=False)
        finally:
            for hook in hooks:
                hook.remove()
        together = sum(len(vectors) for vectors in met.values() if len(vectors) > 1)
        total = sum(map(len, met.values()))
        replaced = sum(type(module).__name__ == "Fused" for module in observation.model.modules())
        name = "fused" if replaced and not together else "separate"
        proof = (
            f"{together} of {total} matrices shared their input with another in a forward pass; "
            f"{replaced} matrices are fused"
        )
        return Finding(self.name, name, proof)


AXIS = Projections()
