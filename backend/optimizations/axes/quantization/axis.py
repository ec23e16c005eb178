"""How many bits each weight takes."""

import json
from collections import Counter
from typing import Any

import msgspec

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.quantization import mxfp4 as mxfp4
from tokendyno.backend.optimizations.axes.quantization import rules as rules
from tokendyno.backend.optimizations.axes.quantization.settings import (
    COMPUTE_DTYPE,
    casts_experts,
    needs_cpu_device_map,
    quantization_config,
    unpacks_with_torch,
    values_text,
)
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.conditions import compute_dtype
from tokendyno.backend.optimizations.proof import Observation
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.optimizations.tensor_bytes import (
    bnb_scales,
    inner_tensors,
    local_part,
    total_bytes,
    triton_weights,
    weight_tensors,
)
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.predict.weights import packed_matrices
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted

_SAMPLE = 256  # blocks to look at
_BLOCK = 32  # weights that share an MXFP4 scale
_MXFP4_MAGNITUDES = 8  # of 4-bit floats with a sign


def write_settings(script: Script, load: LoadPlan) -> None:
    """The `quantization_config`, and what belongs to it."""
    config = quantization_config(load)
    if config is None:
        return
    script.imports.update(config.imports())
    dtype = _dtype(script, load) if config.needs(COMPUTE_DTYPE) else ""
    script.prepare.append(config.source("quantization_config = ", **{COMPUTE_DTYPE: dtype}))
    script.load["quantization_config"] = "quantization_config"
    if needs_cpu_device_map(load):
        script.load["device_map"] = "DEVICE"
    if unpacks_with_torch(load):
        script.define("worker/patch/quantized.py", "unpack_with_torch")
        script.prepare.append("unpack_with_torch()")
    if casts_experts(load) and load.dtype not in ("auto", "bfloat16"):
        script.define("worker/load/quantization.py", "cast_experts")
        script.patch.append("cast_experts(model)")
    if load.quantization.startswith("mxfp4") and load.source.kind == "random":
        script.define("worker/load/random_weights.py", "random_mxfp4_experts")
        script.empty.append("experts = random_mxfp4_experts(model, DEVICE)")
        script.state.append("experts")


def _dtype(script: Script, load: LoadPlan) -> str:
    """The dtype of the activations, which a plan leaves open where it is the checkpoint's own."""
    if load.dtype != "auto":
        return f"torch.{load.dtype}"
    if load.source.kind == "random":
        return f"torch.{json.loads(load.source.config_json).get('dtype', 'float32')}"
    script.imports.add("from transformers import AutoConfig")
    revision = f", revision={quoted(load.source.revision)}" if load.source.revision else ""
    return f"AutoConfig.from_pretrained(MODEL{revision}).dtype"


class Quantization(Optimization):
    """Told by the classes and inner tensors of the weights; the format of most quantized bytes is reported."""

    name = "quantization"
    title = "Quantization"
    summary = "Bits per weight; embeddings and the output head are not quantized."
    default = "none"
    off = "none"
    witness = "weights"
    order = 15
    leading = True
    in_fit_table = True
    wish = "memory"
    wishes = {"mxfp4-dequantized": "reference"}
    aliases = {
        "": ("quantization_config", "quantized", "weight-only"),
        "bnb-int8": ("load_in_8bit", "8bit", "8-bit", "BitsAndBytesConfig(load_in_8bit=True)"),
        # bnb_4bit_quant_type is fp4 unless it is set (transformers, utils/quantization_config.py)
        "bnb-fp4": ("load_in_4bit", "4bit", "4-bit", "BitsAndBytesConfig(load_in_4bit=True)"),
        "bnb-fp4-double": ("4bit", "4-bit", "BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True)"),
        "bnb-nf4": ("4bit", "4-bit", "qlora", 'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")'),
        "bnb-nf4-double": (
            "4bit", "4-bit", "qlora",
            'BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True)',
        ),
        "torchao-int8": ("8bit", "8-bit", "TorchAoConfig(Int8WeightOnlyConfig())"),
        "torchao-fp8": ("float8", "8bit", "8-bit", "TorchAoConfig(Float8WeightOnlyConfig())"),
        "torchao-int4": ("4bit", "4-bit", "TorchAoConfig(Int4WeightOnlyConfig())"),
        "quanto-int8": ("8bit", "8-bit", 'QuantoConfig(weights="int8")'),
        "quanto-int4": ("4bit", "4-bit", 'QuantoConfig(weights="int4")'),
        "mxfp4": ("4bit", "4-bit", "Mxfp4Config()"),
        "mxfp4-dequantized": ("Mxfp4Config(dequantize=True)",),
    }  # fmt: skip
    renamed = {
        f"load_in_{bits}bit": f"quantization_config=BitsAndBytesConfig(load_in_{bits}bit=True)" for bits in (4, 8)
    }
    elsewhere = {
        ("gguf", "llama.cpp"): "A GGUF file is a model: write the path of a local one under Model. It is dequantized "
        "while it is loaded.",
        ("awq", "gptq", "AwqConfig", "GPTQConfig"): "AWQ and GPTQ are formats of a checkpoint: name one that is packed "
        "so under Model. It needs the package gptqmodel.",
    }
    costs = {
        "bnb-int8": "time per token; not compiled",
        "bnb-nf4": "some quality",
        "bnb-nf4-double": "some quality, a little time",
        "bnb-fp4": "more quality than nf4",
        "bnb-fp4-double": "more quality than nf4, a little time",
        "torchao-int8": "little quality",
        "torchao-fp8": "little quality; needs a recent GPU",
        "torchao-int4": "some quality",
        "quanto-int8": "little quality",
        "quanto-int4": "some quality",
        "mxfp4": "nothing for gpt-oss, which is published so",
        "mxfp4-dequantized": "four times the memory of MXFP4",
    }
    choices = (
        Choice("none", "none", "Weights as the checkpoint holds them.", (*mxfp4.NONE, *rules.CHECKPOINT)),
        Choice(
            "bnb-int8", "bitsandbytes int8", "LLM.int8(): 8 bits; outlier activations are multiplied in 16 bits.",
            rules.BNB_INT8, loss=42,
        ),
        Choice(
            "bnb-nf4", "bitsandbytes nf4", "4-bit NormalFloat, with one scale for 64 weights.",
            rules.BNB_4BIT, loss=53,
        ),
        Choice(
            "bnb-nf4-double", "bitsandbytes nf4, double", "nf4 with its scales quantized to 8 bits.",
            rules.bnb_double("bnb-nf4"), loss=54,
            combines=(
                ("dtype", "bfloat16"), ("cache", "dynamic"), ("cache", "offloaded"), ("cache", "quantized-hqq4"),
            ),
        ),
        Choice(
            "bnb-fp4", "bitsandbytes fp4", "4-bit floats, with one scale for 64 weights.", rules.BNB_4BIT, loss=57
        ),
        Choice(
            "bnb-fp4-double", "bitsandbytes fp4, double", "fp4 with its scales quantized to 8 bits.",
            rules.bnb_double("bnb-fp4"), loss=58,
        ),
        Choice(
            "torchao-int8", "torchao int8", "8-bit weights with one scale per row; can be compiled.",
            rules.TORCHAO, loss=43,
        ),
        Choice(
            "torchao-fp8", "torchao fp8", "8-bit floats (e4m3) with one scale per row.", rules.TORCHAO_FP8, loss=45
        ),
        Choice(
            "torchao-int4", "torchao int4",
            "4-bit weights in the layout of PyTorch's own kernel (tinygemm); torchao's default layout needs mslk-cuda.",
            rules.TORCHAO_INT4, loss=55, tried_on_several_gpus=False,
        ),
        Choice("quanto-int8", "quanto int8", "8-bit weights with one scale per row.", rules.QUANTO, loss=44),
        Choice(
            "quanto-int4", "quanto int4", "4-bit weights with a scale and a zero point for up to 128 weights.",
            rules.QUANTO_INT4, loss=56,
        ),
        Choice(
            "mxfp4", "MXFP4", "gpt-oss as published: 4-bit floats in its experts, with a power-of-two scale for 32.",
            mxfp4.MXFP4, loss=13,
        ),
        Choice(
            "mxfp4-dequantized", "MXFP4, dequantized", "MXFP4 experts dequantized to bfloat16 while they are loaded.",
            mxfp4.DEQUANTIZED,
        ),
    )  # fmt: skip

    def resolve(self, name: str, subject: Subject) -> str:
        return "mxfp4" if name == "none" and subject.facts.quantization == "mxfp4" else name

    def details(self, plan: Plan, subject: Subject) -> str:
        said = values_text(plan.load, compute_dtype(subject))
        stored = subject.facts.stored
        return said if stored is None else f"{said} The checkpoint's quantization_config: {stored.says}.".strip()

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve(self.default, subject):
            name = self.default
        packed = packed_matrices(subject.facts, name) if name != self.default else 0
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, quantization=name, packed=packed))

    def write(self, script: Script, plan: Plan) -> None:
        write_settings(script, plan.load)

    def find(self, observation: Observation) -> Finding:
        """Looks at every weight: its class, the dtype of its inner tensors, bitsandbytes' tables and second level.

        Counted against the matrices that the prediction packs. Dense experts whose blocks of 32 hold no more
        magnitudes than MXFP4 has were dequantized from it; the plan only tells whether this run did so. Weights that
        the checkpoint had quantized count as none: as it holds them.
        """
        kinds: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for kind, matrices, tensors in _quantized(observation.model):
            kinds[kind] += matrices
            sizes[kind] += total_bytes(tensors)
        total = total_bytes(weight_tensors(observation.model))
        if not kinds:
            return self._dense(observation, total)
        planned = observation.plan.load
        effective = max(sizes, key=sizes.__getitem__)
        expected = max(0, planned.packed - _left_to_torch(observation.model))
        if effective == "mxfp4":
            expected = kinds["mxfp4"] + len(_dense_experts(observation.model))
        told = {kind: f"{n}" for kind, n in kinds.items()}
        told[effective] += f" of {expected}" if expected else ""
        parts = [f"{n} matrices in {kind}: {sizes[kind]:,} bytes with scales" for kind, n in told.items()]
        proof = f"{', '.join(parts)}; {total - sum(sizes.values()):,} bytes in the rest"
        held = getattr(getattr(observation.model, "hf_quantizer", None), "pre_quantized", False)
        if held and effective != "mxfp4":  # a choice of its own for quantized checkpoints
            return Finding(self.name, "none", f"as the checkpoint holds them: {proof}")
        if not expected:
            return Finding(self.name, effective, proof)
        return Finding(self.name, effective, proof, kinds[effective], expected)

    def _dense(self, observation: Observation, total: int) -> Finding:
        """Without any quantized weight: none, or experts that were dequantized while they were loaded."""
        experts = _dense_experts(observation.model)
        planned = observation.plan.load.quantization
        proof = f"no quantized weights; {total:,} bytes"
        if not experts or planned not in ("mxfp4", "mxfp4-dequantized"):
            return Finding(self.name, "none", proof)
        coarse = sum(_magnitudes(weight) <= _MXFP4_MAGNITUDES for weight in experts)
        if not coarse:
            return Finding(self.name, "none", f"{proof}; no experts hold values of MXFP4")
        proof += (
            f"; {coarse} of {len(experts)} mixtures have at most {_MXFP4_MAGNITUDES} magnitudes in any block of "
            f"{_BLOCK}, as MXFP4 does"
        )
        return Finding(self.name, "mxfp4-dequantized", proof, coarse, len(experts))


def _left_to_torch(model: Any) -> int:
    """Dense matrices of torch's MultiheadAttention, which multiplies by them itself: torchao leaves them out."""
    left = [one for one in model.modules() if type(one).__name__ == "NonDynamicallyQuantizableLinear"]
    return sum(type(one.weight).__name__ == "Parameter" for one in left)


def _quantized(model: Any) -> list[tuple[str, int, list[Any]]]:
    """Every quantized parameter: (choice, how many of the model's matrices it holds, plain tensors and scales)."""
    found = []
    joined = {id(module.whole): len(module.sizes) for module in model.modules() if type(module).__name__ == "Fused"}
    for module in model.modules():
        for parameter in map(local_part, module._parameters.values()):
            kind = None if parameter is None else _kind(parameter)
            if kind is not None:
                state = bnb_scales(getattr(module, "state", None))
                parts = {part.data_ptr(): part for part in (*inner_tensors(parameter), *bnb_scales(parameter), *state)}
                found.append((kind, joined.get(id(module), 1), list(parts.values())))
        found += [("mxfp4", 1, [*map(local_part, parts)]) for parts in triton_weights(module).values()]
    return found


def _kind(weight: Any) -> str | None:
    """The choice that quantizes like that; None for a plain tensor."""
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
    bits = {
        torch.int8: "int8",
        torch.float8_e4m3fn: "fp8",
        torch.uint8: "int4",
        torch.int16: "int4",
        torch.int32: "int4",
    }
    codes = [part for part in parts if part.dtype in bits] or parts  # of a tiny matrix the scales take more
    data = max(codes, key=lambda part: part.numel() * part.element_size())
    return f"{library}-{bits.get(data.dtype, data.dtype)}"


def _dense_experts(model: Any) -> list[Any]:
    """The dense experts of gpt-oss: of each mixture the weight that blocks of MXFP4 can be told from."""
    found = []
    for module in model.modules():
        weight = local_part(module._parameters.get("down_proj"))  # (experts, in, out); blocks lie along `in`
        if weight is not None and weight.dim() == 3 and "gate_up_proj_bias" in module._parameters:
            found.append(weight)
    return found


def _magnitudes(weight: Any) -> int:
    """Most distinct magnitudes in a block of 32 weights, of a sample of the last expert."""
    rows = weight[-1].detach().T[:_SAMPLE, : weight.shape[1] // _BLOCK * _BLOCK].abs().float()
    blocks = rows.reshape(-1, _BLOCK)[:_SAMPLE].sort(-1).values
    return int(((blocks.diff(dim=-1) != 0).sum(-1) + 1).max())


AXIS = Quantization()
