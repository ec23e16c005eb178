"""Downloads config.json from the Hugging Face Hub, within a deadline; never code or anything else."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files.config_fields import MAX_CONFIG_BYTES
from tokendyno.backend.models.files.folder import QUANTIZED_BESIDE

Answer = TypeVar("Answer")


class Fetched(NamedTuple):
    """A repository's config.json, and the commit that it is of."""

    config: bytes
    commit: str


DEADLINE_S = 20.0
TIMEOUT_S = 5.0
RETRY_AFTER_S = 30.0  # how long to wait before asking again for a model after the Hub could not be reached

NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"
REFERENCE = re.compile(rf"(?P<repo>{NAME}/{NAME})(?:@(?P<revision>[A-Za-z0-9][A-Za-z0-9._/-]{{0,127}}))?", re.ASCII)


def parse_reference(ref: str) -> tuple[str, str] | None:
    """(repo, revision) of `org/name` or `org/name@revision`; None if `ref` is no Hub id."""
    match = REFERENCE.fullmatch(ref)
    if match is None or ".." in ref or "--" in ref or "//" in ref or match["repo"].endswith((".git", ".ipynb")):
        return None
    return match["repo"], match["revision"] or ""


class HubUnreachable(InputError):
    """The Hub did not answer; facts from elsewhere may still do. `cause`: why, in a few words."""

    def __init__(self, text: str, cause: str = "") -> None:
        super().__init__(text)
        self.cause = cause


_unanswered: dict[tuple[str, str], float] = {}


@lru_cache(maxsize=256)
def fetch_config(repo: str, revision: str) -> Fetched:
    """The repository's config.json, from the local cache if the Hub does not answer. InputError if there is none."""
    if time.monotonic() < _unanswered.get((repo, revision), 0.0):
        raise _unreachable(repo, "a moment ago")
    try:
        return _fetch_in_time(repo, revision)
    except HubUnreachable:
        if len(_unanswered) > 256:
            _unanswered.clear()
        _unanswered[repo, revision] = time.monotonic() + RETRY_AFTER_S
        raise


def _fetch_in_time(repo: str, revision: str) -> Fetched:
    outcome = in_time(repo, lambda: _fetch(repo, revision))
    if isinstance(outcome, InputError):
        raise outcome
    return outcome


def in_time(repo: str, ask: Callable[[], Answer]) -> Answer | InputError:
    """The answer of `ask`, or HubUnreachable at a deadline for all of the client's steps together."""
    result: list[Answer | InputError] = []

    def work() -> None:
        try:
            result.append(ask())
        except Exception as error:  # else it would be taken for a deadline that passed
            result.append(_unreachable(repo, type(error).__name__))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(DEADLINE_S)
    return result[0] if result else _unreachable(repo, f"no answer in {DEADLINE_S:.0f} s")


def _fetch(repo: str, revision: str) -> Fetched | InputError:
    import huggingface_hub as hub

    branch, endpoint = revision or None, os.environ.get("HF_ENDPOINT") or None
    try:
        url = hub.hf_hub_url(repo, "config.json", revision=branch, endpoint=endpoint)
        size = hub.get_hf_file_metadata(url, timeout=TIMEOUT_S).size or 0
        if size > MAX_CONFIG_BYTES:
            return InputError(f"config.json of {repo} has {size:,} bytes, more than any model's. Choose another model.")
        path = hub.hf_hub_download(repo, "config.json", revision=branch, endpoint=endpoint, etag_timeout=TIMEOUT_S)
        found = Fetched(_read(Path(path)), Path(path).parent.name)  # snapshots/COMMIT/config.json
    except Exception as error:  # name resolution, timeouts, TLS, proxies: their types differ between versions
        said = explained(error, repo, revision)
        return (_cached(repo, branch) if isinstance(said, HubUnreachable) else None) or said
    if b"quantization_config" not in found.config:
        _fetch_beside(repo, found.commit, endpoint)
    return found


def _fetch_beside(repo: str, commit: str, endpoint: str | None) -> None:
    """Download what may say beside config.json that the weights are quantized; a failure is found before a run."""
    import huggingface_hub as hub

    with contextlib.suppress(Exception):
        files = hub.HfApi(endpoint=endpoint).model_info(repo, revision=commit, timeout=TIMEOUT_S).siblings or ()
        for name in QUANTIZED_BESIDE.keys() & {file.rfilename for file in files}:
            hub.hf_hub_download(repo, name, revision=commit, endpoint=endpoint, etag_timeout=TIMEOUT_S)


def explained(error: Exception, repo: str, revision: str) -> InputError:
    """What an exception of the Hub's client means."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HfHubHTTPError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    match error:
        case GatedRepoError():
            return InputError(
                f"{repo} is gated. Accept its licence at https://huggingface.co/{repo}, then log in with: hf auth "
                "login."
            )
        case RepositoryNotFoundError():
            return InputError(
                f"The Hub has no public model {repo!r}. Check the name at https://huggingface.co/models; "
                "for a private model log in with: hf auth login."
            )
        case RevisionNotFoundError():
            return InputError(f"{repo} has no revision {revision!r}. Leave it out, or give a branch, tag or commit.")
        case EntryNotFoundError() if not isinstance(error, FileNotFoundError):
            return InputError(f"{repo} has no config.json, so transformers cannot load it. Choose another model.")
        case OfflineModeIsEnabled():
            return HubUnreachable(
                f"{repo} is not on this machine, and downloads are off (HF_HUB_OFFLINE). Unset it, give a local "
                "folder, or run a known architecture without a download: random:NAME.",
                "downloads are off",
            )
        case HfHubHTTPError():
            return _unreachable(repo, f"HTTP status {error.response.status_code}")
        case _:
            return _unreachable(repo, type(error).__name__)


def _cached(repo: str, branch: str | None) -> Fetched | None:
    import huggingface_hub as hub

    path = hub.try_to_load_from_cache(repo, "config.json", revision=branch)
    return Fetched(_read(Path(path)), Path(path).parent.name) if isinstance(path, str) else None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_CONFIG_BYTES + 1)


def _unreachable(repo: str, reason: str) -> HubUnreachable:
    return HubUnreachable(
        f"The Hub could not be reached for {repo} ({reason}). Check the connection, give a local folder, or run a "
        "known architecture without a download: random:NAME.",
        reason,
    )
