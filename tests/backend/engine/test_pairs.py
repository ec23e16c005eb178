"""Pairs of runs until they decide, with real workers: how many, proofs after the last, texts that are read once."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tokendyno.backend.config import LEAST_PAIRS, MOST_PAIRS, ArmRequest, Request, Workload, workload_of
from tokendyno.backend.engine import conductor
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.exchange import Exchange
from tokendyno.backend.executors import open_bench
from tokendyno.backend.messages import Progress, Score
from tokendyno.backend.quality.texts import passages
from tokendyno.backend.runs.quality import gate_of
from tokendyno.backend.runs.records import ArmEvent, Record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.traffic import Traffic, TrafficRequest
from tokendyno.backend.views.card import card_of

pytestmark = pytest.mark.slow

OWN = passages("mine", "the fox went home to see the old bear and the queen " * 10)


def pairs(until_s: float, **b: str) -> Request:
    arms = [ArmRequest("A", {"dtype": "float32"}), ArmRequest("B", {"dtype": "float32"} | b)]
    work = Workload("Once upon a time", max_new_tokens=80, repeats=MOST_PAIRS, ignore_eos=True)
    return Request("pocket", arms, work, until_s=until_s, reading=OWN)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    bench = open_bench()
    bench.start()
    yield bench
    bench.close()


@pytest.fixture(scope="module")
def read(bench: Bench) -> Run:
    """Two arms in different number formats, with no time for more than the least, and four times what reading takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conductor, "READING_STEPS", 8)
        return bench.wait(bench.submit(pairs(1e-6, dtype="bfloat16")))


def test_there_are_two_pairs_however_short_the_time_is_and_both_arms_are_proved(read: Run) -> None:
    now = read.snapshot()
    assert now.status == "done" and len(now.pair_ratios) == LEAST_PAIRS
    for name in "AB":
        rows = {row.finding.axis: row.status for row in now.ledgers[name]}
        assert rows["dtype"] == rows["tokens"] == "verified", rows


def test_texts_are_read_after_the_pairs_and_only_once(bench: Bench, read: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    found = gate_of(read.snapshot(), bench.runs.reading)
    assert found is not None and found.state == "read" and found.own and found.run == read.id
    card = card_of(read.snapshot(), found)
    assert card is not None and any("your text" in tile.note for tile in card.tiles)
    monkeypatch.setattr(conductor, "ENOUGH_POSITIONS", found.positions)
    again = bench.wait(bench.submit(pairs(1e-6, dtype="bfloat16")))
    taken = gate_of(again.snapshot(), bench.runs.reading)
    assert taken is not None and taken.run == read.id and not again.arms["A"].scores


def test_pairs_of_many_requests_go_by_useful_tokens_and_both_arms_are_proved(bench: Bench) -> None:
    arms = [ArmRequest(name, {"dtype": "float32", "batching": "static"}) for name in "AB"]
    arms[1].choices["batch_order"] = "sorted"
    traffic = Traffic([TrafficRequest(0.0, 4, 3), TrafficRequest(0.0, 9, 6), TrafficRequest(0.0, 4, 2)], 2)
    work = workload_of(traffic, repeats=MOST_PAIRS, ignore_eos=True)
    run = bench.wait(bench.submit(Request("pocket", arms, work, traffic, until_s=1e-6))).snapshot()
    assert run.status == "done" and len(run.pair_ratios) == LEAST_PAIRS, run.message
    found, (a, b) = run.comparison, run.batch_summaries.values()
    assert found is not None and a.useful_tokens_s and b.useful_tokens_s
    assert found.ratio == pytest.approx(b.useful_tokens_s / a.useful_tokens_s)
    for name in "AB":
        rows = {row.finding.axis: row.status for row in run.ledgers[name]}
        assert rows["batching"] == rows["tokens"] == "verified", rows


def test_arms_that_write_the_same_in_one_format_are_not_read(bench: Bench) -> None:
    run = bench.wait(bench.submit(pairs(1e-6, cache="static")))
    gate = gate_of(run.snapshot(), bench.runs.reading)
    assert gate is not None and gate.state == "settled" and "quality" not in run.arms["A"].phases


@pytest.mark.full
def test_stop_while_texts_are_read_keeps_what_was_measured(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    append = bench.runs.append

    def stop_at_reading(run_id: str, record: Record) -> None:
        append(run_id, record)
        if isinstance(record, ArmEvent) and isinstance(record.event, Progress) and record.event.phase == "quality":
            bench.cancel(run_id)

    monkeypatch.setattr(bench.runs, "append", stop_at_reading)
    run = bench.wait(bench.submit(pairs(30, dtype="float16")))
    card = card_of(run.snapshot(), gate_of(run.snapshot(), bench.runs.reading))
    assert run.status == "cancelled" and card is not None and len(card.pairs) >= LEAST_PAIRS
    assert all(run.snapshot().ledgers[name] for name in "AB"), "the proofs were there"


def test_reading_that_runs_out_of_time_is_no_failure_and_says_why(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Exchange.ask

    def hurried(self: Exchange, arm: str, command: Any, phase: Any, *until_s: float) -> Any:
        return ask(self, arm, command, phase, *([time.monotonic()] if isinstance(command, Score) else until_s))

    monkeypatch.setattr(Exchange, "ask", hurried)
    run = bench.wait(bench.submit(pairs(1e-6, dtype="float16")))
    card = card_of(run.snapshot(), gate_of(run.snapshot(), bench.runs.reading))
    assert run.status == "done" and run.arms["A"].phases["quality"].state == "end", run.status
    assert card is not None and "was not read: it takes longer than the pairs did;" in card.reason, card
