"""What a browser is told of many requests: figures, the verdict, why, and columns by cursor."""

from collections.abc import Sequence

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tests.support.runs import ended
from tokendyno.backend.messages import DECODE, IDLE, PREFILL, Annotation, Finished, Steps
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.views.batch_live import MOST_BUCKETS, batch_delta, buckets
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.verdict import verdict_of


def run_of(last: int = 31, arms: str = "AB") -> Run:
    run = Run(batch_created())
    for name in arms:
        for record in batch_arm(name, static_events() if name == "A" else paged_events(last)):
            run.append(record)
    return run


def test_a_complete_run_is_worded_from_its_figures() -> None:
    run = run_of(last=99)
    run.append(ended())
    head = batch_delta(run, -1, [(0, 0, 0, 0)] * 2, 1.0).head
    assert head is not None and head.asked is not None and head.asked.max_new_tokens == [3, 1, 2]
    assert head.verdict.sentence == (
        "One pair of runs: continuous batching served 25% more useful tokens/s than static batching, 3.00 against "
        "2.40; 2 of 3 requests got the same tokens."
    )
    assert head.differ == {2: 1} and head.compared == 3
    assert "A took 5 steps of 500 ms with 60.0% of its slots at useful work, B 4 steps of 500 ms with 87.5%" in head.why
    assert "0.80× the steps" in head.why
    a, b = ({tile.key: tile for tile in arm.tiles} for arm in head.arms)
    assert (a["goodput"].value, a["goodput"].note) == ("0.800", "2 of 3 within TTFT 1.00 s")
    assert b["goodput"].note == "3 of 3 within TTFT 1.00 s" and head.differences["goodput"].text == "B 88% more"
    assert head.digest is not None and "A and B differ in Batching" in head.digest.line


def test_while_requests_are_served_the_bar_says_by_which_arm() -> None:
    run = Run(batch_created())
    run.append(batch_arm("A", static_events())[0])
    bar = batch_delta(run, -1, [(0, 0, 0, 0)] * 2, 1.0).head.bar  # type: ignore[union-attr]
    assert bar is not None and [part.text for part in bar.parts if part.state == "now"] == ["A serves"]


def several_runs(a: Sequence[float], b: Sequence[float], price: float = 0.0, **formats: str) -> Run:
    """Runs of 2 s in which the arms made so many useful tokens. `formats`: dtype of each arm."""
    first = batch_created()
    arms = [replace(arm, planned=arm.planned | {"dtype": formats.get(arm.name, "float32")}) for arm in first.arms]
    run = Run(replace(first, arms=arms, request=replace(first.request, price_per_hour=price)))
    for name, events, tokens in (("A", static_events(), a), ("B", paged_events(99), b)):
        for record in batch_arm(name, events):
            event = record.event if isinstance(record, ArmEvent) else None
            if not isinstance(event, Finished):
                run.append(record)
                continue
            for repeat, useful in enumerate(tokens):
                ends = replace(event, wall_s=2000.0, extra={"useful_tokens": round(1000 * useful)})
                run.append(ArmEvent(name, repeat, 2.5, ends))
    return run


def test_sentence_card_and_tile_have_the_estimate_over_all_pairs_and_its_interval() -> None:
    run = several_runs((4.8, 5.0, 4.9), (9.6, 10.1, 9.7), price=3.6)
    card = card_of(run.snapshot())
    assert card is not None and card.next is None, "it goes on"
    run.append(ended())
    head = batch_delta(run, -1, [(0, 0, 0, 0)] * 2, 1.0).head
    assert head is not None and head.card is not None
    comparison, card = run.snapshot().comparison, head.card
    assert comparison is not None and comparison.outcome == "b_faster"
    assert comparison.ratio == card.ratio == pytest.approx(2, rel=0.01)
    assert head.verdict.basis == "Decided after 3 pairs: 95% interval, by useful tokens/s."
    assert head.verdict.sentence.startswith("Continuous batching served 2.0\u00d7 the useful tokens/s of static")
    assert [next(t.value for t in arm.tiles if t.key == "useful") for arm in head.arms] == ["2.45", "4.90"]
    assert head.differences["useful"].better == "B"
    tiles = {tile.title: (tile.a, tile.b, tile.unit) for tile in card.tiles}
    assert tiles["Useful tokens"] == ("2.45", "4.90", "tok/s") and tiles["Goodput"] == ("0.800", "1.50", "req/s")
    assert tiles["Same tokens"] == ("2 of 3", "", "requests") and {"First token, median", "Peak memory"} < tiles.keys()
    assert (card.tone, card.reason) == ("good", "It serves 2.45 useful tokens/s more.")
    assert card.next is not None and (card.next.action, card.next.arm) == ("code", "B")
    assert card.confidence == "Decided after 3 pairs. No pair below 2.0\u00d7."
    assert card.cost == (
        "A million useful tokens cost 408 with static batching and 204 with continuous batching, at 3.6 an hour."
    )


def test_a_run_that_one_arm_alone_completed_is_in_no_figure() -> None:
    """2 s with 4.8 and 9.6 useful tokens, and another run of A."""
    summaries = several_runs((4.8, 40.0), (9.6,)).snapshot().batch_summaries
    assert [summaries[name].useful_tokens_s for name in "AB"] == [2.4, 4.8]


def test_an_arm_in_another_number_format_is_not_recommended_unread() -> None:
    run = several_runs((4.8, 5.0, 4.9), (9.6, 10.1, 9.7), A="float32", B="bfloat16")
    run.append(ended())
    card = card_of(run.snapshot())
    assert card is not None and (card.recommendation, card.next, card.cost) == (
        "Worth it if it writes as well",
        None,
        "",
    )
    assert card.reason.endswith("What it costs in quality was not read. Compare reads it.")


@pytest.mark.parametrize(
    ("b", "says"),
    [
        ((5.14, 5.36, 5.25), "Continuous batching served 7% more useful tokens/s than static batching ("),
        ((2.4, 2.5, 2.46), "Continuous batching served 50% fewer useful tokens/s than static batching ("),
        ((4.81, 4.99, 4.9), "No difference in useful tokens/s between continuous batching and static batching: 1.0"),
        ((2.0, 9.0, 5.0), "Not decided: continuous batching may serve more or fewer useful tokens/s than static"),
    ],
)
def test_arms_are_compared_by_their_names(b: Sequence[float], says: str) -> None:
    run = several_runs((4.8, 5.0, 4.9), b)
    run.append(ended())
    assert verdict_of(run.snapshot()).sentence.startswith(says), verdict_of(run.snapshot()).sentence


def test_where_continuous_batching_loses_it_says_what_cost_more_than_it_saved() -> None:
    run = Run(batch_created())
    slow = [
        msgspec.structs.replace(event, end_s=[t + 4 for t in event.end_s]) if isinstance(event, Steps) else event
        for event in paged_events()
    ]
    for record in [*batch_arm("A", static_events()), *batch_arm("B", slow), ended()]:
        run.append(record)
    head = batch_delta(run, -1, [(0, 0, 0, 0)] * 2, 1.0).head
    assert head is not None
    assert "takes 9.0× as long, which costs more than it saves: its attention copies the pages" in head.why
    sentence = head.verdict.sentence
    assert sentence.startswith(
        "One pair of runs: continuous batching served 58% fewer useful tokens/s than static batching"
    )


def test_an_unfinished_run_has_no_verdict_and_only_what_lies_past_the_cursor_is_sent() -> None:
    run = run_of(arms="A")
    first = batch_delta(run, -1, [(0, 0, 0, 0)] * 2, 1.0)
    assert first.head is not None and not first.head.verdict.sentence and not first.head.why and not first.ended
    later = batch_delta(run, first.version, [(3, 1, 0, 2), (0, 0, 0, 0)], 2.0)
    (a, b) = later.columns
    assert later.head is None and (a.first, a.end_step, a.request) == (3, 5, [2, 2])
    assert (a.wait_s, a.ended, a.texts) == ([], [2], ["two"]) and b.end_step == 0
    again = batch_delta(run, 0, [(0, 0, 0, 0)] * 2, 2.0).head
    assert again is not None and again.asked is None, "asked once"


# --- one compile for each length -------------------------------------------------------------------

PREFILLS = [(40, 10), (100, 20), (30, 12)]
"""Prompt and new tokens of requests that ran one after the other: caches of 128, 256 and 128 slots."""


def test_each_length_has_its_batches_and_the_time_of_its_compile_and_torchs_refusal_is_told() -> None:
    arm, requests = ArmSeries("A"), [TrafficRequest(0.0, new, prompt) for prompt, new in PREFILLS]
    for i, (prompt, _) in enumerate(PREFILLS):
        begin_s = [i + 0.0, i + 0.5]
        steps = Steps(2 * i, begin_s, [t_s + 0.5 for t_s in begin_s], [2, 1], [0, 0], [0, 0], [i, -1, i],
                      [PREFILL, IDLE, DECODE], [prompt, 1, 1], [5, -1, 6])  # fmt: skip
        arm.batch.take(steps)
    arm.annotations = [Annotation("recompile", 3, 1.5, 0.25, "a guard"), Annotation("gc", 1, 0.1, 0.2, "collected")]
    short, long = buckets(arm, "buckets", requests)
    assert (short.slots, short.batches, short.compiled) == (128, [(0.0, 1.0), (2.0, 3.0)], [])
    assert short.said == "2 batches, 2 steps after the prompt; compiled in the warm-up"
    assert (long.slots, long.batches, long.compiled) == (256, [(1.0, 2.0)], [(1.5, 1.75)])
    assert long.said.endswith("compiled 1.50 s into the run, in 250 ms")

    arm.annotations.append(Annotation("graph_skip", 5, 2.6, 0.0, "not compiled: Dynamo recompile limit exceeded"))
    assert "torch gave up" in buckets(arm, "buckets", requests)[0].said
    assert len(buckets(arm, "exact", requests)) == len(PREFILLS) <= MOST_BUCKETS
