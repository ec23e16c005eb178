"""An object described once is built and printed alike."""

from fractions import Fraction
from typing import Any

import pytest

from tokendyno.backend.script.construct import Construct, Name

NESTED = Construct("fractions", "Fraction", (Construct("fractions", "Fraction", (3, 4)), Name("below")))
CASES = [
    Construct("fractions", "Fraction", (1, 2)),
    Construct("decimal", "Decimal", ("0.25",)),
    Construct("collections", "Counter", (), {"a": 1, "b": 2}),
    Construct("fractions", "Fraction", (Name("below"), 8)),
    NESTED,
]


@pytest.mark.parametrize("given", CASES, ids=lambda given: given.source(below="below"))
def test_what_is_printed_is_what_is_built(given: Construct) -> None:
    names: dict[str, Any] = {}
    exec("\n".join([*given.imports(), "below = 2", given.source("made = ", below="below")]), names)
    assert names["made"] == given.build(below=2)
    assert type(names["made"]) is type(given.build(below=2))


def test_it_says_which_names_it_needs() -> None:
    assert NESTED.needs("below") and CASES[3].needs("below")
    assert not CASES[0].needs("below") and not NESTED.needs("above")
    assert NESTED.build(below=3) == Fraction(1, 4)
    with pytest.raises(KeyError):
        NESTED.build()
