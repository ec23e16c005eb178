"""Rules that several axes share."""

from tokendyno.backend.hardware.compilers import INSTALL
from tokendyno.backend.optimizations.base import Rule, When, blocked
from tokendyno.backend.optimizations.subject import Subject


def needs_compiler(when: When) -> Rule:
    """Refuses what compiles where nothing can be compiled."""
    return blocked(
        lambda s: bool(s.machine.no_compiler) and when(s),
        "torch.compile needs a compiler (C++ on a CPU, C on a GPU) and Python's headers, and one of them is not here: "
        f"install it {INSTALL}. The variables CXX and CC name another compiler.",
        "torch 2.13: _inductor/cpp_builder.py, get_cpp_compiler; Triton 3.6: runtime/build.py",
    )


def needs_compile(reason: str, source: str, so: str) -> tuple[Rule, ...]:
    """Rules of a choice that means nothing where nothing is compiled, for a decoder and an encoder; and, with what
    follows from it (`so`), where `generate` skips compilation."""

    def rule(kind: str, *also: tuple[str, str]) -> Rule:
        def nothing_compiles(s: Subject) -> bool:
            return s.facts.kind == kind and not s.asks_to_compile and not s.skips_compilation

        return blocked(nothing_compiles, reason, source, fix=(("compile", "default"), *also))

    return rule("decoder", ("cache", "static")), rule("encoder"), skipped(lambda s: s.skips_compilation, so)


def skipped(when: When, so: str) -> Rule:
    """Refuses what needs a compiled step where `generate` compiles none; `so`: what follows from it."""
    source = "backend/optimizations/subject.py: skips_compilation"
    return blocked(when, f"generate does not compile a model quantized like this, so {so}.", source)
