"""The files of a Hub repository: which are in the local cache, and whether the Hub would give the others."""

import os
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.files import folder, hub, tokenizer_files

KEEP_S = 300.0
"""How long an answer of the Hub is kept; that it could not be reached only for `hub.RETRY_AFTER_S`."""

WANTED = (".json", ".safetensors", ".jinja", "tokenizer.model", "merges.txt", "vocab.txt")
"""Ends of the names of files that a worker downloads, from the top folder of a repository."""


class Remote(NamedTuple):
    """A repository of the Hub: its commit, and the bytes of the files that would be downloaded."""

    commit: str
    file_bytes: int


_answers: dict[tuple[str, str], tuple[float, Remote | InputError]] = {}


def snapshot(repo: str, revision: str) -> Path | None:
    """The folder in the Hub's cache with what was fetched of a model; None if nothing was, or not its config."""
    import huggingface_hub

    config = huggingface_hub.try_to_load_from_cache(repo, "config.json", revision=revision or None)
    return Path(config).parent if isinstance(config, str) else None


def lacking(repo: str, revision: str) -> str:
    """What the cache lacks of a model, as the end of a sentence; "" if it has all that a load needs."""
    found = snapshot(repo, revision)
    if found is None:
        return "is not on this machine"
    try:
        weights = folder.weight_files(found)
    except folder.FilesMissing as error:
        return f"was downloaded only in part ({error.count})"
    except InputError:
        return "was downloaded only in part (its index of weight files cannot be read)"
    if not weights:
        begun = found.parent.parent / "blobs"
        part = begun.is_dir() and any(path.suffix == ".incomplete" for path in begun.iterdir())
        return "was downloaded only in part (its weights are missing)" if part else "is not on this machine"
    if not tokenizer_files.has_tokenizer(found):
        return "was downloaded only in part (its tokenizer is missing)"
    return ""


def logged_in() -> bool:
    """Whether there is a token for the Hub, by variable or by login."""
    import huggingface_hub

    return bool(huggingface_hub.get_token())


def remote(repo: str, revision: str) -> Remote:
    """What the Hub has of a model, without a download. InputError if it gives no weights; HubUnreachable."""
    now_s = time.monotonic()
    until_s, answer = _answers.get((repo, revision), (0.0, None))
    if answer is None or now_s >= until_s:
        answer = hub.in_time(repo, lambda: _ask(repo, revision))
        if len(_answers) > 256:
            _answers.clear()
        keep_s = hub.RETRY_AFTER_S if isinstance(answer, hub.HubUnreachable) else KEEP_S
        _answers[repo, revision] = now_s + keep_s, answer
    if isinstance(answer, InputError):
        raise answer
    return answer


def _ask(repo: str, revision: str) -> Remote | InputError:
    import huggingface_hub

    branch, endpoint = revision or None, os.environ.get("HF_ENDPOINT") or None
    try:
        url = huggingface_hub.hf_hub_url(repo, "config.json", revision=branch, endpoint=endpoint)
        huggingface_hub.get_hf_file_metadata(url, timeout=hub.TIMEOUT_S)  # refused where the repository is gated
        api = huggingface_hub.HfApi(endpoint=endpoint)
        found = api.model_info(repo, revision=branch, timeout=hub.TIMEOUT_S, files_metadata=True)
    except Exception as error:
        return hub.explained(error, repo, revision)
    names = [file.rfilename for file in found.siblings or () if "/" not in file.rfilename]
    if names and not any(name.endswith(".safetensors") for name in names):
        return no_safetensors(repo)
    sizes = [f.size or 0 for f in found.siblings or () if "/" not in f.rfilename and f.rfilename.endswith(WANTED)]
    return Remote(found.sha or "", sum(sizes))


def no_safetensors(repo: str) -> InputError:
    """What is said of a repository whose weights are none that are loaded."""
    return InputError(
        f"{repo} has no safetensors weights, and pickled weights are not loaded because they can run code. Use a "
        "repository or revision with model.safetensors, or convert the weights yourself and pass the folder."
    )


class CachedRepository(msgspec.Struct, frozen=True):
    """A repository in the Hub's cache: "model" or "kernel", its name, its bytes on disk."""

    kind: str
    repo: str
    bytes: int


def cached_repositories() -> list[CachedRepository]:
    """Models and kernels that were downloaded from the Hub, the largest first."""
    from huggingface_hub import constants, scan_cache_dir

    found = set[CachedRepository]()
    for place in {constants.HF_HUB_CACHE, os.environ.get("KERNELS_CACHE") or constants.HF_HUB_CACHE}:
        if Path(place).expanduser().is_dir():
            repos = scan_cache_dir(place).repos
            found |= {CachedRepository(one.repo_type, one.repo_id, one.size_on_disk) for one in repos}
    return sorted((one for one in found if one.kind in ("model", "kernel")), key=lambda one: -one.bytes)


def free_cache_bytes() -> int:
    """Free bytes of the disk that downloads go to."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free
