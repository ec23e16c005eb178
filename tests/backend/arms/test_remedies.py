"""Changes that make an arm fit: every one exists, and they go from the least loss to the most."""

import pytest

from tokendyno.backend.arms.check import remedies
from tokendyno.backend.optimizations import all_axes


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
        ({"dtype": "bfloat16", "cache": "offloaded"}, {"cache": "static-fp8"}),  # both, in 16 bits, before 8 bits
        ({"quantization": "mxfp4"}, {"quantization": "bnb-int8"}),
        ({"quantization": "bnb-int8"}, {"quantization": "bnb-nf4"}),
        ({"quantization": "bnb-nf4"}, {"quantization": "bnb-fp4"}),
        ({"cache": "quantized-fp8"}, {"cache": "quantized-hqq4"}),
    ],
)
def test_less_is_lost_before_more(less: dict[str, str], more: dict[str, str]) -> None:
    assert remedies().index(less) < remedies().index(more)


def test_several_gpus_share_the_model_before_anything_is_lost() -> None:
    assert remedies(4)[:4] == tuple({"parallel": f"{kind}-{n}"} for kind in ("tensor", "device-map") for n in (2, 4))
    assert remedies(4)[4:] == remedies()


def test_the_default_loses_nothing_and_what_is_never_suggested_the_most() -> None:
    quantization = next(axis for axis in all_axes() if axis.name == "quantization")
    losses = [quantization.loss(name) for name in ("none", "bnb-int8", "bnb-nf4", "mxfp4-dequantized")]
    assert losses == sorted(losses) and losses[0] == 0 and len(set(losses)) == 4
