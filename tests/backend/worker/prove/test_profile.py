"""A profile tells what ran after the first step, and what of it outside of Inductor's graphs."""

import pytest

torch = pytest.importorskip("torch")

from tokendyno.backend.optimizations.proof import products  # noqa: E402
from tokendyno.backend.worker.prove.profile import mark_step, trace  # noqa: E402


def test_products_are_counted_after_the_first_step_and_inside_or_outside_of_graphs() -> None:
    one = torch.ones(4, 4)

    def generate() -> int:
        one @ one  # the prefill
        mark_step()
        for _ in range(3):
            with torch.profiler.record_function("Torch-Compiled Region: 0/0"):
                with torch.profiler.record_function("## Call CompiledFxGraph abc ##"):
                    one @ one
                    one + one
                one @ one  # at a graph break
            mark_step()
        return 4

    seen = trace(generate, False)
    assert (seen.steps, products(seen.ops)) == (4, 7)
    assert (products(seen.decode), products(seen.eager)) == (6, 3)
    assert products(seen.read) == 1, "of the first step, without the compiled one"
    assert seen.ops["Torch-Compiled Region: 0/0"] == 3 and not [name for name in seen.ops if "end of a step" in name]
    assert seen.decode["aten::add"] == 3 and seen.eager["aten::add"] == 0
