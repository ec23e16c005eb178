"""Changes that make an arm fit: every one exists, and they go from the least loss to the most."""

import pytest

from backend.optimizations import axes
from backend.remedies import REMEDIES, loss_rank


def test_every_remedy_names_axes_and_choices_that_exist() -> None:
    known = {axis.name: {choice.name for choice in axis.choices} for axis in axes()}
    for remedy in REMEDIES:
        for axis, choice in remedy.items():
            assert choice in known[axis], remedy
    assert len({tuple(sorted(remedy.items())) for remedy in REMEDIES}) == len(REMEDIES)


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
    assert REMEDIES.index(less) < REMEDIES.index(more)


def test_the_default_loses_nothing_and_an_unknown_choice_the_most() -> None:
    ranks = [loss_rank({"quantization": q}, "quantization", "none") for q in ("none", "bnb-int8", "bnb-nf4", "?")]
    assert ranks == sorted(ranks) and ranks[0] == 0 and len(set(ranks)) == 4
