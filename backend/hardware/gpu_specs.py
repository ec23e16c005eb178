"""The catalogue of GPUs: published specifications, from presets/gpus.toml."""

import difflib
import functools
import re
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.files.toml import read_toml, refuse_duplicates
from tokendyno.backend.paths import PRESETS

FILE = PRESETS / "gpus.toml"


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """Published specifications of one GPU.

    nvml                   the names that NVML gives it
    bandwidth_bytes_per_s  peak memory bandwidth
    flops_per_s            dense operations per second by torch dtype; a dtype whose rate is unknown is missing
    link_bytes_per_s       NVLink to another GPU of the host, each way; None where not every board has it
    """

    name: str
    nvml: tuple[str, ...]
    memory_bytes: int
    bandwidth_bytes_per_s: float
    capability: tuple[int, int]
    flops_per_s: dict[str, float] = field(default_factory=dict, hash=False)
    source: str = ""
    link_bytes_per_s: float | None = None


_Rate = Annotated[float, msgspec.Meta(gt=0)]


class _GpuTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    nvml: list[str]
    memory_mib: Annotated[int, msgspec.Meta(gt=0)]
    bandwidth_gb_per_s: _Rate
    capability: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+$")]
    source: Annotated[str, msgspec.Meta(pattern="^https://")]
    bfloat16: _Rate | None = None
    float16: _Rate | None = None
    float8: _Rate | None = None
    int8: _Rate | None = None
    float32: _Rate | None = None
    nvlink_gb_per_s: _Rate | None = None


class _GpuFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    gpu: list[_GpuTable]


_RATES = {"bfloat16": "bfloat16", "float16": "float16", "float8": "float8_e4m3fn", "int8": "int8", "float32": "float32"}
"""Key in the file -> torch dtype."""


@functools.cache
def gpus() -> tuple[GpuSpec, ...]:
    """All GPUs of the catalogue, in the file's order. Read once; InputError where the file is wrong."""
    specs = tuple(map(_spec, read_toml(FILE, _GpuFile).gpu))
    refuse_duplicates(FILE, (key for spec in specs for key in {_key(name) for name in (spec.name, *spec.nvml)}))
    return specs


def _spec(table: _GpuTable) -> GpuSpec:
    major, minor = table.capability.split(".")
    rates = {dtype: 1e12 * rate for name, dtype in _RATES.items() if (rate := getattr(table, name)) is not None}
    return GpuSpec(
        table.name,
        tuple(table.nvml),
        table.memory_mib << 20,
        table.bandwidth_gb_per_s * 1e9,
        (int(major), int(minor)),
        rates,
        table.source,
        1e9 * table.nvlink_gb_per_s if table.nvlink_gb_per_s else None,
    )


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold().removeprefix("nvidia"))


def find_by_nvml_name(nvml_name: str) -> GpuSpec | None:
    """The GPU with exactly this name in NVML; None if the catalogue has none, since nothing is guessed."""
    return next((spec for spec in gpus() if nvml_name in spec.nvml), None)


def find_gpu(name: str) -> GpuSpec:
    """The GPU that a user names, in any case and punctuation; InputError with the nearest names if there is none."""
    key = _key(name)
    for spec in gpus():
        if key in {_key(spec.name), *map(_key, spec.nvml)}:
            return spec
    names = {_key(spec.name): spec.name for spec in gpus()}
    model = _key(re.sub(r"(?i)\b\d+\s*gi?b\b", "", name)) or key
    similar = [other for other in names if key and (model in other or other in model)]
    similar = similar or difflib.get_close_matches(key, names, n=3, cutoff=0.5)
    if re.fullmatch(r"\s*\d+(\.\d+)?\s*gi?b\s*", name, re.IGNORECASE):
        raise InputError(
            f"{shown(name)} is a size of memory. What fits in it: tokendyno fit --vram {shown(''.join(name.split()))}. "
            "GPUs by name: tokendyno list gpus."
        )
    known = f"Did you mean {' or '.join(names[other] for other in similar[:3])}? " if similar else ""
    raise InputError(
        f"The catalogue has no GPU {shown(name)!r}. {known}All of them: tokendyno list gpus. Fit takes any other GPU "
        "by its memory: tokendyno fit --vram 24GiB."
    )
