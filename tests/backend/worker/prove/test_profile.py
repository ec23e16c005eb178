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


def test_nothing_is_marked_while_nobody_listens() -> None:
    mark_step()
    assert products(trace(lambda: 1, False).decode) == 0


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("texts", [1, 3])
def test_a_frozen_layers_product_of_last_tokens_is_a_plain_one(frozen: bool, texts: int) -> None:
    """torch makes it of a batch, with a copy of the weight for each text."""
    weight = torch.nn.Parameter(torch.ones(48, 32, dtype=torch.bfloat16), requires_grad=not frozen)
    states, others = torch.ones(texts, 8, 32, dtype=torch.bfloat16), torch.ones(6, 4, 4)

    def generate() -> int:
        with torch.inference_mode():
            torch.nn.functional.linear(states[:, -1:], weight)
            others @ others
        mark_step()
        return 1

    seen = trace(generate, False)
    assert seen.shapes["aten::mm", ((texts, 32), (32, 48))] == 1
    assert seen.formats == {((32, 48), "bfloat16"): 1}
    batched = {given: n for (name, given), n in seen.shapes.items() if name == "aten::bmm" and n}
    assert batched == {((6, 4, 4), (6, 4, 4)): 1}
    assert seen.ops["aten::bmm"] == 1 + frozen
