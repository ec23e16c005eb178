"""Answers that one rank gives and another waits for, in one mapped file."""

import threading
from pathlib import Path

import pytest

from tokendyno.backend.worker.ranks.answers import PLACES, Answers, create


def test_the_second_rank_hears_the_first_one_and_waits_for_it(tmp_path: Path) -> None:
    create(tmp_path / "answers")
    first, second = Answers(tmp_path / "answers", 0), Answers(tmp_path / "answers", 1)
    said, heard = [n % 3 == 0 for n in range(3 * PLACES)], list[bool]()
    asks = threading.Thread(target=lambda: heard.extend(second.agree(False) for _ in said), daemon=True)
    asks.start()
    for n, answer in enumerate(said):
        while n - len(heard) > PLACES // 2:  # as collectives hold the first rank back
            pass
        assert first.agree(answer) == answer
    asks.join(30)
    assert heard == said


def test_a_rank_that_fell_behind_is_told_and_does_not_take_another_answer(tmp_path: Path) -> None:
    create(tmp_path / "answers")
    first, second = Answers(tmp_path / "answers", 0), Answers(tmp_path / "answers", 1)
    for _ in range(PLACES + 1):
        first.agree(True)
    with pytest.raises(RuntimeError, match="rank 1 fell"):
        second.agree(False)
