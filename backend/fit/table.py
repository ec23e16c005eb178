"""What fits on a device: every combination of the table's axes, predicted from the model's config alone."""

import dataclasses
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.arms.check import Checked, check
from backend.arms.parse import make_config
from backend.config import MAX_BATCH_SIZE, Workload
from backend.errors import InputError
from backend.fit.device import Device, roomy, several, stocked
from backend.hardware import Machine
from backend.hardware.peak_rates import PeakRates
from backend.models import ModelFacts, resolve
from backend.optimizations import Optimization, all_axes
from backend.predict import parallel
from backend.predict.memory import MemoryEstimate, attention_of, peak_bytes
from backend.predict.roofline import bound
from backend.predict.setup import Setup, setup_of

DEFAULT_CONTEXT = 8_192


@dataclass(frozen=True, slots=True)
class FitRow:
    """One combination at the requested context and batch; bytes are per GPU.

    choices      of each axis of the table, by name
    max_context  longest context that fits, up to the model's positions; 0 if not even one token does
    floor_s      roofline bound per token at the requested context; None if the bandwidth is unknown
    note         why it would not run on this machine although it fits, or ""
    """

    choices: Mapping[str, str]
    weights_bytes: int
    kv_bytes: int
    peak_bytes: int
    max_context: int
    floor_s: float | None
    fits: bool
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fit:
    """The table: rows that fit come first, least lossy first.

    limits   peak rates behind the roofline bounds; None if unknown
    gpus     number of GPUs that share the model
    refused  why quantizations that run on one GPU were left out for several
    """

    facts: ModelFacts
    device: Device
    context: int
    batch: int
    rows: tuple[FitRow, ...]
    limits: PeakRates | None
    gpus: int = 1
    refused: tuple[str, ...] = ()

    @property
    def best(self) -> FitRow | None:
        """The least lossy row that fits and would run."""
        return next((row for row in self.rows if row.fits and not row.note), None)

    @property
    def scores_note(self) -> str:
        """A note for models that default to eager attention, whose scores may dominate the peak."""
        if attention_of(self.facts, Setup()) != "eager":
            return ""
        return (
            f"{self.facts.label} defaults to eager attention: the peaks include its score matrix, which grows with the "
            "square of the prompt length. A fused attention kernel avoids it."
        )

    def as_json(self) -> dict[str, Any]:
        """The JSON document."""
        found = self.limits
        gpu = {
            "name": self.device.name, "memory_bytes": self.device.memory_bytes, "this_machine": self.device.here,
            "bandwidth_bytes_per_s": found.bandwidth_bytes_per_s if found else None,
            "flops_per_s": found.flops_per_s if found else None,
            "bandwidth_source": found.source if found else None,
        }  # fmt: skip
        return {
            "kind": "fit", "schema": 2,
            "model": self.facts.model, "model_label": self.facts.label, "model_note": self.facts.note,
            "gpu": gpu, "gpus": self.gpus, "context": self.context, "batch": self.batch, "note": self.device.note,
            "rows": [_row_json(row) for row in self.rows],
            "best": dict(self.best.choices) if self.best else None,
        }  # fmt: skip


def _row_json(row: FitRow) -> dict[str, Any]:
    """A flat record: the choices by axis, then the rest."""
    rest = {field.name: getattr(row, field.name) for field in dataclasses.fields(row) if field.name != "choices"}
    return dict(row.choices) | rest


def table_axes() -> tuple[Optimization, ...]:
    """The axes whose choices make up the rows."""
    return tuple(axis for axis in all_axes() if axis.in_fit_table)


def check_lengths(facts: ModelFacts, context: int | None, batch: int) -> int:
    """The context to use, requested or default. InputError for a context or batch that no run can have."""
    chosen = min(DEFAULT_CONTEXT, facts.max_positions) if context is None else context
    if not 1 <= batch <= MAX_BATCH_SIZE:
        raise InputError(f"Batch size {batch} must be a whole number from 1 to {MAX_BATCH_SIZE:,}.")
    if chosen < 1:
        raise InputError(f"Context {chosen:,} must be at least 1 token.")
    if chosen > facts.max_positions:
        raise InputError(
            f"A context of {chosen:,} tokens is too long: {facts.label} has {facts.max_positions:,} positions. "
            "Shorten it."
        )
    return chosen


def fit(
    model: str, device: Device, context: int | None = None, batch: int = 1, models_dir: Path | None = None,
    *, gpus: int = 1, local_paths: bool = True,
) -> Fit:  # fmt: skip
    """The table for a model, given by any reference; its config.json is enough. InputError if it cannot be split."""
    facts = resolve(model, models_dir, local_paths=local_paths)
    chosen = check_lengths(facts, context, batch)
    shared = parallel.group_sizes(facts, gpus)
    parallel.check_sizes(facts, *shared)
    device = several(device, gpus)
    axes = table_axes()
    rows, refused = list[FitRow](), dict[str, None]()
    for names in itertools.product(*([choice.name for choice in axis.choices] for axis in axes)):
        arm = _Arm(facts, {axis.name: name for axis, name in zip(axes, names, strict=True)}, chosen, batch, shared)
        possible = arm.on(stocked(roomy(device.machine)))
        if any(v.level in ("blocked", "fallback") and v.axis != "model" for v in possible.verdicts):
            continue
        if reason := parallel.refusal(facts, possible.plan.load.quantization, *shared):
            refused[reason] = None
        else:
            rows.append(_row(arm, device))
    if refused and not rows:
        raise InputError(f"{facts.label} cannot be split over {gpus} GPUs. {' '.join(refused)} Use one GPU.")

    def order(row: FitRow) -> tuple[bool, bool, list[int]]:
        return not row.fits, bool(row.note), [axis.loss(row.choices[axis.name]) for axis in axes]

    found = device.limits(_compute_dtype(facts, "auto"))
    return Fit(facts, device, chosen, batch, tuple(sorted(rows, key=order)), found, gpus, tuple(refused))


@dataclass(frozen=True, slots=True)
class _Arm:
    """A combination of choices and the work it is given: one prompt that fills all of the context but one token."""

    facts: ModelFacts
    choices: Mapping[str, str]
    context: int
    batch: int
    shared: tuple[int, int]

    def on(self, machine: Machine) -> Checked:
        work = Workload(prompt_tokens=max(1, self.context - 1), max_new_tokens=1, batch_size=self.batch)
        return check(make_config(self.facts.model, self.choices), self.facts, machine, work)


def _row(arm: _Arm, device: Device) -> FitRow:
    checked = arm.on(roomy(device.machine))  # whether it fits is worked out here, not by the rules
    tensor, expert = arm.shared
    setup = replace(setup_of(checked.plan, device.machine), tensor_parallel=tensor, expert_parallel=expert)
    note = "" if not device.here else next((v.reason for v in checked.blocked if v.axis != "model"), "")
    estimate = _at(arm.facts, setup, arm.context, arm.batch)
    found = device.limits(_compute_dtype(arm.facts, setup.dtype))
    return FitRow(
        arm.choices, estimate.weights, estimate.kv, estimate.total,
        _longest(arm.facts, setup, device.memory_bytes, arm.batch),
        None if found is None else bound(arm.facts, setup, arm.context, arm.batch, found).seconds,
        estimate.total <= device.memory_bytes, note,
    )  # fmt: skip


def _at(facts: ModelFacts, setup: Setup, context: int, batch: int) -> MemoryEstimate:
    """The peak of a prompt that fills the context but for one token: the worst case for that context."""
    return peak_bytes(facts, setup, max(1, context - 1), 1, batch)


def _longest(facts: ModelFacts, setup: Setup, room_bytes: int, batch: int) -> int:
    """The longest context that fits, by bisection: memory never falls as the context grows."""
    low, high = 0, facts.max_positions
    while low < high:
        middle = (low + high + 1) // 2
        if _at(facts, setup, middle, batch).total <= room_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def _compute_dtype(facts: ModelFacts, dtype: str) -> str:
    return facts.dtype if dtype == "auto" else dtype
