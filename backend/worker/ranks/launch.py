"""Entry of the launcher: `python -m backend.worker.ranks.launch PARENT_PID RANKS`.

torch's elastic launcher (torchrun is its command line) starts the ranks, watches them, and ends all of them when one
dies. Its own pipes are theirs. Why a group ended is the last line on standard error.
"""

import logging
import os
import signal
import sys
from pathlib import Path

from backend import paths
from backend.worker.lifetime import die_with_parent, guard_group

END_WAIT_S = 1
"""Seconds that the other ranks get to end after one has died, before they are killed. torch before 2.13 does not know
the setting; they end at once, since they leave SIGTERM as it is."""


def main() -> None:
    """Tie this process to its parent, then launch and wait."""
    die_with_parent(int(sys.argv[1]))
    guard_group()
    ranks = int(sys.argv[2])
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from backend.worker.ranks import answers
    from backend.worker.ranks.member import ANSWERS

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # its report repeats our last line
    os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = str(END_WAIT_S)
    folder = paths.make_scratch()
    answers.create(folder / ANSWERS)
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=ranks, run_id=f"tokendyno-{os.getpid()}", rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=0, monitor_interval=0.1, local_addr="localhost",
    )  # fmt: skip
    launch = elastic_launch(config, sys.executable)
    try:
        launch("-m", "backend.worker.ranks", str(os.getpid()), str(folder))
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        sys.stderr.write(f"{cause(rank, failure.exitcode, folder)}\n")
        sys.stderr.flush()
        os._exit(1)
    os._exit(0)


def cause(rank: int, code: int, folder: Path) -> str:
    """Why the first rank ended, in a sentence."""
    from backend.worker.ranks.member import FAILURE

    said = folder / f"{FAILURE}{rank}"
    if said.is_file():
        return f"Rank {rank} failed: {said.read_text(encoding='utf-8')}"
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (often because the system ran out of memory)" if name == "SIGKILL" else ""
        return f"Rank {rank} was killed by {name}{hint}."
    return f"Rank {rank} exited with code {code}."


if __name__ == "__main__":
    main()
