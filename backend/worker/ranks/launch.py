"""Entry of the launcher: `python -m tokendyno.backend.worker.ranks.launch PARENT_PID SHARE`, a `Share` as JSON.

torch's elastic launcher (torchrun is its command line) starts the ranks, watches them, and ends all of them when one
dies. Its own pipes are theirs. Why a group ended is the last line on standard error. On other machines users start
torchrun, and it meets this launcher by torchrun's static rendezvous: c10d's would number machines by their addresses,
and rank 0 has to be where the engine is."""

import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import msgspec

from tokendyno.backend import paths
from tokendyno.backend.worker.process import die_with_parent, guard_group, killed_by


class Hello(msgspec.Struct, frozen=True):
    """What a machine is, so that only those take part that can work on one thing.

    versions  of the packages that must be the same on all of them
    model     a digest of the model that it has
    problem   why it cannot take part, "" where it knows of nothing
    """

    versions: dict[str, str]
    device: str
    model: str
    problem: str = ""


class Share(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The ranks of one machine.

    hosts, host   machines that share the model, and which of them this is; rank 0 is on machine 0
    endpoint      HOST:PORT of the rendezvous, on machine 0; "" where one machine has all ranks
    interface     network interface through which the others are reached, "" where torch is to find it
    hello         what this machine is; None where one machine has all ranks
    model_path    the model's folder or file on this machine, where machine 0 has it elsewhere
    kernels_path  likewise the folder of kernels
    """

    ranks: int
    hosts: int = 1
    host: int = 0
    endpoint: str = ""
    interface: str = ""
    wait_s: float = 0.0
    hello: Hello | None = None
    model_path: str = ""
    kernels_path: str = ""


def main() -> None:
    die_with_parent(int(sys.argv[1]))
    guard_group()
    share = msgspec.json.decode(sys.argv[2], type=Share)
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from tokendyno.backend.worker.ranks.member import ANSWERS, PLACES

    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)  # its report repeats our last line
    os.environ["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] = "1"  # seconds before ranks are killed that outlive another
    folder = paths.make_scratch()
    (folder / ANSWERS).write_bytes(bytes(8 * PLACES))
    for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME") if share.interface else ():
        os.environ.setdefault(name, share.interface)
    alone = share.hosts == 1  # then the launcher meets itself, on any free port
    config = LaunchConfig(
        min_nodes=share.hosts,
        max_nodes=share.hosts,
        nproc_per_node=share.ranks,
        run_id="none",  # as torchrun's
        rdzv_backend="c10d" if alone else "static",
        rdzv_endpoint=share.endpoint or "localhost:0",
        rdzv_configs={} if alone else {"rank": 0, "timeout": max(1, round(share.wait_s))},
        local_addr="localhost" if alone else None,
        max_restarts=0,
    )
    launch = elastic_launch(config, sys.executable)
    try:
        launch("-P", "-m", "tokendyno.backend.worker.ranks", str(os.getpid()), str(folder), sys.argv[2])
    except ChildFailedError as error:
        rank, failure = error.get_first_failure()
        ended(cause(rank, failure.exitcode, folder))
    except DistError as error:
        if alone:
            raise
        ended(not_met(share, str(error)))
    os._exit(0)


def ended(reason: str) -> NoReturn:
    """End with this reason as the last line on standard error, which the engine reads."""
    sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    os._exit(1)


def not_met(share: Share, reason: str) -> str:
    others = "machine 2" if share.hosts == 2 else f"some of machines 2 to {share.hosts}"
    return (
        f"Ranks on {others} did not come to {share.endpoint} within {share.wait_s:g} s "
        f"({reason.splitlines()[0][:200]}). Type the torchrun line there while this command waits, and let it reach "
        "this address."
    )


def cause(rank: int, code: int, folder: Path) -> str:
    """Why the first rank ended, in a sentence."""
    from tokendyno.backend.worker.ranks.member import FAILURE

    file = folder / f"{FAILURE}{rank}"
    if file.is_file():
        sentence = file.read_text(encoding="utf-8")
        return sentence if sentence.startswith(("Rank ", "Ranks ", "The ranks ")) else f"Rank {rank} failed: {sentence}"
    return f"Rank {rank} {killed_by(code) if code < 0 else f'exited with code {code}'}."


if __name__ == "__main__":
    main()
