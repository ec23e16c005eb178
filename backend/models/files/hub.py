"""What the Hugging Face Hub has of a model, and what of it is in the local cache: config.json is fetched, commits and
sizes are asked for, within a deadline; never code or anything else."""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files import folder
from tokendyno.backend.models.files.config_fields import MAX_CONFIG_BYTES

Answer = TypeVar("Answer", bound="Fetched | Remote")

DEADLINE_S = 20.0
TIMEOUT_S = 5.0

KEEP_S = 300.0
"""How long it is remembered what the Hub has of a model; a config.json as long as this process runs."""

RETRY_AFTER_S = 30.0
"""How long it is remembered that the Hub refused something, or could not be reached."""

MOST_ANSWERS = 512

WANTED = (".json", ".safetensors", ".jinja", "tokenizer.model", "merges.txt", "vocab.txt")
"""Ends of the names of files that a worker downloads, from the top folder of a repository."""

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


class Fetched(NamedTuple):
    """A repository's config.json, and the commit that it is of."""

    config: bytes
    commit: str


class Remote(NamedTuple):
    """A repository of the Hub: its commit, and the bytes of the files that would be downloaded."""

    commit: str
    file_bytes: int


_answers: dict[tuple[str, str, str], tuple[float, Fetched | Remote | InputError]] = {}
"""(what was asked, repository, revision) -> (until when the answer is remembered, by time.monotonic; the answer)."""


def fetch_config(repo: str, revision: str) -> Fetched:
    """The repository's config.json, from the local cache if the Hub does not answer. InputError if there is none."""
    return _ask("config", repo, revision, lambda: _fetch(repo, revision), float("inf"))


def remote(repo: str, revision: str) -> Remote:
    """What the Hub has of a model, without a download. InputError if it gives no weights; HubUnreachable."""
    return _ask("files", repo, revision, lambda: _list_files(repo, revision), KEEP_S)


def _ask(what: str, repo: str, revision: str, ask: Callable[[], Answer | InputError], keep_s: float) -> Answer:
    """The answer of `ask`, or the one that is remembered. HubUnreachable at a deadline for all of the client's steps
    together."""
    begin_s = time.monotonic()
    until_s, answer = _answers.get((what, repo, revision), (0.0, None))
    if answer is None or begin_s >= until_s:
        results: list[Answer | InputError] = []

        def work() -> None:
            try:
                results.append(ask())
            except Exception as error:  # else it would be taken for a deadline that passed
                results.append(_unreachable(repo, type(error).__name__))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(DEADLINE_S)
        answer = results[0] if results else _unreachable(repo, f"no answer in {DEADLINE_S:.0f} s")
        if len(_answers) >= MOST_ANSWERS:
            _answers.clear()
        kept_s = RETRY_AFTER_S if isinstance(answer, InputError) else keep_s
        _answers[what, repo, revision] = time.monotonic() + kept_s, answer
    if isinstance(answer, InputError):
        raise answer
    return answer  # type: ignore[return-value]  # of the kind that is asked for by this word


def _fetch(repo: str, revision: str) -> Fetched | InputError:
    import huggingface_hub

    branch, endpoint = revision or None, os.environ.get("HF_ENDPOINT") or None
    try:
        url = huggingface_hub.hf_hub_url(repo, "config.json", revision=branch, endpoint=endpoint)
        size = huggingface_hub.get_hf_file_metadata(url, timeout=TIMEOUT_S).size or 0
        if size > MAX_CONFIG_BYTES:
            return InputError(f"config.json of {repo} has {size:,} bytes, more than any model's. Choose another model.")
        path = huggingface_hub.hf_hub_download(
            repo, "config.json", revision=branch, endpoint=endpoint, etag_timeout=TIMEOUT_S
        )
        return _fetched(path)
    except Exception as error:  # name resolution, timeouts, TLS, proxies: their types differ between versions
        refusal = explained(error, repo, revision)
        cached = huggingface_hub.try_to_load_from_cache(repo, "config.json", revision=branch)
        return _fetched(cached) if isinstance(refusal, HubUnreachable) and isinstance(cached, str) else refusal


def _fetched(path: str) -> Fetched:
    """The file snapshots/COMMIT/config.json of the cache."""
    with open(path, "rb") as file:
        return Fetched(file.read(MAX_CONFIG_BYTES + 1), Path(path).parent.name)


def _list_files(repo: str, revision: str) -> Remote | InputError:
    import huggingface_hub

    branch, endpoint = revision or None, os.environ.get("HF_ENDPOINT") or None
    try:
        url = huggingface_hub.hf_hub_url(repo, "config.json", revision=branch, endpoint=endpoint)
        huggingface_hub.get_hf_file_metadata(url, timeout=TIMEOUT_S)  # refused where the repository is gated
        api = huggingface_hub.HfApi(endpoint=endpoint)
        info = api.model_info(repo, revision=branch, timeout=TIMEOUT_S, files_metadata=True)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or () if "/" not in file.rfilename}
        for name in folder.QUANTIZED_BESIDE.keys() & sizes.keys():  # looked at before the weights are downloaded
            if sizes[name] <= MAX_CONFIG_BYTES:
                huggingface_hub.hf_hub_download(
                    repo, name, revision=info.sha, endpoint=endpoint, etag_timeout=TIMEOUT_S
                )
    except Exception as error:
        return explained(error, repo, revision)
    if sizes and not any(name.endswith(".safetensors") for name in sizes):
        return no_safetensors(repo)
    return Remote(info.sha or "", sum(size for name, size in sizes.items() if name.endswith(WANTED)))


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


def _unreachable(repo: str, reason: str) -> HubUnreachable:
    return HubUnreachable(
        f"The Hub could not be reached for {repo} ({reason}). Check the connection, give a local folder, or run a "
        "known architecture without a download: random:NAME.",
        reason,
    )


def no_safetensors(repo: str) -> InputError:
    """The error for a repository that has no weights which are loaded."""
    return InputError(
        f"{repo} has no safetensors weights, and pickled weights are not loaded because they can run code. Use a "
        "repository or revision with model.safetensors, or convert the weights yourself and pass the folder."
    )


# --- the local cache -----------------------------------------------------------------------------


def snapshot(repo: str, revision: str) -> Path | None:
    """The folder in the Hub's cache with what was fetched of a model; None if nothing was, or not its config."""
    import huggingface_hub

    config = huggingface_hub.try_to_load_from_cache(repo, "config.json", revision=revision or None)
    return Path(config).parent if isinstance(config, str) else None


def lacking(repo: str, revision: str) -> str:
    """What the cache lacks of a model, as the end of a sentence; "" if it has all that a load needs."""
    here = snapshot(repo, revision)
    if here is None:
        return "is not on this machine"
    try:
        weights = folder.weight_files(here)
    except folder.FilesMissing as error:
        return f"was downloaded only in part ({error.count})"
    except InputError:
        return "was downloaded only in part (its index of weight files cannot be read)"
    if not weights:
        blobs = here.parent.parent / "blobs"
        begun = blobs.is_dir() and any(path.suffix == ".incomplete" for path in blobs.iterdir())
        return "was downloaded only in part (its weights are missing)" if begun else "is not on this machine"
    if not folder.has_tokenizer(here):
        return "was downloaded only in part (its tokenizer is missing)"
    return ""


class CachedRepository(msgspec.Struct, frozen=True):
    """A repository in the Hub's cache: its type ("model" or "kernel"), its id, its bytes on disk."""

    kind: str
    repo: str
    bytes: int


def cached_repositories() -> list[CachedRepository]:
    """Models and kernels that were downloaded from the Hub, the largest first."""
    from huggingface_hub import constants, scan_cache_dir

    cached = set[CachedRepository]()
    for place in {constants.HF_HUB_CACHE, os.environ.get("KERNELS_CACHE") or constants.HF_HUB_CACHE}:
        if Path(place).expanduser().is_dir():
            repos = scan_cache_dir(place).repos
            cached |= {CachedRepository(repo.repo_type, repo.repo_id, repo.size_on_disk) for repo in repos}
    return sorted((repo for repo in cached if repo.kind in ("model", "kernel")), key=lambda repo: -repo.bytes)


def free_cache_bytes() -> int:
    from huggingface_hub import constants

    path = Path(constants.HF_HUB_CACHE)
    while not path.exists() and path != path.parent:
        path = path.parent
    return shutil.disk_usage(path).free
