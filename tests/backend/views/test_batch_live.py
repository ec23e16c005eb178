"""What a browser is told of many requests: figures, the verdict, why, and columns by cursor."""

import msgspec

from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tests.support.runs import ended
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import Finished, Steps
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.batch_live import batch_delta


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
        "B serves 25% more useful tokens/s than A (3.00 against 2.40); 2 of 3 requests got the same tokens."
    )
    assert head.differ == {2: 1} and head.compared == 3
    assert "A took 5 steps of 500 ms with 60.0% of its slots at useful work, B 4 steps of 500 ms with 87.5%" in head.why
    assert "0.800x the steps" in head.why
    a, b = ({tile.key: tile for tile in arm.tiles} for arm in head.arms)
    assert (a["goodput"].value, a["goodput"].note) == ("0.800", "2 of 3 within TTFT 1.00 s")
    assert b["goodput"].note == "3 of 3 within TTFT 1.00 s" and head.differences["goodput"].text == "B 88% more"
    assert head.digest is not None and "A and B differ in Batching" in head.digest.line


def test_of_several_runs_sentence_and_tile_have_the_estimate_over_all_and_its_interval() -> None:
    run = Run(batch_created())
    for name, events, tokens in (("A", static_events(), (4.8, 6.0)), ("B", paged_events(99), (9.6, 10.0))):
        for record in batch_arm(name, events):
            event = record.event if isinstance(record, ArmEvent) else None
            if not isinstance(event, Finished):
                run.append(record)
                continue
            for repeat, useful in enumerate(tokens):
                ends = msgspec.structs.replace(event, wall_s=2.0, extra=RunCounts(useful_tokens=useful))
                run.append(ArmEvent(name, repeat, 2.5, ends))
    run.append(ended())
    head = batch_delta(run, -1, [(0, 0, 0, 0)] * 2, 1.0).head
    assert head is not None and head.verdict.basis == "2 runs of each arm."
    assert "(4.90 against 2.68; 1.83 (" in head.verdict.sentence and " times as many)" in head.verdict.sentence
    assert [next(t.value for t in arm.tiles if t.key == "useful") for arm in head.arms] == ["2.68", "4.90"]


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
    assert "takes 9.00x as long, which costs more than it saves: its attention copies the pages" in head.why
    assert head.verdict.sentence.startswith("B serves 58% fewer useful tokens/s")


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
