"""The lines that pack weights in an exported script: the same settings as in `backend/worker/quantize.py`."""

import json

from backend.plan import LoadPlan
from backend.script import Script
from backend.source import call, quoted

_ALONE = {"set_inductor_config": "False"}
_TORCHAO = {
    "int8": ("Int8WeightOnlyConfig", _ALONE),
    "fp8": ("Float8WeightOnlyConfig", _ALONE),
    "int4": (
        "Int4WeightOnlyConfig",
        {"group_size": "128", "int4_packing_format": '"tile_packed_to_4d"', **_ALONE},
    ),
}

_UNPACKED_DTYPE = """for name, weight in model.named_parameters():
    if ".experts." in name:  # unpacked to bfloat16, whatever the dtype
        weight.data = weight.data.to(model.dtype)"""

_DRAW = '''def packed_experts(model):
    """Random MXFP4 blocks and scales in the place of the experts' matrices."""
    # the root of the mean square of a 4-bit float is that of 8.5625
    power = model.config.initializer_range / 8.5625**0.5
    power = 127 + round(math.log2(power))
    packed = {}
    for name, module in model.named_modules():
        for part in ("gate_up_proj", "down_proj"):
            weight = module._parameters.get(part)
            if weight is None or weight.dim() != 3:
                continue
            experts, columns, rows = weight.shape
            shape = (experts, rows, columns // 32)
            scales = ((power - 1, power + 2), shape)
            sizes = {"blocks": ((0, 256), (*shape, 16)), "scales": scales}
            for kind, (limits, size) in sizes.items():
                key = f"{name}.{part}_{kind}"
                source = torch.Generator(DEVICE).manual_seed(zlib.crc32(key.encode()))
                packed[key] = torch.randint(
                    *limits, size, generator=source, dtype=torch.uint8, device=DEVICE
                )
            module._parameters[part] = torch.nn.Parameter(weight.new_empty(0))
    return packed'''


def write_settings(script: Script, load: LoadPlan) -> None:
    """The `quantization_config`, and what belongs to it."""
    match load.quantization.split("-"):
        case ["none"]:
            if load.source.kind == "gguf":
                _say(script, "GgufConfig", {"dequantize": "True"})
        case ["bnb", "int8"]:
            _say(script, "BitsAndBytesConfig", {"load_in_8bit": "True"})
        case ["bnb", table, *double]:
            settings = {"load_in_4bit": "True", "bnb_4bit_quant_type": quoted(table)}
            settings |= {"bnb_4bit_use_double_quant": "True"} if double else {}
            _say(script, "BitsAndBytesConfig", settings | {"bnb_4bit_compute_dtype": _dtype(script, load)})
        case ["torchao", number]:
            name, settings = _TORCHAO[number]
            script.imports |= {f"from torchao.quantization import {name}", "from transformers import TorchAoConfig"}
            script.prepare.append(call(f"packing = {name}", [], settings))
            script.load["quantization_config"] = "TorchAoConfig(packing)"
        case ["quanto", number]:
            _say(script, "QuantoConfig", {"weights": quoted(number)})
        case ["mxfp4", *unpacked]:
            _say(script, "Mxfp4Config", {"dequantize": "True"} if unpacked else {})
            if unpacked and load.dtype not in ("auto", "bfloat16"):
                script.patch.append(_UNPACKED_DTYPE)
            if load.source.kind == "random":
                script.imports |= {"import math", "import zlib"}
                script.functions.append(_DRAW)
                script.drawn.append("packed = packed_experts(model)")
                script.drawn.append('config.quantization_config = {"quant_method": "mxfp4"}')
                script.state.append("packed")


def _say(script: Script, name: str, settings: dict[str, str]) -> None:
    script.imports.add(f"from transformers import {name}")
    script.prepare.append(call(f"packing = {name}", [], settings))
    script.load["quantization_config"] = "packing"


def _dtype(script: Script, load: LoadPlan) -> str:
    """The dtype of the activations, which a plan leaves open where it is the checkpoint's own."""
    if load.dtype != "auto":
        return f"torch.{load.dtype}"
    if load.source.kind == "random":
        return f"torch.{json.loads(load.source.config_json).get('dtype', 'float32')}"
    script.imports.add("from transformers import AutoConfig")
    revision = f", revision={quoted(load.source.revision)}" if load.source.revision else ""
    return f"AutoConfig.from_pretrained(MODEL{revision}).dtype"
