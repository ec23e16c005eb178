"""Where tokendyno's own Triton kernels for routed experts run. Each condition is a reason of its own for a rule."""

from packaging.version import Version

from tokendyno.backend.optimizations.subject import Subject, When

CAPABILITY = (8, 0)
TRITON = Version("3.5")
WIDTH = 32  # of a block of MXFP4, and of what a warp reads at once


def other_architecture(s: Subject) -> bool:
    return s.facts.architecture != "gpt_oss"


def no_gpu(s: Subject) -> bool:
    return not s.cuda


def old_gpu(s: Subject) -> bool:
    return s.cuda and s.machine.capability < CAPABILITY


def old_triton(s: Subject) -> bool:
    version = s.machine.version("triton")
    return s.cuda and (version is None or version < TRITON)


def no_kernels_package(s: Subject) -> bool:
    return s.cuda and not s.machine.has("kernels")


def odd_width(s: Subject) -> bool:
    return any(matrix.columns % WIDTH for matrix in s.facts.matrices if matrix.kind == "expert")


OBSTACLES: tuple[When, ...] = (other_architecture, no_gpu, old_gpu, old_triton, no_kernels_package, odd_width)


def supported(s: Subject) -> bool:
    """Whether these kernels can compute this model's experts here."""
    return not any(obstacle(s) for obstacle in OBSTACLES)
