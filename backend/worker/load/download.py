"""Downloads a model from the Hub: safetensors and text files only, nothing that can run code."""

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tqdm import tqdm

from tokendyno.backend.messages import Amount
from tokendyno.backend.models.files.hub import WANTED, HubUnreachable, explained, no_safetensors
from tokendyno.backend.worker.channel import Channel, Steps, repeating

_PIECE_BYTES = 1 << 17
"""The Hub client reports progress after so many bytes; its default of 10 MB takes half a minute on a slow line."""


class DownloadFailed(Exception):
    """The download from the Hub failed; the text is the Hub client's own message."""


def download(repo: str, revision: str, channel: Channel) -> Path:
    """The folder of the downloaded snapshot. Raises InputError (gated, missing, no safetensors) and DownloadFailed."""
    from huggingface_hub import constants, snapshot_download

    constants.DOWNLOAD_CHUNK_SIZE = _PIECE_BYTES
    filters: dict[str, Any] = {
        "revision": revision or None,
        "allow_patterns": [f"*{ending}" for ending in WANTED],
        "ignore_patterns": ["*/*"],  # subfolders hold the same weights in other formats
    }
    with channel.phasing("download", repo) as steps:
        arrivals = Arrivals()

        class Bar(tqdm):  # type: ignore[misc]
            """Draws nothing, and counts bytes that are written to disk, not those on the wire."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                self.written = kwargs.get("unit") == "B" and not str(kwargs.get("desc")).startswith("Downloading")
                super().__init__(*args, **{**kwargs, "disable": True})

            def update(self, n: float | None = 1) -> None:
                if self.written:
                    arrivals.add(int(n or 0))

        arrivals.total_bytes = _missing_bytes(repo, filters | {"tqdm_class": Bar})
        try:
            with arrivals.reported(steps):
                path = snapshot_download(repo, **filters, tqdm_class=Bar)
        except Exception as error:  # network errors, time-outs, full disks: their types differ between versions
            refusal = explained(error, repo, revision)
            if isinstance(refusal, HubUnreachable):
                raise DownloadFailed(f"{type(error).__name__}: {error}") from error
            raise refusal from error
    if not any(Path(path).glob("*.safetensors")):
        raise no_safetensors(repo)
    return Path(path)


def _missing_bytes(repo: str, filters: dict[str, Any]) -> int | None:
    """Bytes of the files that are not in the cache; None where the Hub does not tell (the download will say why)."""
    from huggingface_hub import snapshot_download

    try:
        files = snapshot_download(repo, **filters, dry_run=True)
    except Exception:
        return None
    sizes = [file.file_size for file in files if file.will_download]
    return sum(size for size in sizes if size) if all(size is not None for size in sizes) else None


WINDOW_S = 5.0
"""The rate is that of the last seconds, so that it falls to 0 soon after a connection stalls."""

REPORT_S = 0.5


class Arrivals:
    """Counts the bytes that have arrived; any thread may add some. `total_bytes`: of the whole; None if unknown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.total_bytes: int | None = None
        self._clock, self._lock = clock, threading.Lock()
        self._begin_s = clock()
        self._done_bytes = 0
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, size_bytes: int) -> None:
        """More bytes arrived; a negative number if some must be fetched again."""
        with self._lock:
            self._done_bytes = max(0, self._done_bytes + size_bytes)
            if size_bytes > 0:
                self._recent.append((self._clock(), size_bytes))

    def amount(self) -> Amount:
        """The progress now. The rate is None in the first half second."""
        with self._lock:
            now_s = self._clock()
            while self._recent and self._recent[0][0] < now_s - WINDOW_S:
                self._recent.popleft()
            span_s = min(WINDOW_S, now_s - self._begin_s)
            rate = sum(size for _, size in self._recent) / span_s if span_s >= REPORT_S else None
            return Amount(self._done_bytes, self.total_bytes, rate)

    @contextlib.contextmanager
    def reported(self, steps: Steps) -> Iterator[None]:
        """Within it, report progress as steps of a phase every half second, and once more at the end."""

        def report() -> None:
            amount = self.amount()
            fraction = min(1.0, amount.done_bytes / amount.total_bytes) if amount.total_bytes else None
            steps.step(fraction, amount=amount)

        try:
            with repeating(report, REPORT_S, "download-progress"):
                yield
        finally:
            report()
