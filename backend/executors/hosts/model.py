"""Whether two machines mean the same model by one name."""

import hashlib
from pathlib import Path

import msgspec

from backend.models import ModelFacts, pinned


def digest_of(facts: ModelFacts) -> str:
    """Of where a model comes from, its matrices, and the names and sizes of its files in a folder. Where the folder is
    does not matter, and the weights' bytes are not read."""
    source = pinned(facts)
    files = []
    if source.path and (folder := Path(source.path)).is_dir():
        files = sorted((one.name, one.stat().st_size) for one in folder.iterdir() if one.is_file())
    found = msgspec.structs.replace(source, path=""), facts.matrices, files
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]
