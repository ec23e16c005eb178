"""The `quantization_config` of every choice, described once: the worker builds it, a script prints it."""

from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.predict.quantized import INT4_GROUP
from tokendyno.backend.script.construct import Argument, Construct, Name

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
            return _transformers(
                "BitsAndBytesConfig", **settings, bnb_4bit_compute_dtype=Name(COMPUTE_DTYPE)
            )  # else float32, and slow
        case ["torchao", number]:
            return Construct("transformers", "TorchAoConfig", (_torchao(number),))
        case ["quanto", number]:
            return _transformers("QuantoConfig", weights=number)
        case ["mxfp4", *dequantized]:
            return _transformers("Mxfp4Config", **({"dequantize": True} if dequantized else {}))
        case _:
            raise NotImplementedError(load.quantization)


_BNB_4BIT = {"bnb_4bit_use_double_quant": "False", "bnb_4bit_quant_storage": "uint8"}
_BY_ITSELF = {
    "bnb-int8": (
        {"llm_int8_threshold": "6.0"},
        "a float32 scale for each row; inputs with a larger activation are multiplied in 16 bits",
    ),
    "bnb-nf4": (_BNB_4BIT, "a float32 scale for 64 weights"),
    "bnb-nf4-double": (_BNB_4BIT, "an 8-bit scale for 64 weights, a float32 scale for 256 of those"),
    "bnb-fp4": (_BNB_4BIT, "a float32 scale for 64 weights"),
    "bnb-fp4-double": (_BNB_4BIT, "an 8-bit scale for 64 weights, a float32 scale for 256 of those"),
    "torchao-int8": ({}, "a float32 scale for each row, products in the dtype of activations"),
    "torchao-fp8": ({}, "a float32 scale for each row, products in the dtype of activations"),
    "torchao-int4": ({}, "a bfloat16 scale and zero point for each group, products in bfloat16"),
    "quanto-int8": ({}, "a scale for each row, products in the dtype of activations"),
    "quanto-int4": ({}, "a scale and zero point for up to 128 columns, products in the dtype of activations"),
    "mxfp4": ({"dequantize": "False"}, "an 8-bit scale for 32 weights of the experts, products in bfloat16"),
}
"""By choice: arguments that the library sets by itself, and how weights are packed and multiplied
(`predict/quantized.py`)."""


def values_text(load: LoadPlan, dtype: str) -> str:
    """The arguments of a choice, how it packs, and what stays as it is; "" for none. `dtype`: of the activations."""
    config, known = quantization_config(load), _BY_ITSELF.get(load.quantization)
    if config is None or known is None:
        return ""
    inner = [one for one in config.args if isinstance(one, Construct)]
    given = {**config.keywords, **{name: value for one in inner for name, value in one.keywords.items()}}
    values = {name: dtype if isinstance(one, Name) else str(one) for name, one in given.items()}
    values |= {name: value for name, value in known[0].items() if name not in values}
    said = ", ".join(f"{name}={value}" for name, value in values.items())
    return f"{said}; {known[1]}. Embeddings, the output head, norms, biases and routers stay as they are."


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


def _torchao(number: str) -> Construct:
    """Leaves Inductor's settings alone: with torchao's own one model compiled for more than four minutes."""
    name = {"int8": "Int8WeightOnlyConfig", "fp8": "Float8WeightOnlyConfig", "int4": "Int4WeightOnlyConfig"}[number]
    keywords: dict[str, Argument] = {}
    if number == "int4":
        keywords = {"group_size": INT4_GROUP, "int4_packing_format": "tile_packed_to_4d"}
    return Construct("torchao.quantization", name, (), keywords | {"set_inductor_config": False})
