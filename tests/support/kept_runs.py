"""Histories with runs in them, made of records."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import msgspec

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.history.history import History
from tokendyno.backend.hosting.limits import LIMITS, Mode
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import Created, Record
from tokendyno.backend.runs.store import Store

H200 = {
    "device": "cuda",
    "cpu": "EPYC",
    "cores": "96",
    "gpu0": "NVIDIA H200, 139.8 GiB, capability 9.0",
    "driver": "580",
}
LAPTOP = {"device": "cpu", "cpu": "Ryzen 7", "cores": "8"}
VERSIONS = {"torch": "2.11.0", "transformers": "5.22.2", "tokendyno": "0.1.0"}


def made(first: Created, tokens: Sequence[int] = (20, 20), line: str | None = "B is faster.") -> list[Record]:
    """A run that ended, of so many tokens in each arm."""
    arms = [arm_records(arm.name, count) for arm, count in zip(first.request.arms, tokens, strict=False)]
    return [first, *(record for records in arms for record in records), msgspec.structs.replace(ended(), verdict=line)]


def run_on(
    run_id: str,
    machine: dict[str, str] = LAPTOP,
    owner: str = "",
    at_s: float = 1_000.0,
    prompt: str = "Once upon",
    versions: dict[str, str] = VERSIONS,
    repeats: int = 1,
) -> Created:
    """The first record of a run of the embedded model on some machine; B is unwindowed."""
    plain = created(run_id, owner=owner, at_s=at_s, repeats=repeats)
    request = msgspec.structs.replace(plain.request, workload=replace(plain.request.workload, prompt=prompt))
    return msgspec.structs.replace(plain, machine=machine, request=request, versions=versions)


@contextmanager
def history_of(path: Path, runs: Sequence[Sequence[Record]] = (), mode: Mode = "local") -> Iterator[History]:
    """A history that holds these runs."""
    store = Store(path)
    for records in runs:
        assert isinstance(records[0], Created)
        for record in records:
            store.add(records[0].id, record)
    store.flush()
    try:
        yield History(store, RunLog(store), LIMITS[mode])
    finally:
        store.close()
