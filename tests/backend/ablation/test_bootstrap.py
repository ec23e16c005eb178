"""Bootstrap intervals: they hold what is there, and widen with the scatter."""

from tokendyno.backend.ablation.bootstrap import mean_interval, memory_interval


def test_memory_and_quality() -> None:
    assert memory_interval([(100, 130), (100, 130), (100, 130)]) == (30, 30)
    found = memory_interval([(100, 130), (100, 132), (120, 130)])
    assert found is not None and found[0] < 30 <= found[1] == 32
    spread = mean_interval([0.01] * 48 + [0.05] * 48)
    assert spread is not None and 0.01 < spread[0] < 0.03 < spread[1] < 0.05


def test_one_round_and_one_block_give_none() -> None:
    assert memory_interval([(1, 2)]) is None and mean_interval([0.1] * 8) is None
