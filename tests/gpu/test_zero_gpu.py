"""ZeroGPU's executor on a real GPU: in forks that the real package `spaces` schedules, and as on a GPU of one's own,
where `spaces` calls the function in the app's process."""

import json
import subprocess
import sys

import pytest

from tests.support.zero_gpu import tokens_of_processes
from tokendyno.backend.paths import ROOT

pytestmark = pytest.mark.gpu
PROVED = {"verified", "off", "not_applicable"}


@pytest.mark.parametrize("where", ["cuda", "ordinary"])
def test_both_arms_run_on_the_gpu_with_the_tokens_of_a_worker_process(where: str) -> None:
    pytest.importorskip("spaces", reason="pip install --no-deps spaces")
    command = [sys.executable, "-m", "tests.support.zero_gpu", where]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout.splitlines()[-1])
    assert (seen["status"], seen["device"]) == ("done", "cuda"), seen["message"]
    assert set(seen["rows"]) <= PROVED
    assert seen["stopped"][0] == "cancelled" and 0 < seen["stopped"][1] < 3000
    if where == "cuda":
        assert seen["own"] not in seen["pids"] and len(set(seen["pids"])) == 4
        assert seen["fails"] == ["false", "false", "false", "true"]
    assert seen["ids"] == tokens_of_processes()
