"""Two ranks of two machines that share nothing but a connection: here one machine plays both, with two homes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from backend import hardware
from backend.engine.bench import Bench
from backend.executors import open_bench
from backend.executors.hosts.endpoint import Endpoint
from backend.executors.hosts.lobby import Lobby
from backend.executors.hosts.model import digest_of
from backend.models import resolve
from tests.support.ports import free_port
from tests.support.processes import gone, wait_for
from tests.support.worker import request

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ranks")]

PROMPT = "Once upon a time there was"
SPLIT = {"dtype": "float32", "parallel": "tensor-2"}


@pytest.fixture
def lobby() -> Iterator[Lobby]:
    found = Lobby(Endpoint("127.0.0.1", free_port()), 2, 1, "pocket", digest_of(resolve("pocket")),
                  hardware.detect().device, print)  # fmt: skip
    yield found
    found.close()


def test_the_text_is_that_of_one_process_and_a_rank_that_dies_elsewhere_ends_the_group(
    lobby: Lobby, tmp_path: Path, warm_bench: Bench
) -> None:
    asked = request({"dtype": "float32"}, prompt=PROMPT, max_new_tokens=16)
    one = warm_bench.wait(warm_bench.submit(asked), 120).arms["A"]
    join = subprocess.Popen(
        [sys.executable, "-m", "backend", "join", "--rdzv-endpoint", str(lobby.endpoint)],
        env={**os.environ, "TOKENDYNO_CACHE": str(tmp_path)}, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    lobby.gather()
    bench = open_bench(lobby=lobby)
    bench.start()
    try:
        run = bench.wait(bench.submit(request(SPLIT, prompt=PROMPT, max_new_tokens=16)), 240)
        assert run.status == "done", run.message
        assert run.arms["A"].ids == one.ids and run.arms["A"].text == one.text
        (row,) = [row for row in run.ledger("A") if row.finding.axis == "parallel"]
        assert row.status == "verified" and len(run.arms["A"].finished.ranks) == 2  # type: ignore[union-attr]
        again = bench.submit(request(SPLIT, max_new_tokens=3000))
        wait_for(lambda: len(bench.runs._runs[again].arms["A"].ids) > 3, 120, "tokens")
        here, there = bench.pool.pids, psutil.Process(join.pid).children(recursive=True)
        second = next(one for one in there if one.environ().get("RANK") == "1" and os.getpgid(one.pid) == one.pid)
        os.kill(second.pid, signal.SIGKILL)
        begin_s = time.monotonic()
        failed = bench.wait(again, 30)
        assert time.monotonic() - begin_s < 10
        assert failed.status == "failed" and "Rank 1 was killed by SIGKILL" in failed.message
        wait_for(lambda: all(map(gone, [*here, *(one.pid for one in there)])), 5, "both groups to be gone")
    finally:
        bench.close()
        lobby.close()
        told = join.communicate(timeout=20)[1]
    assert join.returncode == 0 and "serves rank 1 of 2 of pocket" in told and "killed by SIGKILL" in told, told
