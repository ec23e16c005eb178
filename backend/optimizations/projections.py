"""Whether matrices that one vector meets are one matrix."""

from typing import Any

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule, Seen, Subject
from backend.plan import Plan
from backend.script import Script

_SOURCE = "backend/worker/fusion.py, with a test for each of these architectures"
FAMILIES = ("Llama", "Mistral", "Qwen3")
_OFFERED = ("DecoderLayer", "RotaryEmbedding")
LAYERS = {f"{family}{layer}": layer for family in FAMILIES for layer in _OFFERED}
"""Classes that, once projections are fused, a kernel may stand in for, and by which name."""

_KNOWN = ("llama", "mistral", "qwen3", "olmo3", "gemma3_text", "gpt_oss", "bert")
_WHOLE = ("gpt2", "phi3", "gpt_neox", "bloom")  # q, k and v are one matrix; a gate there is none, or one with up
_JOINED = ("none", "torchao-int8", "torchao-int4", "mxfp4", "mxfp4-dequantized")
"""What can be laid one below the other: dense rows, int8 rows with a scale each, tiles of 8 rows of 4 bits; mxfp4 packs
experts only."""

_FUNCTIONS = '''class Fused(torch.nn.Module):
    """The product with several matrices at once; the first part is the answer."""

    def __init__(self, parts):
        super().__init__()
        self.sizes, self.later = [part.out_features for part in parts], []
        size = parts[0].in_features, sum(self.sizes)
        self.whole = torch.nn.Linear(*size, bias=False, device="meta")
        self.whole.weight = self._joined([part.weight for part in parts])
        if parts[0].bias is not None:
            self.whole.bias = self._joined([part.bias for part in parts])

    def _joined(self, rows):
        if hasattr(rows[0], "scale_and_zero"):  # torchao's 4 bits, in tiles of 8 rows
            if any(row.shape[0] % 8 for row in rows):
                raise ValueError("rows that were filled up to 8 cannot be joined")
            tiles = torch.cat([row.qdata for row in rows])
            scales = torch.cat([row.scale_and_zero for row in rows], 1)
            size = torch.Size((sum(row.shape[0] for row in rows), rows[0].shape[1]))
            data = type(rows[0])(tiles, scales, rows[0].block_size, size)
        elif hasattr(rows[0], "qdata"):  # its int8, with a scale for each row
            fields = "qdata", "scale", "zero_point"
            qdata, scale, zero = ([getattr(r, f) for r in rows] for f in fields)
            zero = None if zero[0] is None else torch.cat(zero)
            one = torch.cat(qdata), torch.cat(scale), rows[0].block_size, rows[0].dtype
            data = type(rows[0])(*one, zero)
        else:
            data = torch.cat([row.data for row in rows])
        return torch.nn.Parameter(data, requires_grad=False)

    def forward(self, x):
        first, *others = self.whole(x).split(self.sizes, -1)
        self.later[:] = reversed(others)
        return first


class Slice(torch.nn.Module):
    """One of the other parts."""

    def __init__(self, later):
        super().__init__()
        self.later = later

    def forward(self, x):
        return self.later.pop()


def fuse(model):
    """One matrix for q, k and v, and one for gate and up."""
    groups = [["q_proj", "k_proj", "v_proj"], ["gate_proj", "up_proj"]]
    groups.append(["query", "key", "value"])
    for module in list(model.modules()):
        for names in groups:
            if all(hasattr(module, name) for name in names):
                fused = Fused([getattr(module, name) for name in names])
                setattr(module, names[0], fused)
                for name in names[1:]:
                    setattr(module, name, Slice(fused.later))'''


class Projections(Optimization):
    """separate or fused, told apart by how many matrices each vector meets in a forward pass."""

    name = "projections"
    title = "Projections"
    summary = "Whether q, k, v and gate, up are a matrix each, or one matrix for each group."
    default = "separate"
    order = 26
    choices = (
        Choice("separate", "separate", "As the model's code has them: q, k, v, gate and up are five products a layer."),
        Choice(
            "fused",
            "fused",
            "One matrix for q, k, v and one for gate, up: two products where there were five, and no more memory.",
            (
                Rule(
                    "blocked",
                    lambda s: s.facts.architecture in _WHOLE,
                    "This architecture holds q, k and v in one matrix already, and has no gate or holds it with up: "
                    "nothing is left to fuse.",
                    "transformers 5.22: GPT2Attention.c_attn, Phi3Attention.qkv_proj; fused by a test",
                    fix=(("projections", "separate"),),
                ),
                Rule(
                    "blocked",
                    lambda s: (
                        s.choices.get("quantization", "none") not in _JOINED
                        or s.facts.quantization not in (None, "mxfp4", "torchao")
                    ),
                    "Packed in blocks or tables, these matrices cannot be laid one below the other. Dense ones and "
                    "torchao's int8 rows and 4-bit tiles can.",
                    _SOURCE,
                    fix=(("projections", "separate"),),
                ),
                Rule(
                    "note",
                    lambda s: s.facts.architecture not in (*_KNOWN, *_WHOLE),
                    "Untried with this architecture: matrices named like those of Llama or BERT will be fused.",
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
            script.functions.append(_FUNCTIONS)
            lines = ["fuse(model)"]
            if plan.load.kernels == "local":  # as backend/worker/fusion.py names them
                script.imports.add("from kernels import replace_kernel_forward_from_hub")
                lines += [
                    "for kind in {type(module) for module in model.modules()}:",
                    f"    for layer in {_OFFERED!r}:",
                    f"        if kind.__name__ in [family + layer for family in {FAMILIES!r}]:",
                    "            replace_kernel_forward_from_hub(kind, layer)",
                ]
            script.patch[:0] = lines  # before kernels stand in for what was fused

    def find(self, seen: Seen) -> Finding:
        """Watches which matrices get the same vector in one forward pass over two tokens."""
        import torch

        met: dict[int, list[Any]] = {}

        def watch(module: Any, inputs: tuple[Any, ...]) -> None:
            met.setdefault(id(inputs[0]), []).append(inputs[0])  # the list keeps the tensor, and so its id

        matrices = [m for m in seen.model.modules() if getattr(getattr(m, "weight", None), "ndim", 0) == 2]
        matrices = [m for m in matrices if not isinstance(m, torch.nn.Embedding)]
        hooks = [module.register_forward_pre_hook(watch) for module in matrices]
        try:
            with torch.inference_mode():
                seen.model(input_ids=torch.tensor([[1, 2]], device=seen.model.device), use_cache=False)
        finally:
            for hook in hooks:
                hook.remove()
        together = sum(len(vectors) for vectors in met.values() if len(vectors) > 1)
        total = sum(map(len, met.values()))
        replaced = sum(type(module).__name__ == "Fused" for module in seen.model.modules())
        name = "fused" if replaced and not together else "separate"
        proof = (
            f"one forward pass took {total} matrices, of which {together} shared their vector with another; "
            f"{replaced} stand for several"
        )
        return Finding(self.name, name, proof)


AXIS = Projections()
