"""Where MXFP4 weights run as they are; elsewhere transformers dequantizes them to bfloat16, with a warning.

Two sets of kernels compute them: the Hub's, and tokendyno's own, which are chosen (`experts=triton`), stand in where
the Hub's cannot be had, and are those of ranks.

Source: transformers 5.22, quantizers/quantizer_mxfp4.py, validate_environment. Each condition below is a reason of its
own for the rules of the axis quantization.
"""

from packaging.version import Version

from tokendyno.backend.optimizations import routed
from tokendyno.backend.optimizations.base import Subject, When
from tokendyno.backend.optimizations.routed import gpu_before, no_gpu, no_kernels_package, triton_before

KERNELS = "kernels-community/gpt-oss-triton-kernels"
"""The repository whose kernels compute MXFP4 experts."""


def published(s: Subject) -> bool:
    return s.facts.quantization == "mxfp4"


def available(s: Subject) -> bool:
    """Whether there are MXFP4 weights to run: those of a checkpoint, or random ones created in MXFP4."""
    return published(s) or (s.facts.random and s.facts.architecture == "gpt_oss")


old_gpu, old_triton = gpu_before((7, 5)), triton_before(Version("3.4"))


def kernel_unreachable(s: Subject) -> bool:
    return s.cuda and s.machine.hub_offline and KERNELS not in s.machine.hub_kernels


OBSTACLES: tuple[When, ...] = (no_gpu, old_gpu, old_triton, no_kernels_package, kernel_unreachable)


def own(s: Subject) -> bool:
    experts = s.choices["experts"]
    over_ranks = s.choices["parallel"].startswith(("tensor-", "expert-"))  # each has a part of every mixture
    stands_in = [obstacle for obstacle in OBSTACLES if obstacle(s)] == [kernel_unreachable]
    return routed.supported(s) and (experts == "triton" or (experts == "auto" and (over_ranks or stands_in)))


def native(s: Subject) -> bool:
    """Whether MXFP4 weights run here without being dequantized."""
    return available(s) and (own(s) or not any(obstacle(s) for obstacle in OBSTACLES))
