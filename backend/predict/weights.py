"""How many bytes a model's weights take once they are loaded."""

from collections.abc import Mapping

from backend.errors import InputError, unknown
from backend.models import ITEMSIZES, ModelFacts
from backend.models.parameters import count_parameters
from backend.models.shape import read_shape

MXFP4_BITS = 4.25  # 4 bits a number and one shared 8-bit scale for 32 (OCP Microscaling Formats v1.0, table 1)


def parameters(config: Mapping[str, object]) -> int:
    """Parameters of the model that a config describes, tied ones once."""
    return count_parameters(read_shape(dict(config), "the config"))


def itemsize(facts: ModelFacts, dtype: str = "auto") -> int:
    """Bytes of one number when the model is loaded in `dtype`; "auto" is the checkpoint's own."""
    name = facts.dtype if dtype == "auto" else dtype
    if name not in ITEMSIZES:
        raise unknown("dtype", name, ITEMSIZES)
    return ITEMSIZES[name]


def weight_bytes(facts: ModelFacts, dtype: str = "auto", *, packed: bool = False) -> int:
    """Bytes of all parameters and buffers of the loaded model.

    transformers loads every weight in one dtype, so this is a product; exact where `parameters_exact`,
    but for gpt-oss in float16, whose norms stay in float32 (less than 0.1% more).
    `packed`: a quantized checkpoint (gpt-oss: mxfp4) stays packed, as on a GPU with its kernels; without
    them, and always on a CPU, it is unpacked while it is loaded.
    """
    size = itemsize(facts, dtype)
    if not packed:
        return facts.parameters * size + facts.buffer_bytes
    if facts.packed_bytes is not None:
        return facts.packed_bytes + facts.buffer_bytes
    if facts.quantization != "mxfp4":
        raise InputError(f"The packed size of {facts.label} ({facts.quantization or 'not packed'}) is not known here.")
    in_experts = facts.layers * facts.experts * 3 * facts.hidden * facts.intermediate
    return round(in_experts * MXFP4_BITS / 8) + (facts.parameters - in_experts) * size + facts.buffer_bytes
