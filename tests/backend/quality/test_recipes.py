"""What number formats cost where weights are random."""

from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.quality.recipes import recipes, worst_recipe
from tokendyno.backend.views.quality import counts


def test_the_dearest_choice_decides_and_what_was_not_read_is_unknown() -> None:
    known = {f"{axis.name}={choice.name}" for axis in all_axes() for choice in axis.choices}
    assert {one.choice for one in recipes().recipes} <= known
    eight, four = worst_recipe("quantization=bnb-int8"), worst_recipe("dtype=float16,quantization=bnb-nf4")
    assert eight is not None and four is not None and eight.kl_nats < 0.05 < four.kl_nats
    assert counts(eight.cost) and not counts(four.cost)
    assert worst_recipe("quantization=torchao-int4") is None
