"""How many bits each weight takes, and the `quantization_config` that the worker builds and a script prints."""

import json

from tokendyno.backend.optimizations.axes.quantization import rules
from tokendyno.backend.optimizations.base import Choice, Optimization
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.predict.quantized import INT4_GROUP
from tokendyno.backend.predict.weights import packed_matrices
from tokendyno.backend.script.construct import Argument, Construct, Name
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted

COMPUTE_DTYPE = "dtype"
"""Name of the argument that is the dtype of the activations."""


def quantization_config(load: LoadPlan) -> Construct | None:
    """What `from_pretrained` is given; None leaves it to the checkpoint."""
    match load.quantization.split("-"):
        case ["none"]:  # else a GGUF file would stay quantized wherever the Hub has a kernel for it and is reached
            return _transformers("GgufConfig", dequantize=True) if load.source.kind == "gguf" else None
        case ["bnb", "int8"]:
            return _transformers("BitsAndBytesConfig", load_in_8bit=True)
        case ["bnb", table, *double]:
            settings: dict[str, Argument] = {"load_in_4bit": True, "bnb_4bit_quant_type": table}
            settings |= {"bnb_4bit_use_double_quant": True} if double else {}
            settings |= {"bnb_4bit_compute_dtype": Name(COMPUTE_DTYPE)}  # else float32, and slow
            return _transformers("BitsAndBytesConfig", **settings)
        case ["torchao", number]:
            name = {"int8": "Int8WeightOnlyConfig", "fp8": "Float8WeightOnlyConfig", "int4": "Int4WeightOnlyConfig"}
            keywords: dict[str, Argument] = {}
            if number == "int4":
                keywords = {"group_size": INT4_GROUP, "int4_packing_format": "tile_packed_to_4d"}
            keywords["set_inductor_config"] = False  # with torchao's own one model compiled for more than four minutes
            weights = Construct("torchao.quantization", name[number], (), keywords)
            return Construct("transformers", "TorchAoConfig", (weights,))
        case ["quanto", number]:
            return _transformers("QuantoConfig", weights=number)
        case ["mxfp4", *dequantized]:
            return _transformers("Mxfp4Config", **({"dequantize": True} if dequantized else {}))
        case _:
            raise NotImplementedError(load.quantization)


def needs_cpu_device_map(load: LoadPlan) -> bool:
    """Whether the load must be told to stay on the CPU: bitsandbytes uses a GPU if there is one."""
    return load.quantization.startswith("bnb") and load.device == "cpu"


def unpacks_with_torch(load: LoadPlan) -> bool:
    """Whether optimum-quanto should unpack 4-bit weights with torch's operators, not with a helper that it compiles."""
    return load.quantization == "quanto-int4" and load.device == "cpu"


def casts_experts(load: LoadPlan) -> bool:
    """Whether experts must be cast after the load: transformers dequantizes MXFP4 to bfloat16, whatever the dtype."""
    return load.quantization == "mxfp4-dequantized"


def _transformers(name: str, **keywords: Argument) -> Construct:
    return Construct("transformers", name, (), keywords)


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
        Choice("none", "Weights as the checkpoint holds them.", (*rules.MXFP4_CHECKPOINT, *rules.CHECKPOINT)),
        Choice(
            "bnb-int8", "LLM.int8(): 8 bits; outlier activations are multiplied in 16 bits.",
            rules.BNB_INT8, loss=43, title="bitsandbytes int8",
        ),
        Choice(
            "bnb-nf4", "4-bit NormalFloat, with one scale for 64 weights.",
            rules.BNB_4BIT, loss=53, title="bitsandbytes nf4",
        ),
        Choice(
            "bnb-nf4-double", "nf4 with its scales quantized to 8 bits.",
            rules.bnb_double("bnb-nf4"), loss=54, title="bitsandbytes nf4, double",
        ),
        Choice(
            "bnb-fp4", "4-bit floats, with one scale for 64 weights.",
            rules.BNB_4BIT, loss=57, title="bitsandbytes fp4",
        ),
        Choice(
            "bnb-fp4-double", "fp4 with its scales quantized to 8 bits.",
            rules.bnb_double("bnb-fp4"), loss=58, title="bitsandbytes fp4, double",
        ),
        Choice(
            "torchao-int8", "8-bit weights with one scale per row; can be compiled.",
            rules.TORCHAO, loss=42, title="torchao int8",
        ),
        Choice(
            "torchao-fp8", "8-bit floats (e4m3) with one scale per row.",
            rules.TORCHAO_FP8, loss=45, title="torchao fp8",
        ),
        Choice(
            "torchao-int4",
            "4-bit weights in the layout of PyTorch's own kernel (tinygemm); torchao's default layout needs mslk-cuda.",
            rules.TORCHAO_INT4, loss=55, tried_on_several_gpus=False, title="torchao int4",
        ),
        Choice("quanto-int8", "8-bit weights with one scale per row.", rules.QUANTO, loss=44, title="quanto int8"),
        Choice(
            "quanto-int4", "4-bit weights with a scale and a zero point for up to 128 weights.",
            rules.QUANTO_INT4, loss=56, title="quanto int4",
        ),
        Choice(
            "mxfp4", "gpt-oss as published: 4-bit floats in its experts, with a power-of-two scale for 32.",
            rules.MXFP4, loss=13, title="MXFP4",
        ),
        Choice(
            "mxfp4-dequantized", "MXFP4 experts dequantized to bfloat16 while they are loaded.",
            rules.DEQUANTIZED, title="MXFP4, dequantized",
        ),
    )  # fmt: skip

    def resolve(self, name: str, subject: Subject) -> str:
        return "mxfp4" if name == "none" and subject.facts.quantization == "mxfp4" else name

    def details(self, plan: Plan, subject: Subject) -> str:
        """What `from_pretrained` is given, and what the checkpoint says of itself."""
        config, stored = quantization_config(plan.load), subject.facts.stored
        call = "" if config is None else config.source(**{COMPUTE_DTYPE: subject.compute_dtype})
        said = [f"{''.join(map(str.strip, call.splitlines()))}."] if call else []
        return " ".join(said if stored is None else [*said, f"The checkpoint's quantization_config: {stored.says}."])

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        if name == self.resolve(self.default, subject):
            name = self.default
        packed = packed_matrices(subject.facts, name) if name != self.default else 0
        return plan.with_load(quantization=name, packed=packed)

    def write(self, script: Script, plan: Plan) -> None:
        load = plan.load
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
            script.prepared("worker/patch/quantized.py", "unpack_with_torch()")
        if casts_experts(load) and load.dtype not in ("auto", "bfloat16"):
            script.patched("worker/load/quantization.py", "cast_experts(model)")
        if load.quantization.startswith("mxfp4") and load.source.kind == "random":
            script.define("worker/load/random_weights.py", "random_mxfp4_experts")
            script.empty.append("experts = random_mxfp4_experts(model, DEVICE)")
            script.state.append("experts")
