"""A download that is cut off, against a Hub on the loopback interface: it is named, and the next one succeeds."""

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backend.paths import PRESETS
from backend.runs.records import Record
from tests.support.fake_hub import fake_hub

REPOS = "soak/pocket-"
"""With a number behind it: names of one model, so that each run downloads it anew."""

REPO = f"{REPOS}0"
BYTES_PER_S = 2_000_000
CUT_AT_BYTES = 1_000_000
LIMIT_S = 120.0


@contextmanager
def loopback(repos: int = 2000, bytes_per_s: int = BYTES_PER_S) -> Iterator[threading.Event]:
    """A slow Hub for this process and its workers; yields what cuts it off. Call it before huggingface_hub is imported,
    which reads the variables once."""
    with tempfile.TemporaryDirectory() as name:
        os.environ.update(HF_HOME=str(Path(name) / "hf"), HF_HUB_OFFLINE="0", HF_HUB_DISABLE_XET="1",
                          HF_HUB_DOWNLOAD_TIMEOUT="2", HF_HUB_ETAG_TIMEOUT="2")  # fmt: skip
        gone, folder = threading.Event(), PRESETS / "models" / "pocket"
        served = {f"{REPOS}{number}": folder for number in range(repos)}
        with fake_hub(served, bytes_per_s, gone=gone) as (endpoint, _):
            os.environ["HF_ENDPOINT"] = endpoint
            yield gone


def cut_off() -> list[str]:
    """Download slowly, take the Hub away, bring it back; returns what was wrong."""
    with loopback(1, 4 * BYTES_PER_S) as gone:
        return _both(gone)


def _both(gone: threading.Event) -> list[str]:
    from tests.support.worker import light
    from tools.soak.workers import armed

    wrong: list[str] = []
    with armed(spares=0) as site:
        bench = site.bench

        def watch(run_id: str, record: Record) -> None:
            """Cut it off in the middle of the weights."""
            arrived = getattr(getattr(record, "event", None), "amount", None)
            if arrived is not None and arrived.done_bytes > CUT_AT_BYTES and not gone.is_set():
                gone.set()
                print(f"the Hub is gone after {arrived.done_bytes:,} bytes", flush=True)

        site.watch = watch
        site.run_id = bench.submit(light(model=REPO, max_new_tokens=8))
        run = bench.runs.get(site.run_id)
        assert run is not None
        bench.wait(run.id, LIMIT_S)
        print(f"the run {run.status}: {run.message}", flush=True)
        if not gone.is_set() or run.status != "failed" or "download" not in run.message:
            wrong.append(f"a download that is cut off: {run.status}, {run.message}")
        gone.clear()
        site.watch = lambda run_id, record: None
        again = bench.wait(bench.submit(light(model=REPO, max_new_tokens=8)), LIMIT_S)
        print(f"and with the Hub back: {again.status} {again.message}", flush=True)
        if again.status != "done":
            wrong.append(f"the download after it: {again.status}, {again.message}")
        return wrong + site.answers.failures
