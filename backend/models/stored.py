"""How a checkpoint that is packed already stores its matrices, from `quantization_config` in its config.json.

Read from transformers 5.22: `utils/quantization_config.py` for the fields, `quantizers/` and `integrations/` for what
is packed. What cannot be told apart here is refused with a reason, never taken for dense.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Literal

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.models.files.config_fields import Fields, show

Layout = Literal["choice", "gptq", "awq", "fp8", "decompressed", "mxfp4", "unknown"]

DENSE_ANYWAY = re.compile(r"lm_head|embed|norm|gate$|router|score$|output$")
"""Modules that have no matrix which would be packed, or a small one: a list may leave them out."""
VISION = re.compile(r"vis|projector|audio|mtp")
TOWER = re.compile(r"vis|audio|mtp")
"""Whole parts among these modules; a projector alone is small."""
HEAD = re.compile(r"lm_head|embed_out|output$")

SKIPS = ("modules_to_not_convert", "llm_int8_skip_modules", "ignore", "ignored_layers", "skip_modules")
"""Fields in which the methods list what they left dense."""

TORCHAO = {
    "Int8WeightOnlyConfig": "torchao-int8",
    "Int8DynamicActivationInt8WeightConfig": "torchao-int8",
    "Float8WeightOnlyConfig": "torchao-fp8",
    "Float8DynamicActivationFloat8WeightConfig": "torchao-fp8",
    "Int4WeightOnlyConfig": "torchao-int4",
}
"""Config of torchao -> the choice of the axis `quantization` that packs alike."""

CONVERTED = ("bitsandbytes", "torchao", "quanto")
"""Libraries for which transformers decides by that list what to pack, and leaves the head dense only without a list, or
where it names the head (`get_modules_to_not_convert`)."""

OF_CONV1D = ("gpt2",)
"""Architectures whose layers are no linear ones; who packed them for GPTQ is not known here."""

IGNORED_BLOCKS = ("quantization", "compression_config")
"""Blocks of a config.json in which other programs state how its weights are packed (MLX, older llm-compressor).
transformers 5.22 reads `quantization_config` alone."""

METHODS = (
    "aqlm", "auto-round", "awq", "bitnet", "bitsandbytes", "compressed-tensors", "eetq", "fbgemm_fp8", "fouroversix",
    "fp8", "fp_quant", "gemma", "gguf", "gptq", "higgs", "hqq", "metal", "mxfp4", "mxfp8", "nvfp4", "quanto", "quark",
    "sinq", "spqr", "torchao", "vptq",
)  # fmt: skip
"""`quant_method` of which transformers 5.22 knows a quantizer. It takes weights of any other for dense ones, with a
warning (`AutoHfQuantizer.supports_quant_method`); tests compare with it."""

HALF = {"gptq": "float16", "awq": "float16"}
"""Methods whose scales, and with them all that stays dense, are usually in float16; others' are in bfloat16."""

MOST_SAID = 16
"""Fields of a `quantization_config` that are repeated."""

EXPERTS_STAY = ("gptq", "awq", "bitsandbytes", "torchao", "quanto")
"""Libraries that pack linear layers only, while transformers 5 stacks experts: it cannot load their packed experts."""


@dataclass(frozen=True, slots=True)
class StoredFormat:
    """The format of a packed checkpoint.

    layout   how a matrix is stored; choice: as the choice `choice` of the axis `quantization` stores it; decompressed:
             packed in the file only
    group    columns (inputs) that share a scale; 0: all of them
    block    rows and columns that share a scale (fp8); (0, 0): all of them
    vision_dense  the matrices that no step over text uses were left dense
    says     what `quantization_config` states, as name=value, cut where it is long
    """

    method: str
    layout: Layout
    choice: str = ""
    bits: int = 0
    group: int = 0
    block: tuple[int, int] = (0, 0)
    vision_dense: bool = False
    says: str = field(default="", compare=False)


def read_stored(config: Fields, experts: bool) -> StoredFormat | None:
    """The format that a config states; None for a dense checkpoint. InputError for a field of the wrong kind."""
    part = quantization_part(config)
    if part is None:
        _refuse_ignored(config)
        return None
    names = [name for name in part if part.has(name)]
    says = ", ".join(f"{shown(name)}={shown(part.raw(name))}" for name in names[:MOST_SAID])
    stored = _format(part, config, experts) or StoredFormat(quant_method(part), "unknown")
    return replace(stored, says=says + (", ..." if len(names) > MOST_SAID else ""))


def _format(part: Fields, config: Fields, experts: bool) -> StoredFormat | None:
    """None where it is not modeled here how the matrices are packed."""
    method, architecture = quant_method(part), config.text("model_type")
    if method not in METHODS:
        what = (
            f"the quant_method {show(method)}, which transformers 5.22 does not know" if method else "no quant_method"
        )
        raise InputError(f"{part.where} names {what}: it cannot load these weights. Use the original checkpoint.")
    if method == "mxfp4":
        return StoredFormat(method, "mxfp4") if architecture == "gpt_oss" else None
    if (architecture in OF_CONV1D and method in ("gptq", "awq")) or (experts and method in EXPERTS_STAY):
        return None
    skipped = [str(name) for field in SKIPS for name in part.items(field, 100_000) or ()]
    if not all(DENSE_ANYWAY.search(name) or VISION.search(name) for name in skipped):
        return None
    listed = any(part.has(field) for field in SKIPS)
    if method in CONVERTED and listed and not any(map(HEAD.search, skipped)):
        return None
    dense = any(map(TOWER.search, skipped))
    match method:
        case "gptq" if not part.has("dynamic", "modules_in_block_to_quantize") and not part.flag("lm_head", False):
            return _grouped(part, "gptq", dense)
        case "awq" if part.raw("version", "format") in (None, "gemm", "GEMM", "gemv", "GEMV"):
            return _grouped(part, "awq", dense)
        case "fp8":
            return _fp8(part, dense)
        case "compressed-tensors" if not part.flag("use_optimized_inference", False):
            return StoredFormat(method, "decompressed")
        case "bitsandbytes":
            return _bitsandbytes(part, dense)
        case "torchao":
            return _torchao(part, dense)
        case "quanto" if part.raw("weights") in ("int8", "int4"):
            return StoredFormat(method, "choice", f"quanto-{part.raw('weights')}", vision_dense=dense)
    return None


def quantization_part(config: Fields) -> Fields | None:
    """`quantization_config` of the model or its text model; None for a dense checkpoint, as an empty one is."""
    parts = [holder.part("quantization_config") for holder in (config, config.part("text_config")) if holder]
    return next((part for part in parts if part is not None and any(part)), None)


def usual_dtype(config: Fields) -> str:
    """The dtype of a checkpoint whose config names none and whose weights are not here. transformers would take that of
    the first tensor that is a float and not packed (`_get_dtype` in modeling_utils.py): gpt-oss's are in bfloat16."""
    part = quantization_part(config)
    return "float32" if part is None else HALF.get(quant_method(part), "bfloat16")


def _refuse_ignored(config: Fields) -> None:
    name = next((name for name in IGNORED_BLOCKS if isinstance(config.raw(name), dict)), None)
    if name is not None:
        raise InputError(
            f"{config.where}: its weights are quantized as its block {name!r} says, and transformers 5.22 reads "
            "'quantization_config' alone: it would take them for dense ones. Use the original checkpoint."
        )


def quant_method(part: Fields) -> str:
    """The `quant_method` by transformers' word for it; "" if there is none."""
    return part.text("quant_method") or ("bitsandbytes" if part.has("load_in_4bit", "load_in_8bit") else "")


def _grouped(part: Fields, layout: Literal["gptq", "awq"], dense: bool) -> StoredFormat | None:
    bits = part.count(("bits", "w_bit"), 4, "width")
    group = part.raw("group_size", "q_group_size")
    if bits not in (2, 3, 4, 8) or (layout == "awq" and bits != 4):
        return None
    group = 128 if group is None else group
    if isinstance(group, bool) or not isinstance(group, int) or not (group == -1 or 8 <= group <= 65_536):
        return None
    return StoredFormat(layout, layout, bits=bits, group=max(0, group), vision_dense=dense)


def _fp8(part: Fields, dense: bool) -> StoredFormat | None:
    """DeepSeek's blocks, or one scale a matrix."""
    block = part.items("weight_block_size", 2)
    if block is None:
        return StoredFormat("fp8", "fp8", bits=8, vision_dense=dense)
    if len(block) != 2 or not all(type(extent) is int and 8 <= extent <= 65_536 for extent in block):
        return None
    return StoredFormat("fp8", "fp8", bits=8, block=(block[0], block[1]), vision_dense=dense)


def _bitsandbytes(part: Fields, dense: bool) -> StoredFormat | None:
    if part.flag("load_in_8bit", False):
        return StoredFormat("bitsandbytes", "choice", "bnb-int8", vision_dense=dense)
    kind = part.text("bnb_4bit_quant_type") or "fp4"
    if not part.flag("load_in_4bit", False) or kind not in ("nf4", "fp4"):
        return None
    double = "-double" if part.flag("bnb_4bit_use_double_quant", False) else ""
    return StoredFormat("bitsandbytes", "choice", f"bnb-{kind}{double}", vision_dense=dense)


def _torchao(part: Fields, dense: bool) -> StoredFormat | None:
    quant_type = part.part("quant_type")
    kind = quant_type.part("default") if quant_type else None
    name = kind.text("_type") if kind else None
    data = kind.part("_data") if kind else None
    group = data.raw("group_size") if data else None
    packs_head = part.flag("include_input_output_embeddings", False)
    if packs_head or name not in TORCHAO or (name == "Int4WeightOnlyConfig" and group not in (None, 128)):
        return None
    return StoredFormat("torchao", "choice", TORCHAO[name], vision_dense=dense)
