"""Brings the ranks of a group together: gloo between processes on CPUs, NCCL between GPUs."""

import datetime
import os

import torch
import torch.distributed as dist

from backend.worker.ranks.member import connect

COME_WAIT_S = 75.0
"""How long ranks wait for each other, imports included: less than the engine waits for a worker to start."""


class NotAllCame(Exception):
    """The text says which ranks are missing, and what to do."""


def await_all(rank: int, size: int) -> None:
    """Returns once all ranks have come; NotAllCame names those that have not in time."""
    store = connect()
    store.set(f"here/{rank}", "1")
    keys = [f"here/{other}" for other in range(size)]
    try:
        store.wait(keys, datetime.timedelta(seconds=COME_WAIT_S))
    except dist.DistStoreError:
        missing = [str(other) for other, key in enumerate(keys) if not store.check([key])]
        who = f"rank{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise NotAllCame(
            f"{who} did not come within {COME_WAIT_S:g} s, though started. Close what else keeps the processors or the "
            "GPUs busy and run again, or take fewer ranks."
        ) from None


def meet(rank: int, size: int) -> None:
    """Returns once all ranks are there, NotAllCame where one is missing.

    On GPUs each rank takes the one of its local rank, and NCCL is started now and not within a captured step
    (rccl#2022); objects still go through gloo. On CPUs the ranks of a machine share its cores out.
    """
    await_all(rank, size)
    if not torch.cuda.is_available():
        torch.set_num_threads(max(1, torch.get_num_threads() // int(os.environ["LOCAL_WORLD_SIZE"])))
        dist.init_process_group("gloo", rank=rank, world_size=size)
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=size, device_id=device)
