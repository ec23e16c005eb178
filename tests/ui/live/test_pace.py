"""How often viewers pull: it follows the load, within limits."""

import pytest

from tokendyno.ui.live.pace import FASTEST_MS, SLOWEST_MS, adapted


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
