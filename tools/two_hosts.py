"""Ranks on two hosts, shown on one machine: `python -m tools.two_hosts` (as root, on Linux).

Two network namespaces joined by a virtual cable stand for the hosts: each has an address, a host name, a home and a
copy of the project of its own. The embedded model runs on two ranks, one a host. What must hold: the same text as one
process, greedy and sampled with the same seed; a rank that never comes, a rank that the other cannot reach, a rank or
a host that is killed, Ctrl-C on either, and a cable that is cut end the group on both hosts with the cause, and no
process is left. Prints one JSON document; exit code 1 where something did not hold. Names of cases as arguments: only
those.
"""

import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from backend.paths import ROOT

PORT = 29500
ARM = "dtype=float32,parallel=tensor-2"
WAIT_S = 180.0
ASLEEP = "time.sleep(3600)"
ELSEWHERE = 'os.environ["GLOO_SOCKET_IFNAME"] = "lo"'
"""Each then tells the other an address that leads nowhere."""

LIMIT_S = 30.0
"""Within which the death of a host must have ended the group."""


@dataclass(frozen=True, slots=True)
class Host:
    """A network namespace with an address, and a folder with what only this host has."""

    name: str
    address: str
    folder: Path

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """tokendyno on this host, standard error in a file."""
        own = {name: str(self.folder / name) for name in ("TOKENDYNO_CACHE", "XDG_DATA_HOME", "HOME")}
        code = self.folder / "code"
        inside = f'hostname {self.name} && exec "$@"'
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", inside, "sh",
             sys.executable, "-m", "backend", *arguments],
            cwd=code, env={**os.environ, **own, "PYTHONPATH": str(code)}, text=True,
            stdout=subprocess.DEVNULL, stderr=self.told.open("w"),
        )  # fmt: skip

    @property
    def told(self) -> Path:
        """What the latest command said."""
        return self.folder / "stderr"

    def pids(self) -> list[int]:
        """Every process of this host."""
        found = subprocess.run(["ip", "netns", "pids", self.name], check=True, capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]

    def rank(self, number: int) -> int | None:
        """The process of that rank, None while there is none here."""
        for pid in self.pids():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if psutil.Process(pid).environ().get("RANK") == str(number) and os.getpgid(pid) == pid:
                    return pid
        return None


@contextlib.contextmanager
def hosts(folder: Path) -> Iterator[tuple[Host, Host]]:
    """Two hosts and the cable between them; their processes end with them."""
    both = tuple(Host(f"td-{name}", f"10.77.0.{n}", folder / name) for n, name in ((1, "a"), (2, "b")))
    try:
        for host in both:
            for part in ("backend", "presets"):
                shutil.copytree(ROOT / part, host.folder / "code" / part, ignore=shutil.ignore_patterns("__pycache__"))
            ip("netns", "add", host.name)
        ip("link", "add", "cable", "netns", both[0].name, "type", "veth", "peer", "cable", "netns", both[1].name)
        for host in both:
            ip("-n", host.name, "addr", "add", f"{host.address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", host.name, "link", "set", device, "up")
        yield both[0], both[1]
    finally:
        for host in both:
            with contextlib.suppress(subprocess.CalledProcessError):
                for pid in host.pids():
                    os.kill(pid, signal.SIGKILL)
                ip("netns", "del", host.name)


def ip(*arguments: str) -> None:
    """The system's own tool for networks."""
    subprocess.run(["ip", *arguments], check=True)


def wait_for(condition: Callable[[], object], what: str, seconds: float = WAIT_S) -> float:
    """Seconds until it held."""
    begin_s = time.monotonic()
    while not condition():
        if time.monotonic() - begin_s > seconds:
            raise TimeoutError(what)
        time.sleep(0.05)
    return time.monotonic() - begin_s


def start_both(a: Host, b: Host, *options: str) -> "tuple[subprocess.Popen[str], subprocess.Popen[str]]":
    """A run on host a, and host b joins."""
    endpoint = f"{a.address}:{PORT}"
    run = a.start("run", "--arm", ARM, "--nnodes", "2", "--rdzv-endpoint", endpoint, "--no-history", *options)
    return run, b.start("join", "--rdzv-endpoint", endpoint)


def result(path: Path) -> dict[str, object]:
    """Arm A of a document, in short."""
    arm = json.loads(path.read_text())["arms"][0]
    row = next(row for row in arm["evidence"] if row["axis"] == "parallel")
    held = [one["weight_bytes"] for one in arm.get("ranks") or []]
    return {"text": arm["text"], "status": row["status"], "proof": row["proof"], "weight_bytes": held,
            "latency_median_s": statistics.median(arm["latency_s"][1:])}  # fmt: skip


def same_text(a: Host, b: Host, *options: str) -> dict[str, object]:
    """One process on host a, then two ranks on both."""
    one, two = a.folder / "one.json", a.folder / "two.json"
    options = ("--max-new-tokens", "64", *options)
    if a.start("run", "--arm", "dtype=float32", "--no-history", *options, "--json", str(one)).wait():
        raise RuntimeError(a.told.read_text())
    run, join = start_both(a, b, *options, "--json", str(two))
    codes = [run.wait(WAIT_S), join.wait(WAIT_S)]
    alone, shared = result(one), result(two)
    holds = codes == [0, 0] and alone["text"] == shared["text"] and shared["status"] == "verified"
    return {"holds": holds, "exit_codes": codes, "one": alone, "two": shared, "join": b.told.read_text().splitlines()}


def apart(a: Host, b: Host, where: Sequence[Host], code: str, says: str) -> dict[str, object]:
    """Host b joins, but the ranks on some hosts run `code` first, so that the two never meet."""
    first = [host.folder / "code" / "sitecustomize.py" for host in where]
    for path in first:
        path.write_text(f'import os, sys, time\nif "backend.worker.ranks" in sys.orig_argv: {code}\n')
    run, join = start_both(a, b)
    seconds = wait_for(lambda: not a.pids() and not b.pids(), "both hosts to be empty")
    for path in first:
        path.unlink()
    last = [host.told.read_text().splitlines()[-1] for host in (a, b)]
    codes = [run.wait(), join.wait()]
    return {"holds": 0 not in codes and says in last[0], "exit_codes": codes, "seconds_until_empty": round(seconds, 2),
            "last_lines": last}  # fmt: skip


def ended(a: Host, b: Host, end: Callable[[], object], says: str) -> dict[str, object]:
    """A run that is disturbed while it generates: how long the hosts take to be empty, and what they say last."""
    run, join = start_both(a, b, "--max-new-tokens", "3000")
    wait_for(lambda: "A: run" in a.told.read_text(), "tokens")
    end()
    seconds = wait_for(lambda: not a.pids() and not b.pids(), "both hosts to be empty", 2 * LIMIT_S)
    last = [host.told.read_text().splitlines()[-1] for host in (a, b)]
    holds = seconds < LIMIT_S and any(says in line for line in last)
    return {"holds": holds, "exit_codes": [run.wait(), join.wait()], "seconds_until_empty": round(seconds, 2),
            "last_lines": last}  # fmt: skip


def kill_rank(host: Host, number: int) -> None:
    pid = host.rank(number)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


def interrupt(host: Host) -> None:
    """Ctrl-C: to the command itself, which is the first process of its host."""
    os.kill(min(host.pids()), signal.SIGINT)


def kill_all(host: Host) -> None:
    """As a host that loses power, but for its kernel, which closes connections."""
    for pid in host.pids():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def main(names: Sequence[str]) -> int:
    """Show what is named, or all of it."""
    with tempfile.TemporaryDirectory() as folder, hosts(Path(folder)) as (a, b):
        cable = ("-n", b.name, "link", "set", "cable")
        cases: dict[str, Callable[[], dict[str, object]]] = {
            "same_text": lambda: same_text(a, b),
            "same_sampled": lambda: same_text(a, b, "--temperature", "0.9", "--seed", "7"),
            "never_comes": lambda: apart(a, b, [b], ASLEEP, "Rank 1 on machine 2 did not come"),
            "unreachable": lambda: apart(a, b, [a, b], ELSEWHERE, "name the network interface"),
            "rank_killed": lambda: ended(a, b, lambda: kill_rank(b, 1), "On td-b: Rank 1 was killed by SIGKILL"),
            "host_killed": lambda: ended(a, b, lambda: kill_all(b), "td-b closed the connection"),
            "first_killed": lambda: ended(a, b, lambda: kill_all(a), "The first machine closed the connection"),
            "join_interrupted": lambda: ended(a, b, lambda: interrupt(b), "td-b was stopped there with Ctrl-C"),
            "run_interrupted": lambda: ended(a, b, lambda: interrupt(a), "The first machine is done"),
            "cable_cut": lambda: ended(a, b, lambda: ip(*cable, "down"), "td-b has not answered for 10 s"),
        }  # the last one leaves the cable cut
        found = {name: case() for name, case in cases.items() if not names or name in names}
    print(json.dumps(found, indent=2))
    return 0 if all(one["holds"] for one in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
