"""Told by the classes and inner tensors of the weights; the format of most quantized bytes is reported."""

from collections import Counter
from typing import Any

import torch

from tokendyno.backend.evidence import Finding
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import (
    bnb_scales,
    inner_tensors,
    local_part,
    total_bytes,
    triton_weights,
    weight_tensors,
)


def find(observation: Observation) -> Finding:
    """Looks at every weight: its class, the dtype of its inner tensors, bitsandbytes' tables and second level. Counted
    against the matrices that the prediction packs. Weights that the checkpoint had quantized count as none."""
    kinds: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for kind, matrices, tensors in _quantized(observation.model):
        kinds[kind] += matrices
        sizes[kind] += total_bytes(tensors)
    total = total_bytes(weight_tensors(observation.model))
    if not kinds:
        return _dense(observation, total)
    effective, expected = max(sizes, key=sizes.__getitem__), observation.plan.load.packed
    if effective == "mxfp4":
        expected = kinds["mxfp4"] + len(_dense_experts(observation.model))
    counted = {kind: f"{n}" for kind, n in kinds.items()}
    counted[effective] += f" of {expected}" if expected else ""
    parts = [f"{n} matrices in {kind}: {sizes[kind]:,} bytes with scales" for kind, n in counted.items()]
    proof = f"{', '.join(parts)}; {total - sum(sizes.values()):,} bytes in the rest"
    prequantized = getattr(getattr(observation.model, "hf_quantizer", None), "pre_quantized", False)
    if prequantized and effective != "mxfp4":  # a choice of its own for quantized checkpoints
        return Finding("quantization", "none", f"as the checkpoint holds them: {proof}")
    if not expected:
        return Finding("quantization", effective, proof)
    return Finding("quantization", effective, proof, kinds[effective], expected)


def _dense(observation: Observation, total: int) -> Finding:
    """Without any quantized weight: none, or experts that were dequantized while they were loaded."""
    experts = _dense_experts(observation.model)
    proof = f"no quantized weights; {total:,} bytes"
    if not experts or observation.plan.load.quantization not in ("mxfp4", "mxfp4-dequantized"):
        return Finding("quantization", "none", proof)
    return Finding("quantization", "mxfp4-dequantized", f"{proof}; {plural(len(experts), 'mixture')} of dense experts")


def _quantized(model: Any) -> list[tuple[str, int, list[Any]]]:
    """Every quantized parameter: (choice, how many of the model's matrices it holds, plain tensors and scales)."""
    quantized = []
    joined = {id(module.whole): len(module.sizes) for module in model.modules() if type(module).__name__ == "Fused"}
    for module in model.modules():
        for parameter in map(local_part, module._parameters.values()):
            kind = None if parameter is None else kind_of(parameter)
            if kind is not None:
                state = bnb_scales(getattr(module, "state", None))
                parts = {part.data_ptr(): part for part in (*inner_tensors(parameter), *bnb_scales(parameter), *state)}
                quantized.append((kind, joined.get(id(module), 1), list(parts.values())))
        quantized += [("mxfp4", 1, [*map(local_part, parts)]) for parts in triton_weights(module).values()]
    return quantized


def kind_of(weight: Any) -> str | None:
    """The choice that quantizes like that; None for a plain tensor."""
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
    packed = torch.uint8, torch.int16, torch.int32
    bits = {torch.int8: "int8", torch.float8_e4m3fn: "fp8"} | dict.fromkeys(packed, "int4")
    codes = [part for part in parts if part.dtype in bits] or parts  # of a tiny matrix the scales take more
    data = max(codes, key=lambda part: part.numel() * part.element_size())
    return f"{library}-{bits.get(data.dtype, data.dtype)}"


def _dense_experts(model: Any) -> list[Any]:
    """The dense experts of gpt-oss: of each mixture `down_proj` (experts, in, out)."""
    mixtures = [module._parameters for module in model.modules() if "gate_up_proj_bias" in module._parameters]
    weights = [local_part(parameters.get("down_proj")) for parameters in mixtures]
    return [weight for weight in weights if weight is not None and weight.dim() == 3]
