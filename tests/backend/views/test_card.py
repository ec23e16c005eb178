"""The card of a run of one prompt; that of many requests: test_batch_live."""

from msgspec.structs import replace

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.card import Card, card_of


def card(price: float) -> Card:
    """Both arms take 10 ms a token."""
    first = created()
    run = Run(replace(first, request=replace(first.request, price_per_hour=price)))
    for record in [*arm_records("A", 64), *arm_records("B", 64), ended()]:
        run.append(record)
    found = card_of(run.snapshot())
    assert found is not None
    return found


def test_a_price_an_hour_makes_a_cost_of_a_million_tokens_in_both_arms() -> None:
    assert card(3.6).cost == (
        "A million tokens cost 10.0 with baseline and 10.0 with full KV cache (no sliding window), at 3.6 an hour, the "
        "prompt not counted."
    )
    assert card(0).cost == ""
