"""What is computed from a run at one moment."""

import msgspec
import pytest

from tests.support.batches import TRAFFIC, batch_arm, batch_created, paged_events, static_events
from tests.support.runs import arm_records, created, encoder, ended, finished, passes, tokens
from tokendyno.backend.evidence import Finding, Verdict
from tokendyno.backend.messages import Event, Loaded, PageGroup, PagesAllocated, Probed, Samples, Started
from tokendyno.backend.predict.kv import KvPoint
from tokendyno.backend.runs.records import ArmEvent, Predicted
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import doubt
from tokendyno.backend.traffic import TrafficRequest


def batch(static_slots: int | None = 2) -> Run:
    run = Run(batch_created())
    for name, events in (("A", static_events()), ("B", paged_events())):
        for record in batch_arm(name, events):
            begun = isinstance(record, ArmEvent) and isinstance(record.event, Started)
            if begun and name == "A" and isinstance(record, ArmEvent):
                if static_slots is None:
                    continue
                record = ArmEvent("A", 0, 0.0, Started(6, static_slots, 3, []))
            run.append(record)
    return run


@pytest.mark.parametrize(("slots", "share"), [(2, 0.6), (4, 0.3), (None, 0.6)])
def test_an_arm_is_measured_by_its_own_slots_once_they_are_known(slots: int | None, share: float) -> None:
    assert batch(slots).snapshot().batch_summaries["A"].busy_share == pytest.approx(share)


def test_requests_with_the_same_tokens_are_counted() -> None:
    now = batch().snapshot()
    assert (now.differing_requests, now.same_tokens()) == ({0: None, 1: None, 2: None}, 3)
    other = Run(batch_created())
    for name, events in (("A", static_events()), ("B", paged_events(last=99))):
        for record in batch_arm(name, events):
            other.append(record)
    assert other.snapshot().same_tokens() == 2
    assert (
        Run(batch_created()).snapshot().same_tokens() is None
        and Run(created(arms="A")).snapshot().same_tokens() is None
    )
    assert now.texts is None, "requests are compared one by one"


@pytest.mark.parametrize(
    ("cache_bytes", "exact", "status"),
    [(1_000, True, "verified"), (1_100, True, "partial"), (1_100, False, "verified")],
)
def test_pages_are_held_against_the_prediction_where_lengths_are_known(
    cache_bytes: int, exact: bool, status: str
) -> None:
    """Of prompts given as texts lengths are only guessed before they are read."""
    request = TrafficRequest(0.0, 3, 6) if exact else TrafficRequest(0.0, 3, prompt="some words")
    first = batch_created(traffic=msgspec.structs.replace(TRAFFIC, requests=[request]))
    chosen = {"cache": "paged"}
    arms = [msgspec.structs.replace(arm, requested=chosen, planned=chosen) for arm in first.arms]
    run = Run(msgspec.structs.replace(first, arms=arms))
    run.append(Predicted("A", [], memory={"kv": 1_000}))
    events: list[Event] = [
        PagesAllocated([PageGroup("full_attention", 2, 4, 100, 6)], cache_bytes, 0),
        msgspec.structs.replace(finished("x"), findings=[Finding("cache", "paged", "seen")]),
    ]
    for event in events:
        run.append(ArmEvent("A", 0, 1.0, event))
    row, *_ = run.snapshot().ledgers["A"]
    assert row.status == status


@pytest.mark.parametrize("peaks", [(1, 2, 9), (1, 9, 2), (9, 2, 1)])
def test_peak_memory_is_the_largest_of_tokens_samples_and_what_the_worker_told(peaks: tuple[int, int, int]) -> None:
    run = Run(created(arms="A"))
    events: list[Event] = [
        msgspec.structs.replace(tokens(0, 1), memory_bytes=[peaks[0]]),
        Samples([0.0], [peaks[1]]),
        msgspec.structs.replace(finished("x"), peak_memory_bytes=peaks[2]),
    ]
    for event in events:
        run.append(ArmEvent("A", 0, 1.0, event))
    assert run.snapshot().summaries["A"].peak_memory_bytes == 9


def test_the_cache_is_that_after_the_newest_token_and_an_encoder_has_none() -> None:
    run = Run(created(arms="A"))
    for record in arm_records("A", 5):
        run.append(record)
    summary = run.snapshot().summaries["A"]
    assert (summary.kv_sliding_bytes, summary.kv_full_bytes) == (512 * 14, 512 * 14)
    assert summary.kv_predicted_bytes == 2 * 512 * 14
    forward = Run(encoder())
    for record in passes("A", 5):
        forward.append(record)
    forward.append(Predicted("A", [KvPoint(0, 9, 9), KvPoint(99, 9, 9)]))
    passing = forward.snapshot().summaries["A"]
    assert (passing.kv_bytes, passing.kv_predicted_bytes, passing.ttft_s, passing.runs) == (None, None, None, 1)


def test_a_probe_of_either_arm_tells_the_gap() -> None:
    run = Run(created())
    for arm, last in (("A", 2), ("B", 3)):
        run.append(ArmEvent(arm, 0, 1.0, msgspec.structs.replace(tokens(0, 2), ids=[1, last])))
        run.append(ArmEvent(arm, 0, 1.0, finished("abc")))
    texts = run.snapshot().texts
    assert texts is not None and (texts.tokens_equal_until, texts.gap) == (1, None)
    run.append(ArmEvent("B", 0, 1.0, Probed(1, [7, 8], [" a", " the"], [3.5, 3.25])))
    texts = run.snapshot().texts
    assert texts is not None and (texts.tokens_equal_until, texts.gap) == (1, 0.25)


@pytest.mark.parametrize(
    ("level", "becomes", "reasons"),
    [("fallback", "", ("why", "")), ("note", "bfloat16", ("", "why")), ("note", "", ("", ""))],
)
def test_a_row_says_what_was_done_instead_and_why(level: str, becomes: str, reasons: tuple[str, str]) -> None:
    first = created(arms="A")
    verdict = Verdict(level, "dtype", "why", becomes=becomes)  # type: ignore[arg-type]
    arms = [msgspec.structs.replace(first.arms[0], verdicts=[verdict])]
    run = Run(msgspec.structs.replace(first, arms=arms))
    unplanned = Finding("nowhere", "x", "an axis that nobody asked for")
    end = finished("x")
    run.append(ArmEvent("A", 0, 1.0, msgspec.structs.replace(end, findings=[*end.findings, unplanned])))
    row, *_ = run.snapshot().ledgers["A"]
    assert (row.fell_back, row.settled) == reasons


def test_an_axis_that_is_gone_keeps_its_row() -> None:
    """In a history of an older version."""
    first = created(arms="A")
    chosen = {"gone": "old"}
    arms = [msgspec.structs.replace(first.arms[0], requested=chosen, planned=chosen)]
    run = Run(msgspec.structs.replace(first, arms=arms))
    run.append(ArmEvent("A", 0, 1.0, Loaded(1, 1, False)))
    run.append(ArmEvent("A", 0, 1.0, msgspec.structs.replace(finished("x"), findings=[Finding("gone", "old", "seen")])))
    row, _ = run.snapshot().ledgers["A"]
    assert (row.status, row.off, row.doubt) == ("verified", "", "")


@pytest.mark.parametrize(
    ("device", "label"), [("cuda", "VRAM of the worker"), ("cpu", "resident memory of the worker")]
)
def test_memory_is_that_of_the_device_until_the_worker_names_it(device: str, label: str) -> None:
    run = Run(msgspec.structs.replace(created(), device=device))
    assert run.snapshot().memory_label == label
    run.append(ArmEvent("B", 0, 1.0, finished("x")))
    run.append(ended())
    assert run.snapshot().memory_label == "label"


def test_where_no_proof_was_asked_for_every_row_says_so() -> None:
    first = created(arms="A")
    run = Run(msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, proof=False)))
    run.append(ArmEvent("A", 0, 1.0, msgspec.structs.replace(finished("x"), findings=[])))
    rows = run.snapshot().ledgers["A"]
    assert {row.finding.axis for row in rows} == set(first.arms[0].planned)
    assert {(row.status, row.finding.proof) for row in rows} == {("unchecked", "not looked at")}


# --- measured bytes against what was predicted -----------------------------------------------------


@pytest.mark.parametrize(
    ("measured", "doubted"), [(1000, False), (1020, False), (980, False), (1021, True), (979, True)]
)
def test_more_than_the_tolerance_is_doubted(measured: int, doubted: bool) -> None:
    assert bool(doubt("weights", 1000, measured)) is doubted
    assert doubt("weights", None, measured) == doubt("weights", 0, measured) == doubt("kv", 1000, None) == ""


def test_the_sentence_gives_both_figures_and_the_tolerance() -> None:
    assert doubt("kv", 1000, 1880) == (
        "The memory contradicts this: the KV cache takes 1,880 bytes, +88.0% against the 1,000 predicted for this "
        "choice (tolerance 2%)."
    )


@pytest.mark.parametrize(("weights", "status"), [(2**27, "verified"), (2**26, "partial")])
def test_weights_half_as_large_as_predicted_turn_the_row_of_the_dtype(weights: int, status: str) -> None:
    run = Run(created(arms="A"))
    predicted, *records = arm_records("A", 3)
    loaded = ArmEvent("A", 0, 0.0, Loaded(weights, 10, False))
    for record in (predicted, loaded, *records[:-1], ArmEvent("A", 0, 1.0, finished("x"))):
        run.append(record)
    row, _ = run.snapshot().ledgers["A"]
    assert row.status == status
    assert ("-50.0%" in row.reason) is (status == "partial")
