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
from tokendyno.backend import hardware
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.far_rank import hello_of, share_of
from tokendyno.backend.executors.several_machines import Endpoint, interface_to, parse_endpoint
from tokendyno.backend.models import resolve

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
        wait_for(lambda: all(gone(rank.pid) for rank in ranks), 10, "all ranks to be gone")


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


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [("10.0.0.1:29500", "10.0.0.1", 29500), (" node-a:1 ", "node-a", 1), ("[fd00::1]:65535", "fd00::1", 65535)],
)
def test_host_and_port_are_read_and_written_alike(text: str, host: str, port: int) -> None:
    assert parse_endpoint(text) == Endpoint(host, port)
    assert str(parse_endpoint(text)) == text.strip()


@pytest.mark.parametrize("text", ["", "10.0.0.1", ":29500", "node:", "node:0", "node:65536", "node:http"])
def test_what_is_no_endpoint_is_told_how_one_looks(text: str) -> None:
    with pytest.raises(InputError, match=r"192\.168\.1\.10:29500"):
        parse_endpoint(text)


def test_each_address_of_this_machine_is_reached_through_the_interface_that_has_it() -> None:
    """What leaves for an own address leaves from it."""
    for name, addresses in psutil.net_if_addrs().items():
        for address in addresses:
            if address.family.name == "AF_INET":
                assert interface_to(Endpoint(address.address, 29500)) == name
    assert interface_to(Endpoint("localhost", 29500)) == interface_to(Endpoint("127.0.0.2", 29500)) != ""
    assert interface_to(Endpoint("no-such-host.invalid", 29500)) == ""


def test_another_folder_with_the_same_files_is_the_same_model(tmp_path: Path) -> None:
    own = resolve("pocket")
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in Path(own.source.path).iterdir():
        if file.is_file():
            (copy / file.name).write_bytes(file.read_bytes())
    there = hello_of(resolve(str(copy)))
    again = copy.rename(tmp_path / "again")
    assert hello_of(resolve(str(again))) == there
    (again / "config.json").write_text((again / "config.json").read_text() + " ")
    assert hello_of(resolve(str(again))) != there


@pytest.mark.parametrize(("model", "ranks", "problem"), [("nope", 1, "nope"), ("pocket", 4096, " for 4096 ranks.")])
def test_what_a_machine_lacks_is_told_and_stops_nothing_yet(
    model: str, ranks: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("LOCAL_WORLD_SIZE", ranks), ("WORLD_SIZE", 2 * ranks), ("GROUP_RANK", 1)):
        monkeypatch.setenv(name, str(value))
    share = share_of(model, None)
    assert (share.ranks, share.hosts, share.host) == (ranks, 2, 1)
    assert share.hello is not None and problem in share.hello.problem
    assert share.hello.device == hardware.detect().device


def test_a_machine_that_lacks_nothing_knows_where_its_own_copy_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("LOCAL_WORLD_SIZE", "1"), ("WORLD_SIZE", "2"), ("GROUP_RANK", "1")):
        monkeypatch.setenv(name, value)
    share = share_of("pocket", None)
    assert share.hello == hello_of(resolve("pocket")) and share.model_path == resolve("pocket").source.path
