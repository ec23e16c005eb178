"""Bootstrap intervals: they hold what is there, widen with the scatter, and are the same for the same data."""

import random

from backend.ablation.bootstrap import latency_interval, mean_interval, memory_interval


def rounds(more_s: float, scatter: float, count: int = 3) -> list[tuple[list[float], list[float]]]:
    rng = random.Random(1)
    drift = [0.1 * rng.random() for _ in range(count)]

    def steps(mean_s: float) -> list[float]:
        return [mean_s + rng.gauss(0, scatter) for _ in range(60)]

    return [(steps(1 + d), steps(1 + more_s + d)) for d in drift]


def test_a_difference_is_found_although_both_arms_drift() -> None:
    found = latency_interval(rounds(-0.05, 0.01))
    assert found is not None and -0.07 < found[0] < -0.05 < found[1] < -0.03
    assert found == latency_interval(rounds(-0.05, 0.01))


def test_scatter_widens_the_interval_until_it_says_nothing() -> None:
    calm, wild = latency_interval(rounds(0.02, 0.005)), latency_interval(rounds(0.02, 0.3))
    assert calm is not None and wild is not None
    assert calm[0] > 0 and wild[0] < 0 < wild[1] and wild[1] - wild[0] > 5 * (calm[1] - calm[0])


def test_rounds_that_disagree_widen_it_too() -> None:
    steady = [([1.0] * 20, [0.9] * 20)] * 3
    one_off = [([1.0] * 20, [0.9] * 20)] * 2 + [([1.0] * 20, [1.3] * 20)]
    assert latency_interval(steady) == (-0.09999999999999998, -0.09999999999999998)
    found = latency_interval(one_off)
    assert found is not None and found[0] < 0 < found[1]


def test_memory_and_quality() -> None:
    assert memory_interval([(100, 130), (100, 130), (100, 130)]) == (30, 30)
    found = memory_interval([(100, 130), (100, 132), (120, 130)])
    assert found is not None and found[0] < 30 <= found[1] == 32
    spread = mean_interval([0.01] * 48 + [0.05] * 48)
    assert spread is not None and 0.01 < spread[0] < 0.03 < spread[1] < 0.05


def test_one_round_and_one_block_give_none() -> None:
    assert latency_interval(rounds(0.1, 0.1)[:1]) is None
    assert memory_interval([(1, 2)]) is None and mean_interval([0.1] * 8) is None
