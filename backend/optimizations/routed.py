"""Where tokendyno's own Triton kernels for routed experts run. Each condition is a reason of its own for a rule."""

from packaging.version import Version

from tokendyno.backend.optimizations.base import Subject, When

TRITON = Version("3.5")
WIDTH = 32  # of a block of MXFP4, and of what a warp reads at once
ALIKE = (
    "deepseek_v2",
    "deepseek_v3",
    "dots1",
    "gemma4",
    "gemma4_text",
    "glm4_moe",
    "glm4_moe_lite",
    "lfm2_moe",
    "mellum",
    "minimax_m2",
    "mixtral",
    "olmoe",
    "qwen2_moe",
    "qwen3_5_moe",
    "qwen3_5_moe_text",
    "qwen3_moe",
    "qwen3_next",
    "solar_open",
)
"""Architectures whose experts have gate above up and no biases, as transformers stores most mixtures."""
UNGATED = ("nemotron_h",)
"""Those whose experts have no gate, and the square of ReLU between up and down."""
_IN_PARTS = ("gemma4", "gemma4_text")
WHOLE = (*(name for name in ALIKE if name not in _IN_PARTS), "gpt_oss")
"""Architectures with experts of which kernels compute whole layers, router included."""


def other_architecture(s: Subject) -> bool:
    return s.facts.architecture not in ("gpt_oss", *ALIKE, *UNGATED)


def packed_otherwise(s: Subject) -> bool:
    """Whether a checkpoint's experts may be neither dense nor in MXFP4."""
    return s.facts.quantization not in (None, "mxfp4")


def no_gpu(s: Subject) -> bool:
    return not s.cuda


def gpu_before(capability: tuple[int, int]) -> When:
    return lambda s: s.cuda and s.machine.capability < capability


def triton_before(needed: Version) -> When:
    def old(s: Subject) -> bool:
        version = s.machine.version("triton")
        return s.cuda and (version is None or version < needed)

    return old


old_gpu, old_triton = gpu_before((8, 0)), triton_before(TRITON)


def no_kernels_package(s: Subject) -> bool:
    return s.cuda and not s.machine.has("kernels")


def indivisible_width(s: Subject) -> bool:
    return any(matrix.columns % WIDTH for matrix in s.facts.matrices if matrix.kind == "expert")


OBSTACLES: tuple[When, ...] = (
    other_architecture,
    packed_otherwise,
    no_gpu,
    old_gpu,
    old_triton,
    no_kernels_package,
    indivisible_width,
)


def supported(s: Subject) -> bool:
    """Whether these kernels can compute this model's experts here."""
    return not any(obstacle(s) for obstacle in OBSTACLES)
