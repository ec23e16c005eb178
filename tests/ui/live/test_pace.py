"""How often viewers pull: it follows the load, within limits."""

import pytest

from tokendyno.ui.live.pace import FASTEST_MS, SHARE, SLOWEST_MS, WAIT_S, Pace, adapted


@pytest.mark.parametrize(
    ("every_ms", "load", "next_ms"),
    [
        (FASTEST_MS, 0.0, FASTEST_MS),
        (80, 1.5, 120),
        (80, 9.0, 160),
        (SLOWEST_MS, 9.0, SLOWEST_MS),
        (SLOWEST_MS, 0.0, 400),
    ],
)
def test_the_period_follows_the_load_by_at_most_a_factor_of_two(every_ms: float, load: float, next_ms: float) -> None:
    assert adapted(every_ms, load) == pytest.approx(next_ms)


def test_a_process_that_computes_or_waits_for_a_core_slows_its_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0, 10.0]
    monkeypatch.setattr("tokendyno.ui.live.pace.time.monotonic", lambda: now[0])
    monkeypatch.setattr("tokendyno.ui.live.pace.time.process_time", lambda: now[1])
    pace = Pace()
    now[:] = [100.4, 10.4]
    assert pace.every_ms() == FASTEST_MS, "too soon to tell"
    now[:] = [101.0, 10.0 + 4 * SHARE]
    assert pace.every_ms() == 2 * FASTEST_MS
    now[0] = 102.0
    assert pace.every_ms() == FASTEST_MS
    for seconds in (0.0, 4 * WAIT_S):
        pace.took(seconds)
    now[0] = 103.0
    assert pace.every_ms() == 2 * FASTEST_MS, "it waits for cores that others use"
    now[0] = 104.0
    assert pace.every_ms() == FASTEST_MS
    pace.took(4 * WAIT_S)
    pace.held(3.5 * WAIT_S)
    now[0] = 105.0
    assert pace.every_ms() == FASTEST_MS, "an answer that waited for news was not slow"
