"""Brings the ranks of a group together: gloo between processes on CPUs, NCCL between GPUs."""

import datetime
import os
import re
import threading
from collections.abc import Callable, Sequence

import msgspec
import torch
import torch.distributed as dist

from tokendyno.backend.hardware.same_versions import version_gap
from tokendyno.backend.worker.ranks.launch import Hello
from tokendyno.backend.worker.ranks.member import connect, where

COME_WAIT_S = 75.0
"""How long ranks wait for each other, imports included: less than the engine waits for a worker to start."""

REACH_WAIT_S = 40.0
"""How long they then take to connect at most: seconds between GPUs."""

_PLACE = re.compile(r"\[/.*?\] ")
"""Of an error in torch's own source."""


class NotAllCame(Exception):
    """The text says which ranks are missing, where they run, and what to do."""


def await_all(rank: int, size: int, hello: Hello | None) -> None:
    """Returns once all ranks have come; NotAllCame names those that have not, or cannot take part."""
    store = connect()
    store.set(f"here/{rank}", msgspec.json.encode(hello))
    keys = [f"here/{other}" for other in range(size)]
    try:
        store.wait(keys, datetime.timedelta(seconds=COME_WAIT_S))
    except dist.DistStoreError:
        missing = [other for other, key in enumerate(keys) if not store.check([key])]
        raise NotAllCame(absent(missing, size // int(os.environ["LOCAL_WORLD_SIZE"]), size)) from None
    if hello is not None:
        each = int(os.environ["LOCAL_WORLD_SIZE"])
        first, *others = (msgspec.json.decode(store.get(f"here/{one}"), type=Hello) for one in range(0, size, each))
        for machine, other in enumerate(others, start=1):
            if reason := unfit(first, other):
                raise NotAllCame(f"Rank {machine * each} on machine {machine + 1} cannot take part. {reason}")


def unfit(first: Hello, other: Hello) -> str:
    """Why a machine cannot work on one model with the first one; "" if it can."""
    if gap := version_gap(first.versions, other.versions):
        return gap
    if first.device != other.device:
        return f"It runs on {other.device}, the first machine on {first.device}. Use machines of one kind."
    if other.problem:
        return other.problem
    if first.model != other.model:
        return "It has another model by that name than the first machine. Copy the files from there."
    return ""


def absent(missing: Sequence[int], hosts: int, size: int) -> str:
    """What is said of ranks that were started and have not come."""
    who = f"Rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
    place = "here"
    if hosts > 1:
        place = where(missing, size // hosts)
        who = f"{who} {place}"
    return (
        f"{who} did not come within {COME_WAIT_S:g} s, though started. Close what else keeps the processors or the "
        f"GPUs busy {place}, and run again, or take fewer ranks."
    )


def unreached(hosts: int, why: str) -> str:
    """What is said where all ranks have come, and no connection from one to the other stands."""
    sentence = f"The ranks have come, but cannot reach each other ({_PLACE.sub('', why)})."
    if hosts == 1:
        return (
            f"{sentence} Close what else keeps the processors or the GPUs busy, and run again; NCCL_DEBUG=INFO tells "
            "more."
        )
    return (
        f"{sentence} Let the machines reach each other on every port, or name the network interface between them in "
        "GLOO_SOCKET_IFNAME (for GPUs in NCCL_SOCKET_IFNAME, too) on each."
    )


def meet(rank: int, size: int, apart: Callable[[str], None], hello: Hello | None) -> None:
    """Returns once all ranks are there and connected; else `apart` is told why, which ends this process.

    On GPUs each rank takes the one of its local rank, and NCCL is started now and not within a captured step
    (rccl#2022); objects still go through gloo. On CPUs the ranks of a machine share its cores out.
    """
    local = int(os.environ["LOCAL_WORLD_SIZE"])
    try:
        await_all(rank, size, hello)
    except NotAllCame as missing:
        apart(str(missing))
    late = threading.Timer(REACH_WAIT_S, apart, [unreached(size // local, f"{REACH_WAIT_S:g} s")])
    late.daemon = True
    late.start()
    try:
        _connect(rank, size, local)
    except (dist.DistError, RuntimeError) as error:
        apart(unreached(size // local, str(error).splitlines()[0]))
    late.cancel()


def _connect(rank: int, size: int, local: int) -> None:
    if not torch.cuda.is_available():
        torch.set_num_threads(max(1, torch.get_num_threads() // local))
        dist.init_process_group("gloo", rank=rank, world_size=size)
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=size, device_id=device)
    # Else transformers' meshes, which have dimensions of one rank, would at once make a communicator for each of them.
    dist.group.WORLD.bound_device_id = None
