"""The history fails in the middle of a real run: the run ends well, and what is not kept of it is said.

The quick form of `python -m tools.soak history`, without a server and for the faults that are unlike each other; the
store alone meets all of them in tests/backend/runs/.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from backend.engine.bench import Bench
from backend.messages import Progress
from backend.runs.records import ArmEvent, Ended, Record
from backend.runs.store import Store
from tests.support.processes import wait_for
from tests.support.worker import light
from tools.soak.history import FAULTS, Fault
from ui.live.panel import answer

SOME = [fault for fault in FAULTS if fault.name in ("locked", "damaged")]


def told(bench: Bench, run_id: str) -> str:
    """What the page's panel is told of the history."""
    return str(json.loads(answer(bench.runs, {"run": run_id, "version": 0, "cur": []}))["trouble"])


@pytest.mark.slow
@pytest.mark.parametrize("fault", SOME, ids=[fault.name for fault in SOME])
def test_a_history_that_fails_during_a_run_is_said_and_the_run_is_kept_where_its_file_is(
    fault: Fault, make_bench: Callable[..., Bench], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "data" / "history.sqlite"
    path.parent.mkdir()
    bench, records = make_bench(path), list[Record]()
    ends: list[Callable[[], object]] = []
    append = bench.runs.append

    def watch(run_id: str, record: Record) -> None:
        append(run_id, record)
        records.append(record)
        begins = isinstance(record, ArmEvent) and isinstance(record.event, Progress) and record.event.phase == "run"
        if begins and not ends:
            bench.store.flush()
            ends.append(fault.begin(path))

    monkeypatch.setattr(bench.runs, "append", watch)
    try:
        run = bench.wait(bench.submit(light({})), 60)
        assert ends and run.status == "done", run.message
        if fault.said:
            wait_for(lambda: fault.said in told(bench, run.id), 10, "the trouble to be said to who watches")
    finally:
        for end in ends:
            end()
    wait_for(lambda: not told(bench, run.id), 10, "the end of the trouble")
    bench.store.flush()
    assert any("is not kept" in message for message in bench.store.messages) is fault.reported
    again = Store(path)
    stored = again.read(run.id)
    again.close()
    if fault.reported:
        assert stored == [], "no part of it"
    else:
        assert stored[1:] == records and isinstance(stored[-1], Ended) and stored[-1].status == "done"
