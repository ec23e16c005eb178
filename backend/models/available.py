"""Whether a model's files are here, or can be fetched as far as that is known before a worker is started."""

from pathlib import Path

import msgspec

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.catalogue import find
from tokendyno.backend.models.facts import ModelFacts
from tokendyno.backend.models.files import folder, hub
from tokendyno.backend.models.files.config_fields import read_json
from tokendyno.backend.models.files.gguf import read_gguf
from tokendyno.backend.models.source import ModelSource


def check_loadable(facts: ModelFacts) -> None:
    """InputError unless local weights are complete and readable; those of the Hub are not looked at."""
    path = Path(facts.source.path)
    if facts.source.kind in ("embedded", "folder"):
        _check_folder(path)
    elif facts.source.kind == "gguf":
        missing_bytes = read_gguf(path).missing_bytes
        if missing_bytes:
            raise InputError(f"{path} is truncated: {missing_bytes:,} bytes are missing. Download or copy it again.")


def obstacle(facts: ModelFacts, offline: bool) -> str:
    """Why this model cannot be loaded here now, and what to do; "" if nothing is known. `offline`: HF_HUB_OFFLINE."""
    try:
        check_loadable(facts)
        if facts.source.kind == "hub":
            _check_hub(facts, offline)
    except InputError as error:
        return str(error)
    return ""


def _check_hub(facts: ModelFacts, offline: bool) -> None:
    repo, revision = facts.source.repo, facts.source.revision
    name = f"{repo}@{revision}" if revision else repo
    lacking = hub.lacking(repo, facts.source.at)
    if not lacking:
        here = hub.snapshot(repo, facts.source.at)
        if here is not None:
            check_cached(here, repo)
        return
    entry = find(repo)
    shape = f"or run its architecture without a download: random:{entry.name if entry else 'NAME'}"
    if offline:
        raise InputError(
            f"{name} {lacking}, and downloads are off (HF_HUB_OFFLINE). Unset it to download the model, give a "
            f"local folder, {shape}."
        )
    try:
        hub.remote(repo, facts.source.at)
    except hub.HubUnreachable as error:
        raise InputError(
            f"{name} {lacking}, and the Hub could not be reached ({error.cause}). Check the connection, give a "
            f"local folder, {shape}."
        ) from error
    here = hub.snapshot(repo, facts.source.at)
    if here is not None:
        folder.refuse_quantized_beside(here, read_json(here / "config.json"), repo)


def _check_folder(path: Path) -> None:
    """InputError unless the files of a model can be loaded, as far as is known without building it."""
    folder.check_weights(path)
    folder.refuse_quantized_beside(path, read_json(path / "config.json"))
    folder.check_tokenizer(path)


def check_cached(here: Path, repo: str) -> None:
    """InputError if a file of a finished download is torn: the Hub's client takes a file that is there for whole."""
    try:
        _check_folder(here)
    except InputError as error:
        raise InputError(
            f"{str(error).replace(str(here), repo)} It lies in the Hub's cache, where nothing is downloaded twice: "
            f"remove it there first (hf cache rm model/{repo})."
        ) from None


def pinned(facts: ModelFacts) -> ModelSource:
    """The source with the commit that `obstacle` has just looked at, so that nothing else is downloaded later."""
    source = facts.source
    if source.kind != "hub" or source.commit:
        return source
    if not hub.lacking(source.repo, source.revision):
        here = hub.snapshot(source.repo, source.revision)
        return msgspec.structs.replace(source, commit=here.name if here else "")
    return msgspec.structs.replace(source, commit=hub.remote(source.repo, source.revision).commit)


def download_bytes(source: ModelSource) -> int:
    """Bytes of the files of a Hub model that would be downloaded; 0 for one that is here. It follows `obstacle`."""
    if source.kind != "hub" or not hub.lacking(source.repo, source.at):
        return 0
    return hub.remote(source.repo, source.at).file_bytes
