"""Bytes of a model's weights once loaded, and how many of them one decode step reads."""

from tokendyno.backend.errors import unknown
from tokendyno.backend.models import ITEMSIZES, Matrix, ModelFacts
from tokendyno.backend.predict.quantized import PACKINGS, Packing, stored_packing
from tokendyno.backend.predict.setup import Setup

DENSE = ("none", "dequantized", "mxfp4-dequantized")
"""Names that leave weights dense; `dequantized`: a packed checkpoint that this device cannot compute with."""


def itemsize(facts: ModelFacts, dtype: str = "auto") -> int:
    """Bytes per element when the model is loaded in `dtype`; "auto": the checkpoint's. InputError if unknown."""
    return ITEMSIZES[resolved_dtype(facts, dtype)]


def resolved_dtype(facts: ModelFacts, dtype: str = "auto") -> str:
    """The format in which the model is loaded in `dtype`; "auto": the checkpoint's. InputError if unknown."""
    name = facts.dtype if dtype == "auto" else dtype
    if name not in ITEMSIZES:
        raise unknown("dtype", name, ITEMSIZES)
    return name


def weight_bytes(facts: ModelFacts, dtype: str = "auto", quantization: str = "none") -> int:
    """Bytes of all parameters and buffers of the loaded model, scales and tables of quantized weights included.

    `quantization` is a choice of that axis: "none" keeps a checkpoint's weights quantized where they are (gpt-oss:
    mxfp4), "mxfp4-dequantized" makes them dense. Exact, except for checkpoints quantized in a way that is not modeled
    here: they count as large as their files, or as dense if those are unknown.
    """
    size = itemsize(facts, dtype)
    if quantization == "none" and facts.packed_bytes is not None and _as_in_the_file(facts):
        return facts.packed_bytes + facts.buffer_bytes
    saved = sum(m.elements * size - m.count * stored_bytes(facts, m, dtype, quantization) for m in facts.matrices)
    buffers = facts.buffer_bytes + facts.buffer_elements * size
    return facts.parameters * size + buffers + _float32_bytes(facts, dtype, quantization) - saved


def packed_matrices(facts: ModelFacts, quantization: str) -> int:
    """How many matrices that choice quantizes. A slice of a three-dimensional parameter counts as one."""
    size = itemsize(facts)
    return sum(
        m.count for m in facts.matrices if stored_bytes(facts, m, "auto", quantization) != m.rows * m.columns * size
    )


def _float32_bytes(facts: ModelFacts, dtype: str, quantization: str) -> int:
    """Extra bytes of parameters that stay in float32 in a model of half precision (`_keep_in_fp32_modules`): those that
    were counted, and the norms of gpt-oss in float16. Dense random weights do not come from a checkpoint."""
    name = resolved_dtype(facts, dtype)
    from_checkpoint = not facts.random or quantization != "none"
    wider = max(0, 4 - itemsize(facts, dtype))
    counted = dict(facts.float32_in).get(name if from_checkpoint else "built", 0)
    norms = (2 * facts.layers + 1) * facts.hidden
    of_gpt_oss = norms if facts.architecture == "gpt_oss" and name == "float16" and from_checkpoint else 0
    return wider * (counted + of_gpt_oss)


def weight_bytes_read(facts: ModelFacts, dtype: str = "auto", quantization: str = "none", batch: int = 1) -> int:
    """Bytes of the weights that one decode step reads, for one token in each of `batch` sequences.

    Of an embedding table only the rows of those tokens are read (all of it where it is tied to the output head). Of the
    E experts, each token is routed to k: for independent, uniform routing the expected share that is read is
    1 - (1 - k / E) ** batch.
    """
    size = itemsize(facts, dtype)
    total = weight_bytes(facts, dtype, quantization)
    for index, matrix in enumerate(facts.matrices):
        if matrix.use == "never":
            total -= matrix.count * stored_bytes(facts, matrix, dtype, quantization)
        elif matrix.kind == "embedding" and not (index == 0 and facts.tied and facts.kind == "decoder"):
            total -= matrix.count * max(0, matrix.rows - batch) * matrix.columns * size
    if facts.experts:
        idle = (1 - facts.experts_per_token / facts.experts) ** batch
        total -= round(idle * expert_bytes(facts, dtype, quantization))
    return total


def expert_bytes(facts: ModelFacts, dtype: str = "auto", quantization: str = "none") -> int:
    """Bytes of all experts' matrices as stored; 0 without experts."""
    routed = (matrix for matrix in facts.matrices if matrix.kind == "expert" or matrix.use == "routed")
    return sum(matrix.count * stored_bytes(facts, matrix, dtype, quantization) for matrix in routed)


def stored_bytes(facts: ModelFacts, matrix: Matrix, dtype: str, quantization: str) -> int:
    """Bytes of one matrix as stored."""
    size = itemsize(facts, dtype)
    packing = packing_of(facts, quantization)
    dense = packing is None or matrix.kind not in packing.kinds or packing.library in matrix.dense_in
    dense |= facts.stored is not None and facts.stored.vision_dense and matrix.use == "never"
    if packing is None or dense:
        return matrix.rows * matrix.columns * size
    return packing.matrix_bytes(matrix.rows, matrix.columns, size)


def packing_of(facts: ModelFacts, quantization: str) -> Packing | None:
    """How the loaded matrices are stored; None if they are dense. InputError for an unknown name."""
    if quantization == "none" and facts.stored and (stored := stored_packing(facts.stored)):
        return stored
    name = effective_quantization(facts, quantization)
    if name not in (*DENSE, *PACKINGS):
        raise unknown("quantization", name, [*DENSE, *PACKINGS])
    return PACKINGS.get(name)


def effective_quantization(facts: ModelFacts, quantization: str) -> str:
    """The quantization of the loaded weights: "none" means mxfp4 where the checkpoint is in mxfp4."""
    return "mxfp4" if quantization == "none" and facts.quantization == "mxfp4" else quantization


def quantization_on(facts: ModelFacts, setup: Setup) -> str:
    """The setup's quantization; "dequantized" for a checkpoint in FP8 where there is no FP8 arithmetic."""
    fp8 = setup.quantization == "none" and facts.stored is not None and facts.stored.layout == "fp8"
    return "dequantized" if fp8 and not (setup.cuda and setup.capability >= (8, 9)) else setup.quantization


def _as_in_the_file(facts: ModelFacts) -> bool:
    """Whether the checkpoint is packed and its loaded weights take the bytes of its tensors. MXFP4's biases widen."""
    method, layout = facts.quantization, facts.stored.layout if facts.stored else "unknown"
    return method not in (None, "mxfp4") and layout != "decompressed"


def scratch_bytes(facts: ModelFacts, setup: Setup) -> int:
    """Dense copies of the largest matrix; if projections are fused, the equal ones of a layer, gate and up, are one."""
    packing = packing_of(facts, setup.quantization)
    copies, largest = packing.scratch_copies if packing else 0, 0
    for matrix in facts.matrices:
        if matrix.kind in ("linear", "conv1d"):
            joined = max(1, matrix.count // facts.layers) if setup.fused and matrix.side == "rows" else 1
            largest = max(largest, joined * matrix.rows * matrix.columns)
    return copies * largest * itemsize(facts, setup.dtype)


def mapped_bytes(facts: ModelFacts, setup: Setup) -> int:
    """Bytes of files that stay in a CPU process's memory beside the packed weights that were made of them.

    safetensors maps a file into memory, and a tensor that is used as it is stored keeps the whole map. Where everything
    is converted to another format no tensor does. 752 and 812 MiB of SmolLM2-135M in bfloat16 as bnb-nf4 and bnb-int8
    were predicted as 535 and 580 without, 738 and 783 with it (lab/measurements.md)."""
    as_stored = resolved_dtype(facts, setup.dtype) == facts.dtype
    if setup.cuda or facts.random or facts.quantization or not as_stored:
        return 0
    size = itemsize(facts, setup.dtype)
    dense = ((m, m.rows * m.columns * size) for m in facts.matrices)
    return sum(m.count * b for m, b in dense if stored_bytes(facts, m, setup.dtype, setup.quantization) != b)
