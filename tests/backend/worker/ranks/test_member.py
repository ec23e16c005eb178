"""What is said of ranks that were started and never came."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tokendyno.backend.worker.ranks.launch import Hello, cause
from tokendyno.backend.worker.ranks.member import absent, unfit, unreached

HERE = Hello({"tokendyno": "0.1.0", "torch": "2.13.0+cu130"}, "cpu", "1a2b")


@pytest.mark.parametrize(
    ("missing", "hosts", "size", "who", "where"),
    [
        ([1], 1, 2, "Rank 1 did", "busy here"),
        ([1, 3], 1, 4, "Ranks 1, 3 did", "busy here"),
        ([1], 2, 2, "Rank 1 on machine 2 did", "busy on machine 2"),
        ([2, 3], 2, 4, "Ranks 2, 3 on machine 2 did", "busy on machine 2"),
        ([1, 2, 7], 4, 8, "Ranks 1, 2, 7 on machines 1, 2, 4 did", "busy on machines 1, 2, 4"),
    ],
)
def test_they_are_named_with_their_machines(missing: list[int], hosts: int, size: int, who: str, where: str) -> None:
    text = absent(missing, hosts, size)
    assert text.startswith(f"{who} not come within 75 s") and where in text and text.endswith("or take fewer ranks.")


def test_it_is_not_said_of_the_rank_that_waited(tmp_path: Path) -> None:
    (tmp_path / "failure-0").write_text(absent([1], 1, 2))
    assert cause(0, 3, tmp_path).startswith("Rank 1 did not come")


@pytest.mark.parametrize(("hosts", "fix"), [(1, "Close what else"), (2, "Let the machines reach each other")])
def test_ranks_that_do_not_connect_are_told_why_and_what_to_do(hosts: int, fix: str, tmp_path: Path) -> None:
    (tmp_path / "failure-1").write_text(unreached(hosts, "Gloo failed with refused"))
    assert cause(1, 3, tmp_path).startswith(
        f"The ranks have come, but cannot reach each other (Gloo failed with refused). {fix}"
    )


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({}, ""),
        ({"versions": HERE.versions | {"torch": "2.13.0+cpu"}}, ""),
        ({"versions": HERE.versions | {"torch": "2.12.0+cu130"}}, "It has torch 2.12.0, the first machine 2.13.0."),
        ({"device": "cuda"}, "It runs on cuda, the first machine on cpu."),
        ({"model": "", "problem": "It has 1 GPU for 2 ranks."}, "It has 1 GPU for 2 ranks."),
        ({"model": "3c4d"}, "It has another model by that name"),
    ],
)
def test_a_machine_that_is_unlike_the_first_is_told_what_to_change(other: dict[str, Any], says: str) -> None:
    reason = unfit(HERE, msgspec.structs.replace(HERE, **other))
    assert reason.startswith(says) and bool(reason) == bool(says)
