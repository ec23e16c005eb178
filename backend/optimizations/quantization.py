"""In how many bits weights are held."""

from collections import Counter
from typing import Any

import msgspec

from backend.messages import Finding
from backend.optimizations import mxfp4_rules as mxfp4
from backend.optimizations import quantization_rules as rules
from backend.optimizations.base import Choice, Optimization, Seen, Subject
from backend.optimizations.held import inner_tensors
from backend.optimizations.quantization_script import write_settings
from backend.optimizations.tensors import beside, held_bytes, triton_weights, weight_tensors
from backend.plan import Plan
from backend.script import Script

_SAMPLE = 256  # blocks that are looked at
_BLOCK = 32  # numbers that share an MXFP4 scale


class Quantization(Optimization):
    """The packing that most packed bytes are in, told apart by the classes and inner tensors of the weights."""

    name = "quantization"
    title = "Quantization"
    summary = "In how many bits weights are held; embeddings and the output head stay as they are."
    default = "none"
    order = 15
    leading = True
    choices = (
        Choice("none", "none", "As the checkpoint holds them.", (*mxfp4.NONE, *rules.CHECKPOINT)),
        Choice(
            "bnb-int8", "bitsandbytes int8", "LLM.int8(): 8 bits, outliers of the activations kept apart.",
            rules.BNB_INT8,
        ),
        Choice(
            "bnb-nf4", "bitsandbytes nf4", "4 bits on a grid made for normally distributed weights; a scale for 64.",
            rules.BNB_4BIT,
        ),
        Choice(
            "bnb-nf4-double", "bitsandbytes nf4, double", "nf4, and its scales packed to 8 bits too.",
            rules.bnb_double("bnb-nf4"),
        ),
        Choice("bnb-fp4", "bitsandbytes fp4", "4-bit floats; a scale for 64 numbers.", rules.BNB_4BIT),
        Choice(
            "bnb-fp4-double", "bitsandbytes fp4, double", "fp4, and its scales packed to 8 bits too.",
            rules.bnb_double("bnb-fp4"),
        ),
        Choice("torchao-int8", "torchao int8", "8 bits, a scale for each row; can be compiled.", rules.TORCHAO),
        Choice("torchao-fp8", "torchao fp8", "8-bit floats (e4m3), a scale for each row.", rules.TORCHAO_FP8),
        Choice(
            "torchao-int4", "torchao int4",
            "4 bits in the layout of PyTorch's own kernel (tinygemm); torchao's usual layout would need mslk-cuda.",
            rules.TORCHAO_INT4,
        ),
        Choice("quanto-int8", "quanto int8", "8 bits, a scale for each row.", rules.QUANTO),
        Choice(
            "quanto-int4", "quanto int4", "4 bits, a scale and a shift for up to 128 numbers.", rules.QUANTO_INT4
        ),
        Choice("mxfp4", "MXFP4", "gpt-oss as published: experts in 4-bit floats, a power of two for 32.", mxfp4.MXFP4),
        Choice(
            "mxfp4-dequantized", "MXFP4, unpacked", "MXFP4 experts unpacked while they are loaded.", mxfp4.UNPACKED
        ),
    )  # fmt: skip

    def resolve(self, name: str, subject: Subject) -> str:
        return "mxfp4" if name == "none" and subject.facts.quantization == "mxfp4" else name

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve(self.default, subject):
            name = self.default
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, quantization=name))

    def write(self, script: Script, plan: Plan) -> None:
        write_settings(script, plan.load)

    def find(self, seen: Seen) -> Finding:
        """Looks at every weight: its class, the number format of the tensors in it, bitsandbytes' tables and second
        level, and counts their bytes. Dense experts whose blocks of 32 hold no more magnitudes than MXFP4 has were
        unpacked from it; the plan says only whether that was this run's doing. What the checkpoint had packed is
        none's: as it holds them."""
        kinds: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for kind, tensors in _packed(seen.model):
            kinds[kind] += 1
            sizes[kind] += held_bytes(tensors)
        total = held_bytes(weight_tensors(seen.model))
        if kinds:
            (effective, _) = sizes.most_common(1)[0]
            parts = [f"{n} matrices in {kind}: {sizes[kind]:,} bytes with scales" for kind, n in kinds.items()]
            proof = f"{', '.join(parts)}; {total - sum(sizes.values()):,} bytes in the rest"
            held = getattr(getattr(seen.model, "hf_quantizer", None), "pre_quantized", False)
            if held and effective != "mxfp4":  # which is a choice for packed checkpoints
                return Finding(self.name, "none", f"as the checkpoint holds them: {proof}")
            return Finding(self.name, effective, proof)
        proof = f"no packed weights; {total:,} bytes"
        most = _magnitudes(seen.model)
        if not 0 < most <= 8:
            return Finding(self.name, "none", proof)
        proof += f"; experts hold at most {most} magnitudes in any {_BLOCK} numbers, as MXFP4 does"
        ours = seen.plan.load.quantization in ("mxfp4", "mxfp4-dequantized")
        return Finding(self.name, "mxfp4-dequantized" if ours else "none", proof)


def _packed(model: Any) -> list[tuple[str, list[Any]]]:
    """Every packed matrix: (choice, its plain tensors, scales included)."""
    found = []
    for module in model.modules():
        for parameter in module._parameters.values():
            kind = None if parameter is None else _kind(parameter)
            if kind is not None:
                state = beside(getattr(module, "state", None))
                parts = {part.data_ptr(): part for part in (*inner_tensors(parameter), *beside(parameter), *state)}
                found.append((kind, list(parts.values())))
        found += [("mxfp4", parts) for parts in triton_weights(module).values()]
    return found


def _kind(weight: Any) -> str | None:
    """The choice that packs like that; None for a plain tensor."""
    import torch

    if type(weight).__name__ == "Int8Params":
        return "bnb-int8" if weight.dtype is torch.int8 else None
    if type(weight).__name__ == "Params4bit":
        state = weight.quant_state
        if state is None:
            return None
        table = "fp4" if float(state.code[1]) > 0 else "nf4"  # nf4's 16 values rise from -1, fp4's begin 0, 0.0052
        return f"bnb-{table}-double" if getattr(state, "state2", None) is not None else f"bnb-{table}"
    parts = list(inner_tensors(weight))
    if parts[0] is weight:
        return None
    library = {"torchao": "torchao", "optimum": "quanto"}.get(type(weight).__module__.split(".")[0], "unknown")
    data = max(parts, key=lambda part: part.numel() * part.element_size())
    bits = {
        torch.int8: "int8",
        torch.float8_e4m3fn: "fp8",
        torch.uint8: "int4",
        torch.int16: "int4",
        torch.int32: "int4",
    }
    return f"{library}-{bits.get(data.dtype, data.dtype)}"


def _magnitudes(model: Any) -> int:
    """The most different magnitudes in a block of 32 numbers, of the first experts; 0 without experts of gpt-oss."""
    for module in model.modules():
        weight = module._parameters.get("down_proj")  # (experts, in, out); blocks lie along `in`
        if weight is not None and weight.dim() == 3 and "gate_up_proj_bias" in module._parameters:
            rows = weight[0].detach().T[:_SAMPLE, : weight.shape[1] // _BLOCK * _BLOCK].abs().float()
            blocks = rows.reshape(-1, _BLOCK)[:_SAMPLE].sort(-1).values
            return int(((blocks.diff(dim=-1) != 0).sum(-1) + 1).max())
    return 0


AXIS = Quantization()
