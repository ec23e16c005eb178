"""Changes that make an arm fit: every one exists, and they go from the least loss to the most."""

from types import SimpleNamespace

import pytest

from tokendyno.backend.arms.check import remedies
from tokendyno.backend.optimizations import Choice, all_axes


def test_every_remedy_names_axes_and_choices_that_exist() -> None:
    known = {axis.name: {choice.name for choice in axis.choices} for axis in all_axes()}
    for remedy in remedies():
        for axis, choice in remedy.items():
            assert choice in known[axis], remedy
    assert len({tuple(sorted(remedy.items())) for remedy in remedies()}) == len(remedies())


@pytest.mark.parametrize(
    ("less", "more"),
    [
        ({"cache": "dynamic"}, {"cache": "offloaded"}),
        ({"cache": "offloaded"}, {"quantization": "bnb-int8"}),
        ({"dtype": "bfloat16"}, {"quantization": "bnb-int8"}),
        ({"quantization": "mxfp4"}, {"quantization": "bnb-int8"}),
        ({"quantization": "bnb-int8"}, {"quantization": "bnb-nf4"}),
        ({"quantization": "bnb-nf4"}, {"quantization": "bnb-fp4"}),
        ({"cache": "quantized-fp8"}, {"cache": "quantized-hqq4"}),
    ],
)
def test_less_is_lost_before_more(less: dict[str, str], more: dict[str, str]) -> None:
    assert remedies().index(less) < remedies().index(more)


ORDER = (
    {"attention": "sdpa"},
    {"cache": "dynamic"},
    {"cache": "static"},
    {"attention": "sdpa", "cache": "dynamic"},
    {"experts": "grouped_mm"},
    {"experts": "eager"},
    {"quantization": "mxfp4"},
    {"cache": "offloaded"},
    {"cache": "offloaded_static"},
    {"dtype": "bfloat16"},
    {"dtype": "bfloat16", "cache": "dynamic"},
    {"dtype": "bfloat16", "cache": "offloaded"},
    {"cache": "quantized-fp8"},
    {"quantization": "bnb-int8"},
    {"quantization": "torchao-int8"},
    {"quantization": "quanto-int8"},
    {"quantization": "torchao-fp8"},
    {"cache": "quantized-hqq4"},
    {"cache": "quantized-quanto4"},
    {"quantization": "bnb-nf4"},
    {"quantization": "bnb-nf4-double"},
    {"quantization": "torchao-int4"},
    {"quantization": "quanto-int4"},
    {"quantization": "bnb-fp4"},
    {"quantization": "bnb-fp4-double"},
    {"dtype": "bfloat16", "quantization": "bnb-nf4-double"},
    {"quantization": "bnb-nf4-double", "cache": "dynamic"},
    {"quantization": "bnb-nf4-double", "cache": "offloaded"},
    {"quantization": "bnb-nf4-double", "cache": "quantized-hqq4"},
)
"""By the papers: bf16 (what most checkpoints are), int8 with outliers kept (arXiv 2208.07339), int8 by rows, nf4 before
fp4 (arXiv 2305.14314)."""


def test_what_the_choices_declare_comes_to_this_order() -> None:
    """Those of a later version may stand between them."""
    known = [change for change in remedies() if change in ORDER]
    assert [list(change.items()) for change in known] == [list(change.items()) for change in ORDER]


def test_the_default_loses_nothing_and_what_is_never_suggested_the_most() -> None:
    quantization = next(axis for axis in all_axes() if axis.name == "quantization")
    losses = [quantization.loss(name) for name in ("none", "bnb-int8", "bnb-nf4", "mxfp4-dequantized")]
    assert losses == sorted(losses) and losses[0] == 0 and len(set(losses)) == 4


def test_a_combination_loses_as_much_as_the_worse_of_its_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what costs nothing together with what costs time comes after all that only costs time."""
    nothing = Choice("a", "A", "A.", loss=1, combines=(("two", "b"), ("two", "c"), ("two", "never")))
    slow = (Choice("b", "B", "B.", loss=21), Choice("c", "C", "C.", loss=3), Choice("never", "N", "N."))
    axes = [SimpleNamespace(name="one", choices=(nothing,)), SimpleNamespace(name="two", choices=slow)]
    monkeypatch.setattr("tokendyno.backend.arms.check.all_axes", lambda: axes)
    assert remedies() == (
        {"one": "a"},
        {"two": "c"},
        {"one": "a", "two": "never"},
        {"one": "a", "two": "c"},
        {"two": "b"},
        {"one": "a", "two": "b"},
    )
