"""What fits: every quantization with every cache on one device, from a model's config alone. Nothing is loaded."""

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backend import limits
from backend.arms import make_config
from backend.config import MAX_BATCH_SIZE, Workload
from backend.errors import InputError
from backend.gpus import find_gpu
from backend.hardware import PACKAGES, Gpu, Machine
from backend.models import ModelFacts, resolve
from backend.optimizations import axes
from backend.predict.memory import MemoryEstimate, Setup, attention_of, peak_bytes
from backend.predict.roofline import Limits, floor
from backend.remedies import loss_rank
from backend.rules import check, setup_of

AXES = ("quantization", "cache")
DEFAULT_CONTEXT = 8_192
THIS = "this machine"
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40, "MB": 10**6, "GB": 10**9, "TB": 10**12}


@dataclass(frozen=True, slots=True)
class Device:
    """What a model shall fit on.

    memory_bytes  all of a card that is named; what is free now on this machine
    machine       the machine that rules look at; `here` says that it is this one
    note          a remark on its bandwidth, "" where it is known
    """

    name: str
    memory_bytes: int
    machine: Machine
    here: bool
    note: str = ""

    def limits(self, dtype: str) -> Limits | None:
        """What it can do at most, None where its bandwidth is not known."""
        if self.here:
            return limits.of_machine(self.machine, dtype)
        return None if self.note else limits.of_gpu(find_gpu(self.name), dtype)


@dataclass(frozen=True, slots=True)
class Row:
    """One combination at the asked context and batch.

    max_context  the longest context that fits, up to the model's positions; 0: not even one token
    floor_s      the least time of a token at the asked context; None where the bandwidth is not known
    note         why it would not run here although it fits, "" where it would
    """

    quantization: str
    cache: str
    weights_bytes: int
    kv_bytes: int
    peak_bytes: int
    max_context: int
    floor_s: float | None
    fits: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """The table, what fits first and with the least loss; `limits` is what the floors were worked out from."""

    facts: ModelFacts
    device: Device
    context: int
    batch: int
    rows: tuple[Row, ...]
    limits: Limits | None

    @property
    def best(self) -> Row | None:
        """The row that fits with the least loss and would run."""
        return next((row for row in self.rows if row.fits and not row.note), None)

    @property
    def scores_note(self) -> str:
        """A remark where eager attention is what transformers takes by itself: its scores may be most of the peak."""
        if attention_of(self.facts, Setup()) != "eager":
            return ""
        return (
            f"{self.facts.label} runs with eager attention unless told otherwise: the peaks hold its scores, which "
            "grow with the square of the prompt. A fused kernel of the axis attention does without them."
        )

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        found = self.limits
        gpu = {
            "name": self.device.name, "memory_bytes": self.device.memory_bytes, "this_machine": self.device.here,
            "bandwidth_bytes_per_s": found.bandwidth_bytes_per_s if found else None,
            "flops_per_s": found.flops_per_s if found else None,
            "bandwidth_source": found.source if found else None,
        }  # fmt: skip
        return {
            "schema": 1, "model": self.facts.model, "model_label": self.facts.label, "model_note": self.facts.note,
            "gpu": gpu, "context": self.context, "batch": self.batch, "note": self.device.note,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "best": {axis: getattr(self.best, axis) for axis in AXES} if self.best else None,
        }  # fmt: skip


def parse_size(text: str) -> int:
    """Bytes of a size such as 24GiB or 24GB; the unit must be written, since the two differ by 7%."""
    match = re.fullmatch(r"\s*([0-9]{1,7}(?:\.[0-9]{1,6})?)\s*([A-Za-z]+)\s*", text)
    units = {unit.casefold(): size for unit, size in UNITS.items()}
    size = round(float(match[1]) * units[match[2].casefold()]) if match and match[2].casefold() in units else 0
    if not 1 << 20 <= size <= 1 << 50:
        raise InputError(
            f"The size {text!r} cannot be read. Write a number with its unit: 24GiB (2^30) or 24GB (10^9)."
        )
    return size


def is_size(text: str) -> bool:
    """Whether a text begins like a size: a number first, where names of cards have letters."""
    return text.strip()[:1].isdigit()


def device_of(machine: Machine, gpu: str | None = None, vram: str | None = None, *, held_bytes: int = 0) -> Device:
    """The card of that name, an unknown card of that size, or this machine; there `held_bytes` would be given back."""
    if gpu is not None and vram is not None:
        raise InputError("Give --gpu or --vram, not both.")
    if gpu is not None and gpu.strip().casefold() != THIS:
        spec = find_gpu(gpu)
        return Device(
            spec.name, spec.memory_bytes, _like(machine, spec.name, spec.memory_bytes, spec.capability), False
        )
    if vram is not None:
        size = parse_size(vram)
        note = (
            "Nothing but the size of this GPU is known, so there are no floors. Name one of the catalogue with --gpu."
        )
        return Device(f"a GPU of {vram.strip()}", size, _like(machine, "a GPU", size, (9, 0)), False, note)
    name = machine.gpus[0].name if machine.gpus else machine.cpu
    return Device(name, machine.room_bytes + held_bytes, machine, True, limits.remark(machine))


def _like(machine: Machine, name: str, memory: int, capability: tuple[int, int]) -> Machine:
    """This machine with another GPU, and with every package: what is missing here says nothing of it."""
    gpu = Gpu(0, name, memory, memory, capability)
    return _stocked(dataclasses.replace(machine, gpus=(gpu,), gpu_problem=""))


def _roomy(machine: Machine) -> Machine:
    free = tuple(dataclasses.replace(gpu, free_bytes=1 << 60) for gpu in machine.gpus)
    return dataclasses.replace(machine, gpus=free, free_bytes=1 << 60)


def _stocked(machine: Machine) -> Machine:
    packages = dict.fromkeys(PACKAGES, "999") | dict(machine.packages)
    return dataclasses.replace(machine, packages=tuple(sorted(packages.items())), hub_offline=False)


def check_lengths(facts: ModelFacts, context: int | None, batch: int) -> int:
    """The context to work with, by default as much as is usual. InputError for what no run could have."""
    chosen = min(DEFAULT_CONTEXT, facts.max_positions) if context is None else context
    if not 1 <= batch <= MAX_BATCH_SIZE:
        raise InputError(f"The batch is {batch}; give a whole number from 1 to {MAX_BATCH_SIZE:,}.")
    if chosen < 1:
        raise InputError(f"The context is {chosen:,} tokens; give at least 1.")
    if chosen > facts.max_positions:
        raise InputError(
            f"The context is {chosen:,} tokens, but {facts.label} has {facts.max_positions:,} positions. Ask for no "
            "more than that."
        )
    return chosen


def fit(
    model: str, device: Device, context: int | None = None, batch: int = 1, models_dir: Path | None = None,
    *, local_paths: bool = True,
) -> Fit:  # fmt: skip
    """The table for a model by any reference; its config.json is enough."""
    facts = resolve(model, models_dir, local_paths=local_paths)
    chosen = check_lengths(facts, context, batch)
    defaults = {axis.name: axis.default for axis in axes()}
    choices = {axis.name: [choice.name for choice in axis.choices] for axis in axes()}
    rows = [
        row
        for quantization in choices.get("quantization", ["none"])
        for cache in choices.get("cache", ["dynamic"])
        if (row := _row(facts, device, {"quantization": quantization, "cache": cache}, chosen, batch)) is not None
    ]

    def order(row: Row) -> tuple[bool, bool, int, int]:
        ranks = [loss_rank({axis: getattr(row, axis)}, axis, defaults.get(axis, "none")) for axis in AXES]
        return not row.fits, bool(row.note), ranks[0], ranks[1]

    found = device.limits(_compute_dtype(facts, "auto"))
    return Fit(facts, device, chosen, batch, tuple(sorted(rows, key=order)), found)


def _row(facts: ModelFacts, device: Device, choices: dict[str, str], context: int, batch: int) -> Row | None:
    """One combination; None for one that this model, or a machine like that one with every package, refuses."""
    known = {axis.name: axis.default for axis in axes()}
    config = make_config(facts.model, {axis: choice for axis, choice in choices.items() if axis in known})
    work = Workload(prompt_tokens=max(1, context - 1), max_new_tokens=1, batch_size=batch)
    roomy = _roomy(device.machine)  # what fits is found out below
    able = _stocked(roomy)
    if any(v.level in ("blocked", "fallback") and v.axis != "model" for v in check(config, facts, able, work).verdicts):
        return None
    checked = check(config, facts, roomy, work)
    setup = setup_of(checked.plan, device.machine)
    note = "" if not device.here else next((v.reason for v in checked.blocked if v.axis != "model"), "")
    estimate = _at(facts, setup, context, batch)
    found = device.limits(_compute_dtype(facts, setup.dtype))
    return Row(
        choices["quantization"], choices["cache"], estimate.weights, estimate.kv, estimate.total,
        _longest(facts, setup, device.memory_bytes, batch),
        None if found is None else floor(facts, setup, context, batch, found).seconds,
        estimate.total <= device.memory_bytes, note,
    )  # fmt: skip


def _at(facts: ModelFacts, setup: Setup, context: int, batch: int) -> MemoryEstimate:
    """The peak of a prompt that fills the context but for one token: the most that a context can need."""
    return peak_bytes(facts, setup, max(1, context - 1), 1, batch)


def _longest(facts: ModelFacts, setup: Setup, room: int, batch: int) -> int:
    """The longest context that fits, by halving: more tokens never need less."""
    low, high = 0, facts.max_positions
    while low < high:
        middle = (low + high + 1) // 2
        if _at(facts, setup, middle, batch).total <= room:
            low = middle
        else:
            high = middle - 1
    return low


def _compute_dtype(facts: ModelFacts, dtype: str) -> str:
    return facts.dtype if dtype == "auto" else dtype
