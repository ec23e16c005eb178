"""Exports, imports and deletions that are killed: `python -m tests.support.killed_files FOLDER`.

Each takes place in a fork of its own, which gets SIGKILL at another moment of its work, from its begin to past its end.
What is found afterwards is checked; prints how many of each kind were done and how many were not.
"""

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.kept_runs import history_of, made, run_on
from tokendyno.backend.history.changes import Changes
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.recordings.files import read_recording, write_recording
from tokendyno.backend.recordings.format import pack
from tokendyno.backend.recordings.shelf import import_run
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.store import Store

KILLS = 24


def whole_s(work: Callable[[], None]) -> float:
    """Seconds that it takes when nobody kills it."""
    begin_s = time.monotonic()
    killed(work, None)
    return time.monotonic() - begin_s


def killed(work: Callable[[], None], after_s: float | None) -> None:
    """Do it in a fork, which is killed after so long; None: not at all."""
    pid = os.fork()
    if not pid:
        try:
            work()
        finally:
            os._exit(0)
    if after_s is not None:
        time.sleep(after_s)
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def main(folder: Path) -> None:
    """All three. An AssertionError if anything was lost or left torn."""
    first, second = made(run_on("first")), made(run_on("second"), (40, 40))
    path, file, source = folder / "h.sqlite", folder / "run.dyno", folder / "source.dyno"
    with history_of(path, [first, second]):
        pass
    write_recording(source, second)
    found: Counter[str] = Counter()

    def export() -> None:
        write_recording(file, second)

    def take_in() -> None:
        store = Store(path)
        import_run(source, store)
        store.close()

    def delete() -> None:
        store = Store(path)
        Changes(store, RunLog(store), LIMITS["local"]).delete(["first"], LOCAL_USER)
        store.close()

    for name, work in (("export", export), ("import", take_in), ("delete", delete)):
        write_recording(file, first)
        before = set(runs(path))
        span_s = whole_s(work)
        with history_of(path) as history:
            if name == "delete":
                history.changes.undelete(["first"], LOCAL_USER)
        for i in range(KILLS):
            write_recording(file, first)
            known = runs(path)
            killed(work, 3 * span_s * (i / KILLS) ** 2)  # most within the work; the last well past it on a busy machine
            if name == "export":
                now = pack(read_recording(file))
                assert now in (pack(first), pack(second)), "a torn file"
                found[f"export {'done' if now == pack(second) else 'not'}"] += 1
                continue
            after = runs(path)
            if name == "import":
                assert set(known.items()) <= set(after.items()), "a run that was there has changed"
                new = set(after) - set(known)
                assert len(new) <= 1 and all(after[one] == len(second) for one in new), "half of a run"
                found[f"import {'done' if new else 'not'}"] += 1
            else:
                gone = set(known) - set(after)
                assert gone <= {"first"} and set(after) <= set(known)
                found[f"delete {'done' if gone else 'not'}"] += 1
                if gone:
                    with history_of(path) as history:
                        history.changes.undelete(["first"], LOCAL_USER)
                assert runs(path) == known, "had back as it was"
        assert before <= set(runs(path))
    print(json.dumps(found))


def runs(path: Path) -> dict[str, int]:
    """Every run that the history shows, and its records."""
    store = Store(path)
    try:
        rows = store.query("SELECT id FROM runs WHERE deleted_at IS NULL", ())
        return {str(one): len(store.read(str(one))) for (one,) in rows}
    finally:
        store.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
