"""What torch.compile needs on this machine is known before a run."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU, facts, settled
from tokendyno.backend.hardware.compilers import compiler_problem


@pytest.mark.parametrize(
    ("device", "env", "said"),
    [
        ("cpu", {"PATH": "/nonexistent"}, "there is no C++ compiler (no g++ on PATH)"),
        (
            "cpu",
            {"PATH": "/bin:/usr/bin", "CXX": "icpx"},
            "there is no C++ compiler (CXX names icpx, which is not here)",
        ),
        ("cuda", {"PATH": "/nonexistent"}, "there is no C compiler (no gcc or clang on PATH)"),
        ("cpu", {"PATH": "/nonexistent", "CXX": "/bin/sh"}, ""),
    ],
)
def test_a_compiler_that_is_missing_is_named(device: str, env: dict[str, str], said: str) -> None:
    assert compiler_problem(device, env) == said


@pytest.mark.parametrize("choices", [{"compile": "default", "cache": "static"}, {"attention": "flex_attention"}])
def test_what_compiles_is_refused_without_a_compiler(choices: dict[str, str]) -> None:
    model = facts("random:Qwen3-0.6B")
    blocked = settled(model, choices, replace(CPU, no_compiler="there is no C++ compiler")).blocked
    assert any("needs a compiler" in verdict.reason for verdict in blocked)
    assert not settled(model, choices, CPU).blocked
