"""A rank as a member of its group: answers by shared memory, or broadcast; everything else by the launcher's store."""

import datetime
import mmap
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import torch
import torch.distributed as dist

from tokendyno.backend.hardware.same_versions import version_gap
from tokendyno.backend.messages import Command, Failed, Generate, Load, Score, decode_command, encode
from tokendyno.backend.worker.group import Group
from tokendyno.backend.worker.ranks.launch import Hello, Share

EXCHANGE_WAIT_S = 1_800.0
"""How long a rank waits for what the others give. One that fails or dies is noticed at once; loading a large model may
take one of them minutes longer than another, and the engine's deadlines end those that make no progress."""

CONNECT_WAIT_S = 60.0
"""How long a rank waits for the launcher's store."""

SETTLE_WAIT_S = 1.2
"""How long a rank that failed waits for the others to fail alike. Of one that dies the launcher knows within 0.1 s."""

FAR_SETTLE_WAIT_S = 15.0
"""The same over several machines, where a rank that died is missed after a while, and then named (`watch_beats`)."""

ANSWERS, FAILURE = "answers", "failure-"
"""Files of the group's folder: the answers, and by rank the sentence of one that failed alone."""

Leave = Callable[[str], object]
"""Tells why, and ends this process."""

POLL = datetime.timedelta(seconds=0.2)
FOREVER = datetime.timedelta(days=365)


class Member(Group):
    """One of `size` ranks. `folder`: the launcher's, None under users' torchrun."""

    def __init__(self, rank: int, size: int, folder: Path | None, share: Share, leave: Leave) -> None:
        self.rank, self.size = rank, size
        self._share, self._leave = share, leave
        self._answers = Answers(folder / ANSWERS, rank) if folder and share.hosts == 1 else BroadcastAnswers()
        self._settle_s = SETTLE_WAIT_S if share.hosts == 1 else FAR_SETTLE_WAIT_S
        self._store, self._waiting = connect(), connect()
        self._exchanges = self._failures = 0

    def agree(self, answer: bool) -> bool:
        return self._answers.agree(answer)

    def exchange(self, own: bytes) -> Sequence[bytes]:
        self._exchanges += 1
        keys = [f"exchange/{self._exchanges}/{rank}" for rank in range(self.size)]
        self._store.set(keys[self.rank], own or b" ")
        if not self._wait(keys, EXCHANGE_WAIT_S, lambda: self._failed_alone() != ""):
            raise RuntimeError(self._failed_alone() or f"Not all ranks answered within {EXCHANGE_WAIT_S:g} s.")
        return [self._store.get(key) for key in keys]

    def settle(self, failed: Failed) -> Failed:
        """Where all ranks fail alike the group goes on; else others wait for this rank, and the group is lost."""
        number, self._failures = self._failures, self._failures + 1
        self._store.set(f"failed/{number}/{self.rank}", failed.error)
        if self.rank:
            self._store.set(f"alone/{self.rank}", failed.error)
        if self._wait([f"failed/{number}/{rank}" for rank in range(self.size)], self._settle_s):
            self._store.delete_key(f"alone/{self.rank}")
            return failed
        if self.rank:
            self._leave(failed.error)
        return msgspec.structs.replace(failed, error=self._failed_alone() or failed.error, fatal=True)

    def pass_on(self, number: int, command: Command) -> None:
        self._store.set(f"command/{number}", encode(command))

    def commands(self) -> Iterator[Command]:
        """The other ranks: what rank 0 passes on, as it comes."""
        number = 0
        while True:
            key = f"command/{number}"
            self._waiting.wait([key], FOREVER)
            yield on_this_machine(decode_command(self._waiting.get(key)), self._share)
            number += 1

    def _wait(self, keys: list[str], seconds: float, give_up: Callable[[], bool] = lambda: False) -> bool:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and not give_up():
            try:
                self._store.wait(keys, min(POLL, datetime.timedelta(seconds=seconds)))
            except dist.DistStoreError:
                continue
            return True
        return False

    def _failed_alone(self) -> str:
        """The sentence of another rank that failed, "" while none has."""
        for rank in range(1, self.size):
            if rank != self.rank and self._store.check([f"alone/{rank}"]):
                place = f" {where([rank], self._share.ranks)}" if self._share.hosts > 1 else ""
                return f"Rank {rank}{place} failed: {self._store.get(f'alone/{rank}').decode()}"
        return ""


def on_this_machine(command: Command, share: Share) -> Command:
    """The same command, with the places of the model and of kernels as they are on this machine."""
    if share.host == 0 or not isinstance(command, Load | Generate | Score):
        return command
    load = command.plan.load
    if load.source.path:
        load = msgspec.structs.replace(load, source=msgspec.structs.replace(load.source, path=share.model_path))
    if load.kernels_path:
        load = msgspec.structs.replace(load, kernels_path=share.kernels_path)
    return msgspec.structs.replace(command, plan=msgspec.structs.replace(command.plan, load=load))


def where(ranks: Sequence[int], per_machine: int) -> str:
    machines = sorted({1 + rank // per_machine for rank in ranks})
    return f"on machine{'s' * (len(machines) > 1)} {', '.join(map(str, machines))}"


def connect() -> dist.Store:
    """A connection to the launcher's store. It serves one thread at a time: who waits keeps it from all others."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, is_master=False, timeout=datetime.timedelta(seconds=CONNECT_WAIT_S))
    return dist.PrefixStore("tokendyno", store)


# --- answers -------------------------------------------------------------------------------------

PLACES = 1024
"""Answers that rank 0 may be ahead of the slowest rank: collectives hold it back long before that."""

WAIT_S = 20e-6


class Answers:
    """One rank's view of a file that all ranks of a machine have mapped: memory is fast enough to ask at every token.
    Question n has place n % PLACES; its word is 2 n + answer, written at once."""

    def __init__(self, path: Path, rank: int) -> None:
        with path.open("r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 8 * PLACES)).cast("Q")
        self._rank, self._question = rank, 0

    def agree(self, answer: bool) -> bool:
        self._question += 1
        place = self._question % PLACES
        if self._rank == 0:
            self._words[place] = 2 * self._question + answer
            return answer
        while (word := self._words[place]) >> 1 < self._question:
            time.sleep(WAIT_S)
        return bool(word & 1)


class BroadcastAnswers:
    """One rank's view: a byte for each question, by a gloo group of its own. Who waits raises once a rank is gone."""

    def __init__(self) -> None:
        self._group = dist.new_group(backend="gloo")
        self._answer = torch.zeros(1, dtype=torch.uint8, device="cpu")

    def agree(self, answer: bool) -> bool:
        self._answer.fill_(answer)
        dist.broadcast(self._answer, 0, group=self._group)
        return bool(self._answer)


class AgreedCancel(threading.Event):
    """In place of a worker's own event: set where rank 0's is, at the same step on all ranks."""

    def __init__(self, own: threading.Event, group: Group) -> None:
        super().__init__()
        self._own, self._group = own, group

    def is_set(self) -> bool:
        return self._group.agree(self._own.is_set())


# --- beats in the launcher's store: whether ranks on other machines are still there ---------------

BEAT_S = 1.0
SILENCE_S = 10.0
"""A rank that does not beat for so long is gone: one that lives beats from a thread of its own."""

GONE = "The ranks on the first machine have ended, or cannot be reached any more."


def watch_beats(rank: int, size: int, per_machine: int, leave: Leave) -> None:
    """Body of a thread of every rank, `per_machine` of them on each machine; `leave` is told whom rank 0 misses."""
    store = connect()
    last_heard = dict.fromkeys(range(per_machine, size) if rank == 0 else (), (0, time.monotonic()))
    while True:
        try:
            store.add(f"beat/{rank}", 1)
            for other, (beats, at_s) in last_heard.items():
                if (now := store.add(f"beat/{other}", 0)) != beats:
                    last_heard[other] = now, time.monotonic()
                elif time.monotonic() - at_s > SILENCE_S:
                    place = where([other], per_machine)
                    leave(f"Rank {other} {place} has not answered for {SILENCE_S:g} s. See there why.")
        except dist.DistError:
            leave(GONE)
        time.sleep(BEAT_S)


# --- meeting: gloo between processes on CPUs, NCCL between GPUs ------------------------------------

COME_WAIT_S = 75.0
"""How long ranks wait for each other, imports included: less than the engine waits for a worker to start."""

REACH_WAIT_S = 40.0
"""How long they then take to connect at most: seconds between GPUs."""


def await_all(rank: int, size: int, hello: Hello | None) -> str:
    """Returns "" once all ranks have come; else a text that names those that have not, or cannot take part."""
    store, per_machine = connect(), int(os.environ["LOCAL_WORLD_SIZE"])
    store.set(f"here/{rank}", msgspec.json.encode(hello))
    keys = [f"here/{other}" for other in range(size)]
    try:
        store.wait(keys, datetime.timedelta(seconds=COME_WAIT_S))
    except dist.DistStoreError:
        missing = [other for other, key in enumerate(keys) if not store.check([key])]
        return absent(missing, size // per_machine, size)
    if hello is not None:
        first, *others = (msgspec.json.decode(store.get(key), type=Hello) for key in keys[::per_machine])
        for machine, other in enumerate(others, start=1):
            if reason := unfit(first, other):
                return f"Rank {machine * per_machine} on machine {machine + 1} cannot take part. {reason}"
    return ""


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
    """The sentence about ranks that were started and have not come."""
    ranks = f"Rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing))}"
    place = where(missing, size // hosts) if hosts > 1 else "here"
    ranks = f"{ranks} {place}" if hosts > 1 else ranks
    return (
        f"{ranks} did not come within {COME_WAIT_S:g} s, though started. Close what else keeps the processors or the "
        f"GPUs busy {place}, and run again, or take fewer ranks."
    )


def unreached(hosts: int, reason: str) -> str:
    """The sentence where all ranks have come but cannot be connected."""
    sentence = f"The ranks have come, but cannot reach each other ({reason})."
    if hosts == 1:
        advice = "Close what else keeps the processors or the GPUs busy, and run again; NCCL_DEBUG=INFO tells more."
        return f"{sentence} {advice}"
    return (
        f"{sentence} Let the machines reach each other on every port, or name the network interface between them in "
        "GLOO_SOCKET_IFNAME (for GPUs in NCCL_SOCKET_IFNAME, too) on each."
    )


def meet(rank: int, size: int, leave: Leave, hello: Hello | None) -> None:
    """Returns once all ranks are there and connected; else `leave` is told why, which ends this process.

    On GPUs each rank takes the one of its local rank, and NCCL is started now and not within a captured step
    (rccl#2022); objects still go through gloo. On CPUs the ranks of a machine share its cores out.
    """
    local_size = int(os.environ["LOCAL_WORLD_SIZE"])
    if missing := await_all(rank, size, hello):
        leave(missing)
    timer = threading.Timer(REACH_WAIT_S, leave, [unreached(size // local_size, f"{REACH_WAIT_S:g} s")])
    timer.daemon = True
    timer.start()
    try:
        _connect(rank, size, local_size)
    except (dist.DistError, RuntimeError) as error:
        leave(unreached(size // local_size, str(error).splitlines()[0]))
    timer.cancel()


def _connect(rank: int, size: int, local_size: int) -> None:
    if not torch.cuda.is_available():
        torch.set_num_threads(max(1, torch.get_num_threads() // local_size))
        dist.init_process_group("gloo", rank=rank, world_size=size)
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=size, device_id=device)
    # Else transformers' meshes, which have dimensions of one rank, would at once make a communicator for each of them.
    dist.group.WORLD.bound_device_id = None
