"""A sweep on a Ray cluster of two nodes, one of which is killed in the middle: `python -m tools.ray_nodes`.

Both nodes are on this machine, with one CPU each. What must hold: every trial is in the journal once; what the dead
node had in work runs on the other one; every finished run is in the history; no process of a trial is left. Needs the
extra `ray`. Prints one JSON document; exit code 1 where something did not hold.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from backend.paths import ROOT
from backend.runs.log import RunLog
from backend.runs.store import Store

SIZES = (1, 2, 4)
ROUNDS = 2
WAIT_S = 600.0


def wait_for(condition: Callable[[], Any], what: str) -> Any:
    """What it gave, once that is something."""
    until_s = time.monotonic() + WAIT_S
    while not (found := condition()):
        if time.monotonic() > until_s:
            raise TimeoutError(what)
        time.sleep(0.2)
    return found


def at_work(node: Any) -> list[psutil.Process]:
    """Processes of trials on a node."""
    found = []
    for one in psutil.Process(node.all_processes["raylet"][0].process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # one that has ended meanwhile, a zombie included
            if "backend.executors.errand_process" in one.cmdline():
                found.append(one)
    return found


def trials(journal: Path) -> list[tuple[str, int]]:
    """What is in the journal: arm and round of each line."""
    lines = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    return [(line["arm"], line["round"]) for line in lines if line["line"] == "trial"]


def main() -> int:
    """Begin, kill, wait, count."""
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = str(ROOT)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        with tempfile.TemporaryDirectory() as folder:
            found = shown(cluster, nodes[1], Path(folder))
    finally:
        cluster.shutdown()
    print(json.dumps(found, indent=2))
    return 0 if found["holds"] else 1


def shown(cluster: Any, node: Any, folder: Path) -> dict[str, object]:
    """A sweep during which that node is killed, as soon as a trial is finished and the node has one in work."""
    journal, history, said = folder / "journal.jsonl", folder / "history.sqlite", folder / "said"
    over = f"batch_size={','.join(map(str, SIZES))}"
    begin_s = time.monotonic()
    with said.open("w") as errors:
        sweep = subprocess.Popen(
            [sys.executable, "-m", "backend", "sweep", "--over", over, "--rounds", str(ROUNDS),
             "--max-new-tokens", "16", "--history", str(history), "--journal", str(journal), "--ray", cluster.address],
            stdout=subprocess.DEVNULL, stderr=errors,
        )  # fmt: skip
        wait_for(lambda: trials(journal), "a finished trial")
        lost = wait_for(lambda: at_work(node), "a trial on the node")
        before = trials(journal)
        cluster.remove_node(node, allow_graceful=False)
        code = sweep.wait(WAIT_S)
    seconds = time.monotonic() - begin_s
    store = Store(history)
    runs = RunLog(store)
    ends = [run.status for (run_id,) in store.query("SELECT id FROM runs", ()) if (run := runs.get(run_id)) is not None]
    store.close()
    every = {(f"batch_size={size}", number) for size in SIZES for number in range(ROUNDS)}
    kept, notes = trials(journal), [line for line in said.read_text().splitlines() if "was lost" in line]
    holds = (
        code == 0 and sorted(kept) == sorted(every) and kept[: len(before)] == before and len(notes) >= 1
        and ends == ["done"] * len(every) and not any(one.is_running() for one in lost)
    )  # fmt: skip
    return {"holds": holds, "exit_code": code, "seconds": round(seconds, 1), "finished_before_the_kill": len(before),
            "trials": len(kept), "runs_in_history": ends, "said": said.read_text().splitlines()}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
