"""Compile artefacts: all that was compiled for the settings of a run, in one file that fills an empty cache.

A file of artefacts contains generated code and pickles, so loading one runs code: the folder is private to this user,
and a file that anybody else could have written is ignored. torch uses an artefact only for the same graph, settings and
versions.
"""

import hashlib
from typing import NamedTuple

import msgspec
import torch

from tokendyno.backend import hardware, paths
from tokendyno.backend.files.whole import PRIVATE, write_whole
from tokendyno.backend.plan import Plan


class Taken(NamedTuple):
    """What was loaded from a file of artefacts; `note` says why if nothing was. `cold_before_s`: the compile phase of
    the run that saved it, without artefacts."""

    loaded_bytes: int = 0
    cold_before_s: float = 0.0
    note: str = ""


def key_of(plan: Plan, batch_size: int, length: int) -> str:
    """Key of these settings, shapes, versions and this device. `length`: slots of a static cache."""
    installed = hardware.versions()
    device = torch.cuda.get_device_name() if plan.load.device == "cuda" else hardware.detect().cpu
    versions = [str(torch.__version__), installed.get("transformers", ""), installed.get("triton", "")]
    settings = msgspec.json.encode([plan.load, plan.generate, batch_size, length, device, versions])
    return hashlib.sha256(settings).hexdigest()[:24]


def take(key: str) -> Taken:
    """Load the artefacts of that key into the current cache. A file that cannot be used is ignored, with a note."""
    path = paths.private_folder("artefacts") / f"{key}.bin"
    metadata = path.with_suffix(".json")
    if not path.exists():
        return Taken(note="no compile artefacts yet for these settings: they are saved after this warm-up")
    try:
        if any(file.is_symlink() or not paths.is_private(file) for file in (path, metadata)):
            raise ValueError("other users can write to it")
        cold_s = msgspec.json.decode(metadata.read_bytes(), type=dict[str, float]).get("cold_s", 0.0)
        data = path.read_bytes()
        if torch.compiler.load_cache_artifacts(data) is None:
            raise ValueError("torch cannot read it")
    except Exception as error:  # of files, of JSON, and whatever unpickling and writing into a cache may raise
        why = error.strerror if isinstance(error, OSError) else f"{error}"[:200]
        return Taken(note=f"compile artefacts ignored: {path.name}: {why}; they are saved anew after this warm-up")
    return Taken(len(data), cold_s)


def save(key: str, cold_s: float) -> int:
    """Save what was compiled since the settings last changed; returns the bytes, 0 if torch has nothing to save."""
    artefacts = torch.compiler.save_cache_artifacts()
    if artefacts is None:
        return 0
    data, folder = artefacts[0], paths.private_folder("artefacts")
    write_whole(folder / f"{key}.bin", data, PRIVATE)
    write_whole(folder / f"{key}.json", msgspec.json.encode({"cold_s": cold_s}), PRIVATE)
    return len(data)
