"""Bytes that arrive: counted, with the rate of the last seconds."""

import pytest

from tokendyno.backend.worker.load.download import WINDOW_S, Arrivals


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_the_rate_is_that_of_the_last_seconds_and_falls_to_nothing_when_it_stalls(clock: Clock) -> None:
    arrivals = Arrivals(10_000, clock)
    assert arrivals.amount().bytes_per_s is None  # too early to tell
    for _ in range(20):  # 2 s at 1,000 bytes/s
        clock.now_s += 0.1
        arrivals.add(100)
    now = arrivals.amount()
    assert (now.done_bytes, now.total_bytes) == (2_000, 10_000)
    assert now.bytes_per_s == pytest.approx(1_000)
    clock.now_s += WINDOW_S + 1
    assert arrivals.amount().bytes_per_s == 0
