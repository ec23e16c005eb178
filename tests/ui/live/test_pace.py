"""How often viewers pull: it follows the load, within limits."""

import pytest

from ui.live.pace import FASTEST_MS, SHARE, SLOWEST_MS, Pace, adapted


@pytest.mark.parametrize(
    ("every_ms", "share", "next_ms"),
    [
        (FASTEST_MS, 0.0, FASTEST_MS),
        (80, SHARE, 80),
        (80, 1.5 * SHARE, 120),
        (80, 9.0, 160),
        (900, 9.0, SLOWEST_MS),
        (SLOWEST_MS, 9.0, SLOWEST_MS),
        (SLOWEST_MS, 0.0, 400),
        (100, 0.0, FASTEST_MS),
    ],
)
def test_the_period_follows_the_load_by_at_most_a_factor_of_two(every_ms: float, share: float, next_ms: float) -> None:
    assert adapted(every_ms, share) == pytest.approx(next_ms)


def test_a_viewer_is_never_slower_than_once_a_second_and_comes_back_to_full_speed() -> None:
    every_ms = float(FASTEST_MS)
    for _ in range(20):
        every_ms = adapted(every_ms, 4.0)
    assert every_ms == SLOWEST_MS < 1000
    for _ in range(20):
        every_ms = adapted(every_ms, 0.01)
    assert every_ms == FASTEST_MS


def test_a_process_that_computes_slows_its_viewers(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0, 10.0]
    monkeypatch.setattr("ui.live.pace.time.monotonic", lambda: now[0])
    monkeypatch.setattr("ui.live.pace.time.process_time", lambda: now[1])
    pace = Pace()
    now[:] = [100.4, 10.4]
    assert pace.every_ms() == FASTEST_MS, "too soon to tell"
    now[:] = [101.0, 11.0]
    assert pace.every_ms() == 2 * FASTEST_MS
    now[:] = [102.0, 11.0]
    assert pace.every_ms() == FASTEST_MS
