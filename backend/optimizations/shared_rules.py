"""Rules that several axes share."""

from collections.abc import Callable, Set

from tokendyno.backend.hardware.compilers import INSTALL
from tokendyno.backend.optimizations.base import Fix, Rule, When, blocked, note
from tokendyno.backend.optimizations.subject import Subject

NOT_ON_ZERO_GPU = blocked(
    lambda s: s.machine.zero_gpu,
    "ZeroGPU has no torch.compile: its GPU is lent for seconds at a time, to a process that is not kept.",
    "https://huggingface.co/docs/hub/spaces-zerogpu",
)
UNPACKS_WITH_TORCH = note(
    lambda s: s.machine.has("optimum-quanto"),
    "tokendyno unpacks 4-bit codes with torch operators. A script first builds optimum-quanto's own extension, which "
    "calls the same operators: this takes a minute and a C++ compiler, on a GPU many minutes and nvcc.",
    "optimum-quanto 0.2: library/extensions; backend/worker/patch/quantized.py",
)
NO_EAGER_EXPERTS = blocked(
    lambda s: s.cuda and s.choices["experts"] == "eager" and not s.experts_settled,
    "Eager experts synchronize with the host to find out which of them were routed to, and a step that synchronizes "
    "cannot be captured.",
    "tests/gpu/test_own.py: the capture fails on an H200",
    fix=(("experts", "batched_mm"),),
)


def needs_package(package: str, fix: Fix | None = None) -> Rule:
    return blocked(
        lambda s: not s.machine.has(package),
        f"{package} is not installed: pip install 'tokendyno[quantization]', or {package} alone.",
        f"https://pypi.org/project/{package}/",
        fix,
    )


def needs_compiler(when: When) -> Rule:
    """Refuses what compiles where nothing can be compiled."""
    return blocked(
        lambda s: bool(s.machine.no_compiler) and when(s),
        "torch.compile needs a compiler (C++ on a CPU, C on a GPU) and Python's headers, and one of them is not here: "
        f"install it {INSTALL}. The variables CXX and CC name another compiler.",
        "torch 2.13: _inductor/cpp_builder.py, get_cpp_compiler; Triton 3.6: runtime/build.py",
    )


def named_kernels(repositories: Callable[[Subject], Set[str]], write: str, source: str) -> tuple[Rule, ...]:
    """Rules of a choice that takes kernels of the Hub by name. `write`: how they are named."""
    return (
        blocked(lambda s: not repositories(s), f"No kernel of the Hub is named. Write {write}.", source),
        blocked(
            lambda s: s.machine.hub_offline and not repositories(s) <= set(s.machine.hub_kernels),
            "The Hub is offline (HF_HUB_OFFLINE), and a kernel that this names is not in its cache. Point to a local "
            "copy with LOCAL_KERNELS=org/name=/folder.",
            source,
        ),
        note(
            lambda s: bool(repositories(s)),
            "Code of these repositories runs here with your rights, as with trust_remote_code=True. Whether a kernel "
            "fits this GPU and model is seen when it is loaded.",
            source,
        ),
    )


def needs_mode(mode: str, when: When, reason: str, source: str) -> tuple[Rule, Rule]:
    """Refuses what a mode of torch.compile resolves, of a decoder with the static cache that it needs."""
    fix = ("compile", mode)
    return (
        blocked(lambda s: s.decoder and when(s), reason, source, fix=(fix, ("cache", "static"))),
        blocked(lambda s: not s.decoder and when(s), reason, source, fix=(fix,)),
    )


def needs_compile(reason: str, source: str, so: str) -> tuple[Rule, ...]:
    """Rules of a choice that means nothing where nothing is compiled; and, with what follows from it (`so`), where
    `generate` skips compilation."""
    uncompiled = needs_mode("default", lambda s: not (s.asks_to_compile or s.skips_compilation), reason, source)
    return (*uncompiled, skipped(lambda s: s.skips_compilation, so))


def skipped(when: When, so: str) -> Rule:
    """Refuses what needs a compiled step where `generate` compiles none; `so`: what follows from it."""
    source = "backend/optimizations/subject.py: skips_compilation"
    return blocked(when, f"generate does not compile a model quantized like this, so {so}.", source)
