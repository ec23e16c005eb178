"""Why a group of ranks ended, in words."""

import signal
from pathlib import Path

import pytest

from tokendyno.backend.worker.ranks.launch import cause


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (-signal.SIGKILL, "Rank 1 was killed by SIGKILL (often because the system ran out of memory)."),
        (-signal.SIGSEGV, "Rank 1 was killed by SIGSEGV."),
        (-200, "Rank 1 was killed by signal 200."),
        (3, "Rank 1 exited with code 3."),
    ],
)
def test_an_exit_code_becomes_a_sentence(code: int, says: str, tmp_path: Path) -> None:
    assert cause(1, code, tmp_path) == says


def test_what_the_rank_wrote_itself_comes_first(tmp_path: Path) -> None:
    (tmp_path / "failure-1").write_text("Out of memory.")
    assert cause(1, 1, tmp_path) == "Rank 1 failed: Out of memory."
    assert cause(0, 1, tmp_path) == "Rank 0 exited with code 1."
