"""Whether ranks on other machines are still there: each beats in the launcher's store, and rank 0 counts."""

import time
from collections.abc import Callable

import torch.distributed as dist

from tokendyno.backend.worker.ranks.member import connect, where

BEAT_S = 1.0
SILENCE_S = 10.0
"""A rank that does not beat for so long is gone: one that lives beats from a thread of its own."""


GONE = "The ranks on the first machine have ended, or cannot be reached any more."


def watch(rank: int, size: int, each: int, apart: Callable[[str], None]) -> None:
    """Body of a thread of every rank, `each` on one machine; `apart` is told whom rank 0 misses."""
    store = connect()
    heard = dict.fromkeys(range(each, size) if rank == 0 else (), (0, time.monotonic()))
    while True:
        try:
            store.add(f"beat/{rank}", 1)
            for other, (beats, at_s) in heard.items():
                if (now := store.add(f"beat/{other}", 0)) != beats:
                    heard[other] = now, time.monotonic()
                elif time.monotonic() - at_s > SILENCE_S:
                    apart(f"Rank {other} {where([other], each)} has not answered for {SILENCE_S:g} s. See there why.")
        except dist.DistError:
            apart(GONE)
        time.sleep(BEAT_S)
