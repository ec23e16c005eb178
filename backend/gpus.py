"""The GPUs known by name, read strictly from presets/gpus.toml."""

import difflib
import functools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from backend.errors import InputError

FILE = Path(__file__).resolve().parents[1] / "presets" / "gpus.toml"


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """What a maker says of one card; None is not known, never 0.

    memory_bytes           all of it, as NVML counts it
    bandwidth_bytes_per_s  the data sheet's peak between memory and chip
    flops_per_s            dense operations a second by the dtype they are computed in, as far as known
    source                 where it was read
    """

    name: str
    nvml: tuple[str, ...]
    memory_bytes: int
    bandwidth_bytes_per_s: float
    capability: tuple[int, int]
    flops_per_s: dict[str, float] = field(default_factory=dict, hash=False)
    source: str = ""


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    nvml: list[str]
    memory_mib: int
    bandwidth_gb_per_s: float
    capability: str
    source: str
    bfloat16: float | None = None
    float16: float | None = None
    float8: float | None = None
    int8: float | None = None
    float32: float | None = None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    gpu: list[_Row]


_RATES = {"bfloat16": "bfloat16", "float16": "float16", "float8": "float8_e4m3fn", "int8": "int8", "float32": "float32"}


@functools.cache
def gpus() -> tuple[GpuSpec, ...]:
    """All of them, in the file's order."""
    return read_gpus(FILE)


def read_gpus(path: Path) -> tuple[GpuSpec, ...]:
    """The cards of one file; InputError names the file and what is wrong in it."""
    try:
        rows = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _File, strict=True).gpu
        found = tuple(_spec(row) for row in rows)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError, ValueError) as error:
        raise InputError(f"{path} cannot be used: {error}. Correct the file or install tokendyno again.") from None
    keys = [key for spec in found for key in {_key(name) for name in (spec.name, *spec.nvml)}]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise InputError(f"{path}: the name {twice!r} stands there twice. Rename one of them.")
    return found


def _spec(row: _Row) -> GpuSpec:
    match = re.fullmatch(r"(\d+)\.(\d+)", row.capability)
    if match is None:
        raise ValueError(f"capability of {row.name!r} is {row.capability!r}; two numbers such as 9.0 are needed")
    numbers = [row.memory_mib, row.bandwidth_gb_per_s, *(getattr(row, name) or 1 for name in _RATES)]
    if not all(number > 0 for number in numbers) or not row.source.startswith("https://"):
        raise ValueError(f"{row.name!r} needs positive numbers and a source that is an address")
    rates = {dtype: 1e12 * rate for name, dtype in _RATES.items() if (rate := getattr(row, name)) is not None}
    return GpuSpec(
        row.name, tuple(row.nvml), row.memory_mib << 20, row.bandwidth_gb_per_s * 1e9,
        (int(match[1]), int(match[2])), rates, row.source,
    )  # fmt: skip


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold().removeprefix("nvidia"))


def recognise(nvml_name: str) -> GpuSpec | None:
    """The card that NVML calls by this name, None where it is not in the catalogue: nothing is guessed."""
    return next((spec for spec in gpus() if nvml_name in spec.nvml), None)


def find_gpu(name: str) -> GpuSpec:
    """The card that a user means; InputError with the nearest names for one that is not in the catalogue."""
    wanted = _key(name)
    for spec in gpus():
        if wanted in {_key(spec.name), *map(_key, spec.nvml)}:
            return spec
    names = {_key(spec.name): spec.name for spec in gpus()}
    near = [names[key] for key in names if wanted and (wanted in key or key in wanted)]
    near = near or [names[key] for key in difflib.get_close_matches(wanted, names, n=3, cutoff=0.5)]
    hint = f" Did you mean {' or '.join(near[:3])}?" if near else ""
    raise InputError(
        f"There is no GPU {name!r} in the catalogue.{hint} Known: {', '.join(spec.name for spec in gpus())}. For "
        "another card give its memory, such as 24GiB (--vram); this machine's own is measured: tokendyno doctor "
        "--bandwidth."
    )
