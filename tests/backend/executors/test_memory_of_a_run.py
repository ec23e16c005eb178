"""The peak memory of a run is its own: the same arm has the same peak first, second, and after another."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.worker import request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.runs.run import Run

TOLERANCE = 0.03
PROBE = ({"dtype": "bfloat16"}, 16)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = open_bench()
    bench.start(prewarm=1)
    yield bench
    bench.close()


def done(bench: Bench, choices: dict[str, str], **work: Any) -> Run:
    run = bench.wait(bench.submit(request(choices, **work)), 240)
    assert run.status == "done", run.message
    return run


def peak_of(run: Run) -> int:
    peak = run.snapshot().summaries["A"].peak_memory_bytes
    assert peak
    return peak


def probe(bench: Bench) -> Run:
    return done(bench, PROBE[0], max_new_tokens=PROBE[1])


@pytest.mark.full
def test_an_arm_has_the_same_peak_when_it_is_run_again(bench: Bench) -> None:
    """What only the proof computes, such as the pass over the whole text, is none of the next run's memory."""
    peaks = [peak_of(done(bench, PROBE[0], max_new_tokens=40)) for _ in range(2)]
    assert peaks[1] == pytest.approx(peaks[0], rel=TOLERANCE)


@pytest.mark.full
def test_an_arm_has_the_same_peak_first_and_after_a_longer_run(bench: Bench) -> None:
    first = peak_of(probe(bench))
    longer = peak_of(done(bench, PROBE[0], max_new_tokens=64))
    assert longer > 1.1 * first, "the longer run leaves nothing that could be seen"
    again = probe(bench)
    assert peak_of(again) == pytest.approx(first, rel=TOLERANCE)
    assert "earlier runs left" in again.arms["A"].phases["start"].note
