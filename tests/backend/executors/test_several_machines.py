"""A model on two machines by torchrun: here one machine plays both, and what is typed on the other one is the very line
that `tokendyno run --nnodes` prints."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.support.command_line import cli
from tests.support.ports import free_port
from tests.support.processes import gone, wait_for

pytestmark = [pytest.mark.full, pytest.mark.xdist_group("ranks")]

PROMPT = ("--prompt", "Once upon a time there was", "--no-history")


class Two:
    """A run that waits for another machine."""

    def __init__(self, folder: Path, *options: str, **variables: str) -> None:
        self._folder = folder
        self.endpoint = f"127.0.0.1:{free_port()}"
        arm = ("--arm", "dtype=float32,parallel=tensor-2", "--nnodes", "2", "--rdzv-endpoint", self.endpoint)
        self.first = self._start(
            "first", [sys.executable, "-m", "tokendyno", "run", *arm, *PROMPT, *options], variables
        )

    def join(self, **variables: str) -> None:
        """Type the line elsewhere."""
        wait_for(lambda: "torchrun" in self.said("first"), 60, "the line")
        (line,) = [line for line in self.said("first").splitlines() if "torchrun" in line]
        torchrun, *arguments = shlex.split(line)
        assert torchrun == "torchrun"
        home = {"TOKENDYNO_CACHE": str(self._folder / "home")}
        self.other = self._start("other", [sys.executable, "-m", "torch.distributed.run", *arguments], home | variables)

    def said(self, which: str) -> str:
        return (self._folder / which).read_text()

    def _start(self, name: str, command: list[str], variables: dict[str, str]) -> "subprocess.Popen[bytes]":
        with (self._folder / name).open("wb") as said:
            cwd = self._folder if name == "other" else None  # a checkout's own metadata would come before PYTHONPATH
            env = {**os.environ, **variables}
            return subprocess.Popen(command, cwd=cwd, env=env, stdout=subprocess.DEVNULL, stderr=said)


@contextmanager
def two(folder: Path, *options: str, **variables: str) -> Iterator[Two]:
    """Whatever is still there in the end is killed."""
    found = Two(folder, *options, **variables)
    try:
        yield found
    finally:
        for process in (found.first, getattr(found, "other", found.first)):
            process.kill()
            process.wait()


def test_the_text_is_that_of_one_process_and_both_commands_end_well(tmp_path: Path) -> None:
    options = ("--max-new-tokens", "16", "--json")
    with two(tmp_path, *options, str(tmp_path / "two.json")) as machines:
        machines.join()
        assert cli("run", "--arm", "dtype=float32", *PROMPT, *options, str(tmp_path / "one.json")).returncode == 0
        assert machines.first.wait(240) == 0, machines.said("first")
        assert machines.other.wait(30) == 0, machines.said("other")
    one, both = (json.loads((tmp_path / name).read_text())["arms"][0] for name in ("one.json", "two.json"))
    assert both["text"] == one["text"] and len(both["ranks"]) == 2
    (row,) = [row for row in both["evidence"] if row["axis"] == "parallel"]
    assert row["status"] == "verified", row


@pytest.mark.full
def test_a_rank_that_dies_elsewhere_is_named_and_leaves_no_process(tmp_path: Path) -> None:
    with two(tmp_path, "--max-new-tokens", "3000") as machines:
        machines.join()
        wait_for(lambda: "A: run" in machines.said("first"), 240, "tokens")
        ranks = [*psutil.Process(machines.other.pid).children(), *psutil.Process(machines.first.pid).children(True)]
        (second,) = [one for one in ranks if one.environ().get("GROUP_RANK") == "1" and os.getpgid(one.pid) == one.pid]
        os.kill(second.pid, signal.SIGKILL)
        assert machines.first.wait(60) == 3, machines.said("first")
        assert "Rank 1 on machine 2 has not answered for 10 s." in machines.said("first")
        assert machines.other.wait(30) != 0
        wait_for(lambda: all(gone(one.pid) for one in ranks), 10, "all ranks to be gone")


@pytest.mark.full
def test_where_the_first_machine_dies_the_others_say_so_and_end(tmp_path: Path) -> None:
    with two(tmp_path, "--max-new-tokens", "3000") as machines:
        machines.join()
        wait_for(lambda: "A: run" in machines.said("first"), 240, "tokens")
        machines.first.kill()
        assert machines.other.wait(60) != 0
        assert "The ranks on the first machine have ended, or cannot be reached" in machines.said("other")


@pytest.mark.full
def test_a_machine_with_another_version_is_refused_by_name_on_both(tmp_path: Path) -> None:
    (tmp_path / "site" / "tokendyno-0.0.1.dist-info").mkdir(parents=True)
    (tmp_path / "site" / "tokendyno-0.0.1.dist-info" / "METADATA").write_text("Name: tokendyno\nVersion: 0.0.1\n")
    with two(tmp_path) as machines:
        machines.join(PYTHONPATH=str(tmp_path / "site"))
        assert machines.first.wait(120) == 3, machines.said("first")
        assert machines.other.wait(60) != 0
        for which in ("first", "other"):
            told = machines.said(which)
            assert "Rank 1 on machine 2 cannot take part. It has tokendyno 0.0.1, the first machine" in told, told


@pytest.mark.full
def test_machines_that_do_not_come_are_named_with_what_to_do(tmp_path: Path) -> None:
    with two(tmp_path, TOKENDYNO_DEADLINE_S="2") as machines:
        assert machines.first.wait(120) == 3
        told = machines.said("first")
        assert f"Ranks on machine 2 did not come to {machines.endpoint} within 2 s" in told
        assert "Type the torchrun line there" in told
