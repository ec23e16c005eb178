"""Downloads a model from the Hub: safetensors and text files only, nothing that can run code."""

from pathlib import Path
from typing import Any

from tqdm import tqdm

from tokendyno.backend.models.files.hub import HubUnreachable, explained
from tokendyno.backend.models.files.hub_files import WANTED, no_safetensors
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load.arrivals import Arrivals, Reporting

_PIECE_BYTES = 1 << 17
"""How much the Hub client reads before it counts it; its own 10 MB are half a minute on a slow line, and with 1 MiB the
rate of 300 kB/s jumped between one piece and two in the last five seconds."""


class DownloadFailed(Exception):
    """The download from the Hub failed; the text is the Hub client's own message."""


def download(repo: str, revision: str, channel: Channel) -> Path:
    """The folder of the downloaded snapshot; progress goes to `channel`.

    Raises InputError where the repository is gated, missing or has no safetensors weights, and DownloadFailed for
    everything else (network, disk).
    """
    from huggingface_hub import constants, snapshot_download

    constants.DOWNLOAD_CHUNK_SIZE = _PIECE_BYTES
    wanted: dict[str, Any] = {
        "revision": revision or None,
        "allow_patterns": [f"*{ending}" for ending in WANTED],
        "ignore_patterns": ["*/*"],  # subfolders hold the same weights in other formats
    }
    with channel.phasing("download", repo) as steps:
        arrivals = Arrivals(_missing_bytes(repo, wanted))

        class Bar(_Silent):
            """Counts what is written to disk."""

            def update(self, n: float | None = 1) -> bool | None:
                if self.written:
                    arrivals.add(int(n or 0))
                shown: bool | None = super().update(n)
                return shown

        try:
            with Reporting(arrivals, steps):
                path = snapshot_download(repo, **wanted, tqdm_class=Bar)
        except Exception as error:  # network errors, time-outs, full disks: their types differ between versions
            said = explained(error, repo, revision)
            if isinstance(said, HubUnreachable):
                raise DownloadFailed(f"{type(error).__name__}: {error}") from error
            raise said from error
    if not any(Path(path).glob("*.safetensors")):
        raise no_safetensors(repo)
    return Path(path)


def _missing_bytes(repo: str, wanted: dict[str, Any]) -> int | None:
    """Bytes of the files that are not in the cache; None where the Hub does not tell: then the download says why."""
    from huggingface_hub import snapshot_download

    try:
        files = snapshot_download(repo, **wanted, dry_run=True, tqdm_class=_Silent)
    except Exception:
        return None
    sizes = [file.file_size for file in files if file.will_download]
    return sum(size for size in sizes if size) if all(size is not None for size in sizes) else None


class _Silent(tqdm):  # type: ignore[misc]
    """A progress bar that draws nothing. `written`: it counts bytes on disk; another bar of the Hub client's counts
    those on the wire, which are as many or fewer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.written = kwargs.get("unit") == "B" and not str(kwargs.get("desc")).startswith("Downloading")
        super().__init__(*args, **{**kwargs, "disable": False, "file": _NullFile()})

    def display(self, *args: Any, **kwargs: Any) -> bool:
        """Nothing."""
        return True


class _NullFile:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass
