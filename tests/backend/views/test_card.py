"""The card of a run of one prompt; that of many requests: test_batch_live."""

import pytest
from msgspec.structs import replace

from tests.support.runs import arm_records, created, ended, finished
from tokendyno.backend.messages import Tokens
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.units import bytes_text, seconds_text
from tokendyno.backend.views.card import Card, _tile, card_of, slide_figures
from tokendyno.backend.views.comparison import differences


def priced_card(price: float) -> Card:
    """Both arms take 10 ms a token."""
    first = created()
    run = Run(replace(first, request=replace(first.request, price_per_hour=price)))
    for record in [*arm_records("A", 64), *arm_records("B", 64), ended()]:
        run.append(record)
    card = card_of(run.snapshot())
    assert card is not None
    return card


def test_a_price_an_hour_makes_a_cost_of_a_million_tokens_in_both_arms() -> None:
    assert priced_card(3.6).cost == (
        "A million tokens cost 10.0 with baseline and 10.0 with full KV cache (no sliding window), at 3.6 an hour, the "
        "prompt not counted."
    )
    assert priced_card(0).cost == ""


@pytest.mark.parametrize(
    ("kv", "memory", "worth"), [(0.5, 1.0, True), (0.5, 1.2, False), (1.0, 0.5, True), (1.0, 1.0, False)]
)
def test_an_arm_is_worth_it_for_memory_if_its_peak_is_no_higher(kv: float, memory: float, worth: bool) -> None:
    run = Run(created(repeats=3))
    for repeat in range(3):
        for arm, of_kv, of_memory in (("A", 1.0, 1.0), ("B", kv, memory)):
            steps, sizes = list(range(9)), [int(of_kv * 512 * (i + 1)) for i in range(9)]
            peaks, times_s = [int(of_memory * 2**29)] * 9, [0.1 * (i + 1) for i in range(9)]
            run.append(ArmEvent(arm, repeat, 1.0, Tokens(0, times_s, [0.1] * 9, sizes, sizes, peaks, steps, "x")))
            run.append(ArmEvent(arm, repeat, 1.1, finished("x")))
    run.append(ended())
    card = card_of(run.snapshot())
    assert card is not None and ("Worth it for memory" in card.recommendation) == worth


def test_the_smaller_figure_of_a_tile_is_not_scaled_by_a_rounded_one() -> None:
    tile = _tile("Time a token", seconds_text, 0.020249, 0.015938, None)
    assert tile is not None and (tile.a, tile.b, tile.unit) == ("20.2", "15.9", "ms")
    tile = _tile("Peak memory", bytes_text, 1503 << 20, 512 << 20, None)
    assert tile is not None and (tile.a, tile.b, tile.unit) == ("1.47", "0.500", "GiB")


def test_the_smaller_kv_cache_of_a_shorter_text_is_no_gain() -> None:
    """B takes as long a token, and stops after 5 of them."""
    run = Run(created(repeats=3))
    for repeat in range(3):
        for arm, count in (("A", 9), ("B", 5)):
            steps, kv = list(range(count)), [512 * (i + 1) for i in range(count)]
            tokens = Tokens(0, [0.1 * (i + 1) for i in steps], [0.1] * count, kv, kv, [2**29] * count, steps, "x")
            run.append(ArmEvent(arm, repeat, 1.0, tokens))
            run.append(ArmEvent(arm, repeat, 1.1, finished("x")))
    run.append(ended())
    now = run.snapshot()
    card = card_of(now)
    assert card is not None and card.recommendation == "Not worth it here: it changes nothing"
    assert "kv" not in differences(now) and "kv" not in slide_figures(now, card)


@pytest.mark.parametrize(
    ("first_s", "worth"), [(0.2, "\u2713 Worth it on this machine"), (2.0, "Worth it for longer texts only")]
)
def test_an_arm_whose_first_token_costs_more_than_the_others_save_is_worth_it_for_longer_texts_only(
    first_s: float, worth: str
) -> None:
    """Of 9 tokens: B saves 50 ms with each after the first."""
    run = Run(created(repeats=3))
    for repeat in range(3):
        for arm, first, step_s in (("A", 0.1, 0.1), ("B", first_s, 0.05)):
            steps = list(range(9))
            times_s, took_s = [first + step_s * i for i in steps], [first, *[step_s] * 8]
            run.append(ArmEvent(arm, repeat, 1.0, Tokens(0, times_s, took_s, steps, steps, [2**29] * 9, steps, "x")))
            run.append(ArmEvent(arm, repeat, 1.1, finished("x")))
    run.append(ended())
    card = card_of(run.snapshot())
    assert card is not None and worth in card.recommendation
    said = (
        "Its first token comes 1.90 s later: a text of 9 tokens took 2.7\u00d7 as long; one of 39 or more takes less."
    )
    assert (said in card.reason) == (first_s == 2.0)
