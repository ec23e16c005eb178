"""How many bytes a model's weights take once they are loaded, and how many of them one token reads."""

from collections.abc import Mapping

from backend.errors import unknown
from backend.models import ITEMSIZES, Matrix, ModelFacts
from backend.models.parameters import count_parameters
from backend.models.shape import read_shape
from backend.predict.packing import PACKINGS, Packing

DENSE = ("none", "mxfp4-dequantized")


def parameters(config: Mapping[str, object]) -> int:
    """Parameters of the model that a config describes, tied ones once."""
    return count_parameters(read_shape(dict(config), "the config"))


def itemsize(facts: ModelFacts, dtype: str = "auto") -> int:
    """Bytes of one number when the model is loaded in `dtype`; "auto" is the checkpoint's own."""
    name = facts.dtype if dtype == "auto" else dtype
    if name not in ITEMSIZES:
        raise unknown("dtype", name, ITEMSIZES)
    return ITEMSIZES[name]


def weight_bytes(facts: ModelFacts, dtype: str = "auto", quantization: str = "none") -> int:
    """Bytes of all parameters and buffers of the loaded model, scales and tables of packed weights included.

    `quantization`: a choice of that axis. "none" is the weights as the checkpoint holds them: packed ones stay packed
    (gpt-oss: mxfp4); "mxfp4-dequantized" unpacks them. Exact where `parameters_exact`, but for checkpoints that are
    packed in a way that is not modelled here: those are as large as their files, or dense where these were not seen.
    """
    size = itemsize(facts, dtype)
    quantization = as_held(facts, quantization)
    saved = 0
    if quantization not in DENSE:
        packing = packing_of(quantization)
        packed = [matrix for matrix in facts.matrices if matrix.kind in packing.kinds]
        saved = sum(m.numbers * size - m.count * packing.matrix_bytes(m.rows, m.columns, size) for m in packed)
    elif quantization == "none" and facts.quantization and facts.packed_bytes is not None:
        return facts.packed_bytes + facts.buffer_bytes
    return facts.parameters * size + facts.buffer_bytes + _kept_bytes(facts, dtype, quantization) - saved


def _kept_bytes(facts: ModelFacts, dtype: str, quantization: str) -> int:
    """What gpt-oss in float16 has more: its norms stay in float32 (`_keep_in_fp32_modules`) where a checkpoint is read;
    dense random weights are no checkpoint."""
    read = not facts.random or quantization != "none"
    half = (facts.dtype if dtype == "auto" else dtype) == "float16"
    return 2 * (2 * facts.layers + 1) * facts.hidden if facts.sinks and half and read else 0


def touched_bytes(facts: ModelFacts, dtype: str = "auto", quantization: str = "none", batch: int = 1) -> int:
    """Bytes of the weights that must be read to decode one token in each of `batch` sequences.

    Of an embedding table only the rows of those tokens (all of it where it is tied: it is the output head too). Of
    experts those that are routed to: each token picks `experts_per_token` of them, so that for independent, evenly
    spread choices 1 - (1 - k / E) ** batch of all experts are expected to be at work.
    """
    size = itemsize(facts, dtype)
    total = weight_bytes(facts, dtype, quantization)
    for index, matrix in enumerate(facts.matrices):
        if matrix.kind == "embedding" and not (index == 0 and facts.tied and facts.kind == "decoder"):
            total -= max(0, matrix.rows - batch) * matrix.columns * size
    if facts.experts:
        idle = (1 - facts.experts_per_token / facts.experts) ** batch
        total -= round(idle * expert_bytes(facts, dtype, quantization))
    return total


def expert_bytes(facts: ModelFacts, dtype: str = "auto", quantization: str = "none") -> int:
    """Bytes of all experts' matrices as they are held; 0 without a mixture."""
    size = itemsize(facts, dtype)
    packing = PACKINGS.get(as_held(facts, quantization))

    def held(matrix: Matrix) -> int:
        if packing is None or "expert" not in packing.kinds:
            return matrix.numbers * size
        return matrix.count * packing.matrix_bytes(matrix.rows, matrix.columns, size)

    return sum(held(matrix) for matrix in facts.matrices if matrix.kind == "expert")


def packing_of(quantization: str) -> Packing:
    """How that choice packs; InputError for a name that is none."""
    if quantization not in PACKINGS:
        raise unknown("quantization", quantization, [*DENSE, *PACKINGS])
    return PACKINGS[quantization]


def as_held(facts: ModelFacts, quantization: str) -> str:
    """The choice "none" means mxfp4 with a checkpoint that is packed in it."""
    return "mxfp4" if quantization == "none" and facts.quantization == "mxfp4" else quantization
