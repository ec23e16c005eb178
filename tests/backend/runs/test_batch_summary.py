"""The figures of many requests, against numbers worked out by hand."""

import msgspec
import pytest

from tests.support.batches import TRAFFIC, paged_events, static_events
from tokendyno.backend.messages import BatchEvent, PageMoves, RequestEnds
from tokendyno.backend.runs.batch_series import BatchSeries
from tokendyno.backend.runs.batch_summary import differing, summarize_batch, token_s
from tokendyno.backend.traffic import Limits


def folded(events: list[BatchEvent]) -> BatchSeries:
    series = BatchSeries()
    for event in events:
        series.take(event)
    return series


def test_figures_of_static_and_continuous_batches() -> None:
    a, b = (summarize_batch(folded(events), TRAFFIC) for events in (static_events(), paged_events()))
    assert (a.served, a.tokens, a.wall_s, a.useful_tokens_s) == (3, 6, 2.5, 6 / 2.5)
    assert (b.served, b.tokens, b.wall_s, b.useful_tokens_s) == (3, 6, 2.0, 6 / 2.0)
    # slots: 2 x 5 steps, of which two rows idled and two were empty in the last batch; B cut a prompt in two
    assert (a.slot_steps, a.busy_steps, a.idle_steps) == (10, 6, 2)
    assert (b.slot_steps, b.busy_steps, b.idle_steps) == (8, 7, 0)
    assert (a.padding_tokens, a.positions) == (4, 4 + 8 + 2 * 2 + 4 + 1) and b.padding_tokens == 0
    # request 2 arrives at 0.5 and gets its first token at 2.0 in A, at 1.5 in B; the others at 0.5
    assert (a.ttft.median_s, a.request.median_s, a.ttft.p90_s) == (0.5, 1.5, None)
    assert (a.token.count, a.token.median_s, b.token.count) == (2, 0.5, 2), "request 1 has one token"
    assert (a.steps, a.step_mean_s, a.requests) == (5, 0.5, 3) and a.busy_share == 0.6
    assert (a.good, a.goodput_s) == (2, 2 / 2.5) and (b.good, b.goodput_s) == (3, 3 / 2.0)
    assert a.waited == {"batch": 1} and b.waited == {"requests": 1}
    assert (a.held_peak_bytes, a.cache_bytes) == (None, None)
    assert (b.held_peak_bytes, b.cache_bytes) == (300, 600), "a page that changed hands within a step counts once"


@pytest.mark.parametrize(
    ("limits", "good"),
    [
        (Limits(), None),
        (Limits(request_s=0.5), 1),
        (Limits(token_s=0.4), 1),  # of request 1, which has one token, no time per token can be too long
        (Limits(ttft_s=1.0, request_s=1.5), 2),
    ],
)
def test_a_request_is_good_within_every_limit(limits: Limits, good: int | None) -> None:
    summary = summarize_batch(folded(static_events()), msgspec.structs.replace(TRAFFIC, limits=limits))
    assert summary.good == good


def test_a_cancelled_request_is_neither_served_nor_compared() -> None:
    events = static_events()
    ends = events.pop()
    assert isinstance(ends, RequestEnds)
    cancelled = msgspec.structs.replace(ends, reason=["length", "length", "cancelled"])
    a = folded([*events, cancelled])
    summary = summarize_batch(a, TRAFFIC)
    assert (summary.served, summary.tokens, summary.request.count) == (2, 6, 2)
    assert differing(a, folded(paged_events())) == {0: None, 1: None}


def test_tokens_are_compared_request_by_request() -> None:
    a = folded(static_events())
    assert differing(a, folded(paged_events())) == {0: None, 1: None, 2: None}
    assert differing(a, folded(paged_events(last=99))) == {0: None, 1: None, 2: 1}
    assert differing(a, BatchSeries()) is None
    assert token_s(a.requests[0]) == pytest.approx(0.5) and token_s(a.requests[1]) is None


def test_nothing_is_known_before_the_first_step() -> None:
    summary = summarize_batch(BatchSeries(), TRAFFIC)
    assert (summary.requests, summary.served, summary.good) == (3, 0, 0)
    assert summary.useful_tokens_s is summary.busy_share is None


def test_slots_are_those_of_the_arm() -> None:
    one, four = (summarize_batch(folded(static_events()), TRAFFIC, slots) for slots in (1, 4))
    assert one.busy_share is not None and one.busy_share == pytest.approx(4 * (four.busy_share or 0))


@pytest.mark.parametrize(
    ("moves", "held", "most"),
    [
        ([(0, 0, 0), (0, 1, 1), (1, 0, -1), (1, 2, 1)], [2, 2, 2, 2], 200),
        ([(0, 0, 0), (1, 1, 1), (1, 0, -1), (2, 1, -1)], [1, 1, 0, 0], 100),  # two only within a step
        ([(0, 0, 0), (0, 1, 0), (0, 2, 0), (1, 0, -1), (1, 1, -1)], [3, 1, 1, 1], 300),
    ],
)
def test_pages_are_held_by_the_end_of_a_step(moves: list[tuple[int, int, int]], held: list[int], most: int) -> None:
    """Moves as (step, page, request, -1 where nobody has it any more)."""
    events = [event for event in paged_events() if not isinstance(event, PageMoves)]
    steps, pages, requests = (list(column) for column in zip(*moves, strict=True))
    series = folded([*events, PageMoves(steps, [0] * len(moves), pages, requests)])
    assert series.pages_in_use() == [held]
    assert summarize_batch(series, TRAFFIC).held_peak_bytes == most


def test_a_page_that_is_handed_on_counts_once() -> None:
    events = [event for event in paged_events() if not isinstance(event, PageMoves)]
    series = folded([*events, PageMoves([0, 1], [0, 0], [0, 0], [0, 1])])
    assert summarize_batch(series, TRAFFIC).held_peak_bytes == 100


@pytest.mark.parametrize("limits", [Limits(ttft_s=9.0), Limits(token_s=9.0), Limits(request_s=9.0)])
def test_a_request_that_ended_without_a_token_is_served_and_not_good(limits: Limits) -> None:
    a = folded(static_events())
    a.requests[1].token_s, a.requests[1].ids = [], []
    summary = summarize_batch(a, msgspec.structs.replace(TRAFFIC, limits=limits))
    assert (summary.served, summary.good, summary.ttft.count) == (3, 2, 2)


def test_a_limit_that_is_just_kept_is_kept() -> None:
    series = folded(static_events())
    for limits, good in ((Limits(request_s=1.5), 2), (Limits(request_s=2.0), 3), (Limits(token_s=0.5), 3)):
        assert summarize_batch(series, msgspec.structs.replace(TRAFFIC, limits=limits)).good == good


def test_requests_of_which_the_traffic_knows_nothing_do_not_count() -> None:
    series = folded(static_events())
    series.requests[99] = series.requests[0].copy()
    assert summarize_batch(series, TRAFFIC).served == 3


def test_without_slots_of_its_own_an_arm_has_those_of_all_and_no_more_than_requests() -> None:
    series = folded(static_events())
    for concurrent, slots in ((2, 2), (3, 3), (9, 3)):
        traffic = msgspec.structs.replace(TRAFFIC, concurrent=concurrent)
        assert summarize_batch(series, traffic).slot_steps == 5 * slots


def test_pages_of_different_groups_and_requests_are_told_apart() -> None:
    """Group 1 has pages of 100 bytes too; a page of the same number is another one there."""
    events = [event for event in paged_events() if not isinstance(event, PageMoves)]
    series = folded([*events, PageMoves([0, 0, 1, 1, 2], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, -1, -1, 0])])
    assert series.pages is not None
    series.pages = msgspec.structs.replace(series.pages, groups=series.pages.groups * 2)
    assert summarize_batch(series, TRAFFIC).held_peak_bytes == 200
