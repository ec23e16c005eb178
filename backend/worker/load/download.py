"""Downloads a model from the Hub: safetensors and text files only, nothing that can run code."""

from pathlib import Path
from typing import Any

from backend.errors import InputError
from backend.worker.channel import Channel

_WANTED_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model", "merges.txt", "vocab.txt"]


class DownloadFailed(Exception):
    """The download from the Hub failed; the text is the Hub client's own message."""


def download(repo: str, revision: str, channel: Channel) -> Path:
    """The folder of the downloaded snapshot; progress goes to `channel`.

    Raises InputError where the repository is gated, missing or has no safetensors weights, and DownloadFailed for
    everything else (network, disk).
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
    from tqdm import tqdm

    with channel.phasing("download", repo) as steps:

        class Bar(tqdm):  # type: ignore[misc]
            """Reports the downloaded bytes as progress instead of drawing a bar."""

            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **{**kwargs, "disable": False, "file": _NullFile(), "mininterval": 0.5})

            def display(self, *args: Any, **kwargs: Any) -> bool:
                if self.total:
                    unit = "bytes" if self.unit == "B" else "files"
                    steps.step(min(1.0, self.n / self.total), f"{self.n:,} of {self.total:,} {unit}")
                return True

        try:
            path = snapshot_download(
                repo,
                revision=revision or None,
                allow_patterns=_WANTED_FILES,
                ignore_patterns=["*/*"],  # subfolders hold the same weights in other formats
                tqdm_class=Bar,
            )
        except GatedRepoError as error:
            page = f"https://huggingface.co/{repo}"
            raise InputError(f"{repo} is gated. Accept its licence at {page}, then log in: hf auth login.") from error
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            what = f"{repo}@{revision}" if revision else repo
            raise InputError(f"The Hub has no {what}. Check the name at https://huggingface.co/models.") from error
        except Exception as error:  # network errors, time-outs, full disks: their types differ between versions
            raise DownloadFailed(f"{type(error).__name__}: {error}") from error
    if not any(Path(path).glob("*.safetensors")):
        raise InputError(
            f"{repo} has no safetensors weights, and pickled weights are not loaded because they can run code. Use a "
            "repository or revision with model.safetensors, or convert the weights yourself and pass the folder."
        )
    return Path(path)


class _NullFile:
    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass
