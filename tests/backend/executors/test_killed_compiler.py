"""A worker that is stopped while g++ writes a library: the next one compiles as if nothing had been."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sabotage.small_models import llama
from tests.support.compiling import hesitant_compiler
from tests.support.processes import gone, pid_of, wait_for
from tests.support.worker import request
from tokendyno.backend import paths
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.worker.compiler.own_cache import is_torn

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("how", ["SIGKILL", "cancel"])
def test_a_worker_stopped_while_it_compiles_leaves_nothing_that_a_later_one_trips_over(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_bench: Callable[..., Bench]
) -> None:
    monkeypatch.setenv("TOKENDYNO_CACHE", str(tmp_path / "cache"))
    for name, value in hesitant_compiler(tmp_path).items():
        monkeypatch.setenv(name, value)
    bench = make_bench()
    arm = request({"compile": "default", "cache": "static"}, model=llama())
    first = bench.submit(arm)
    wait_for((tmp_path / "hanging").exists, 600, "the linker")
    pid = pid_of(bench, "A")
    torn = [path for path in paths.scratch_folder(pid).rglob("*.so") if path.stat().st_size == 0]
    assert len(torn) == 1, "stopped at the very moment"
    if how == "cancel":
        assert bench.cancel(first)
    else:
        os.kill(pid, signal.SIGKILL)
    assert bench.wait(first, 60).status == ("cancelled" if how == "cancel" else "failed")
    wait_for(lambda: gone(pid), 30, "the worker's end")
    wait_for(lambda: not paths.scratch_folder(pid).exists(), 30, "its folder's removal")

    run = bench.wait(bench.submit(arm), 900)
    assert run.status == "done", run.message
    rows = {row.finding.axis: row for row in run.ledger("A")}
    assert rows["compile"].status == rows["compile_cache"].status == "verified", rows
    shared = [path for path in (tmp_path / "cache" / "compiled").rglob("*") if path.is_file()]
    assert shared and not any(map(is_torn, shared))
