"""What keeps kernels from computing routed experts: tokendyno's own Triton kernels, and the Hub's for MXFP4.

tokendyno's are chosen (`experts=triton`), stand in where the Hub's cannot be had or are wrong, and are those of ranks.
Where neither run, transformers dequantizes MXFP4 weights to bfloat16, with a warning.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokendyno.backend.optimizations.subject import Subject

WIDTH = 32  # of a block of MXFP4, and of what a warp reads at once
_ALIKE = """
    deepseek_v2 deepseek_v3 dots1 gemma4 gemma4_text glm4_moe glm4_moe_lite lfm2_moe mellum minimax_m2 mixtral olmoe
    qwen2_moe qwen3_5_moe qwen3_5_moe_text qwen3_moe qwen3_next solar_open
"""
ALIKE = tuple(_ALIKE.split())
"""Architectures whose experts have gate above up and no biases, as transformers stores most mixtures."""
UNGATED = ("nemotron_h",)
"""Those whose experts have no gate, and the square of ReLU between up and down."""


OBSTACLES: tuple[tuple[Callable[["Subject"], bool], str], ...] = (
    (
        lambda s: s.facts.architecture not in ("gpt_oss", *ALIKE, *UNGATED),
        "These kernels are for the experts of gpt-oss, of Nemotron-H and of the mixtures that are stored as "
        "Qwen3-MoE's are, and were not tried with this architecture.",
    ),
    (
        lambda s: s.facts.quantization not in (None, "mxfp4"),
        "These kernels read dense experts, and those of gpt-oss in MXFP4.",
    ),
    (lambda s: not s.cuda, "These kernels are in Triton, and run on NVIDIA GPUs only."),
    (
        lambda s: s.cuda and s.machine.capability < (8, 0),
        "These kernels need compute capability 8.0 (Ampere) or later.",
    ),
    (
        lambda s: any(matrix.columns % WIDTH for matrix in s.facts.matrices if matrix.kind == "expert"),
        f"These kernels need experts whose width is a multiple of {WIDTH}.",
    ),
)
"""Where tokendyno's own kernels cannot compute this model's experts here, and why."""

KERNELS = "kernels-community/gpt-oss-triton-kernels"
"""The repository whose kernels compute MXFP4 experts."""


def mxfp4_unreachable(s: "Subject") -> bool:
    return s.cuda and s.machine.hub_offline and KERNELS not in s.machine.hub_kernels


def mxfp4_misread(s: "Subject") -> bool:
    narrow = any(matrix.columns % _HOPPER_TILE for matrix in s.facts.matrices if matrix.kind == "expert")
    return s.cuda and s.machine.capability[0] == 9 and narrow and not mxfp4_unreachable(s)


_HOPPER_TILE = 64  # inputs in a tile of the layout for Hopper: of other widths the last tile is read wrongly
MISREAD = f"On Hopper {KERNELS} computes wrong numbers for experts whose width is not a multiple of {_HOPPER_TILE}"
_DEQUANTIZES = "transformers dequantizes the weights to bfloat16"
_VALIDATE = "transformers 5.22: quantizers/quantizer_mxfp4.py, validate_environment"
MXFP4_OBSTACLES: tuple[tuple[Callable[["Subject"], bool], str, str], ...] = (
    (lambda s: not s.cuda, f"MXFP4 weights run on NVIDIA GPUs only; {_DEQUANTIZES}, with a warning.", _VALIDATE),
    (
        lambda s: s.cuda and s.machine.capability < (7, 5),
        f"The MXFP4 kernels need compute capability 7.5: {_DEQUANTIZES}, with a warning.",
        _VALIDATE,
    ),
    (
        mxfp4_unreachable,
        f"The kernel {KERNELS} is neither in the Hub cache nor in LOCAL_KERNELS, the Hub is offline, and "
        f"tokendyno's own kernels (experts=triton) cannot run here: {_DEQUANTIZES}.",
        "kernels 0.17: load.py, get_kernel",
    ),
    (
        mxfp4_misread,
        f"{MISREAD}, and tokendyno's own (experts=triton) were not chosen: the weights are dequantized to bfloat16.",
        "triton_kernels (vLLM 0.33): tensor_details/layout_details/hopper_value.py, swizzle_data; run on one H200",
    ),
)
"""Where the Hub's kernels for MXFP4 do not run or compute wrong numbers, why, and by which source."""
