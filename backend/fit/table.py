"""What fits on a device: every combination of the table's axes, predicted from the model's config alone."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokendyno.backend.config import MAX_BATCH_SIZE
from tokendyno.backend.errors import InputError
from tokendyno.backend.fit.device import Device, of_gpus, several
from tokendyno.backend.fit.row import Card, FitArm, FitRow, cards, fit_row, unloadable, why_refused
from tokendyno.backend.fit.smallest import Arrangement, Smallest, smallest
from tokendyno.backend.hardware.elsewhere import stocked
from tokendyno.backend.hardware.peak_rates import PeakRates
from tokendyno.backend.models import ModelFacts, resolve
from tokendyno.backend.optimizations import Optimization, all_axes
from tokendyno.backend.predict import parallel
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import attention_of

DEFAULT_CONTEXT = 8_192
SAVES = 0.01
"""By what share a cache must take less memory than the less lossy ones to be a main row of the best quantization."""


@dataclass(frozen=True, slots=True)
class Fit:
    """The table: the answer, if it is none of the other rows; of these those that fit come first, least lossy first.

    limits   peak rates behind the roofline bounds; None if unknown
    refused  why quantizations that run on one GPU were left out for several
    """

    facts: ModelFacts
    device: Device
    context: int
    batch: int
    rows: tuple[FitRow, ...]
    limits: PeakRates | None
    smallest: Smallest
    gpus: int = 1
    refused: tuple[str, ...] = ()

    @property
    def best(self) -> FitRow | None:
        """The least lossy row that fits and, on this machine, would run."""
        rows = (row for row in self.rows if row.fits and not row.enough_gpus)
        return next((row for row in rows if not (self.device.here and row.not_here)), None)

    @property
    def main(self) -> tuple[FitRow, ...]:
        """The rows that are shown at first."""
        return tuple(row for row in self.rows if row.main)

    @property
    def encoder(self) -> bool:
        """Whether the model generates nothing: there is no cache, and a bound is that of a pass over the input."""
        return self.facts.kind == "encoder"

    @property
    def scores_note(self) -> str:
        """A note for models that default to eager attention, whose scores may dominate the peak."""
        if attention_of(self.facts, Setup()) != "eager":
            return ""
        return (
            f"{self.facts.label} defaults to eager attention: the peaks include its score matrix, which grows with the "
            "square of the prompt length. A fused attention kernel avoids it, and so does a prompt in chunks (prefill)."
        )

    def as_json(self) -> dict[str, Any]:
        """The JSON document."""
        rates = self.limits
        gpu = {
            "name": self.device.name,
            "memory_bytes": self.device.memory_bytes,
            "this_machine": self.device.here,
            "bandwidth_bytes_per_s": rates.bandwidth_bytes_per_s if rates else None,
            "flops_per_s": rates.flops_per_s if rates else None,
            "bandwidth_source": rates.source if rates else None,
        }
        return {
            "kind": "fit",
            "schema": 3,
            "model": self.facts.model,
            "model_label": self.facts.label,
            "model_note": self.facts.note,
            "gpu": gpu,
            "gpus": self.gpus,
            "context": self.context,
            "batch": self.batch,
            "note": self.device.note,
            "rows": [_row_json(row) for row in self.rows],
            "best": dict(self.best.choices) if self.best else None,
        }


def _row_json(row: FitRow) -> dict[str, Any]:
    """A flat record: the choices by axis, then the rest."""
    names = [field.name for field in dataclasses.fields(row) if field.name not in ("choices", "beside")]
    return dict(row.choices) | {name: getattr(row, name) for name in names}


def table_axes(facts: ModelFacts) -> tuple[Optimization, ...]:
    """The axes whose choices make up the rows: those that can change anything for this model."""
    return tuple(axis for axis in all_axes() if axis.in_fit_table and axis.matters(facts))


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
    model: str,
    device: Device,
    context: int | None = None,
    batch: int = 1,
    models_dir: Path | None = None,
    *,
    gpus: int = 1,
    local_paths: bool = True,
) -> Fit:
    """The table for a model, given by any reference; its config.json is enough. InputError if it cannot be split."""
    return fit_facts(resolve(model, models_dir, local_paths=local_paths), device, context, batch, gpus)


def fit_facts(
    facts: ModelFacts, device: Device, context: int | None = None, batch: int = 1, gpus: int = 1, obstacle: str = ""
) -> Fit:
    """The table for a model whose facts are known. `obstacle`: why it cannot be loaded on this machine, or ""."""
    chosen = check_lengths(facts, context, batch)
    shared = parallel.group_sizes(facts, gpus)
    parallel.check_sizes(facts, *shared)
    device = several(device, gpus)
    if not device.here:
        device = dataclasses.replace(device, machine=of_gpus(device.machine, gpus))
    axes, offered, why = table_axes(facts), cards(device.home, gpus), obstacle or unloadable(facts)
    choice = parallel.choice_of(facts, gpus) if gpus > 1 else ""
    missing = parallel.NO_CHOICE if gpus > 1 and not choice else why
    rows, unsplit = list[FitRow](), dict[str, None]()
    for names in itertools.product(*([choice.name for choice in axis.choices] for axis in axes)):
        arm = FitArm(facts, {axis.name: name for axis, name in zip(axes, names, strict=True)}, chosen, batch, shared)
        possible = arm.on(stocked(device.machine))
        if why_refused(possible) or any(possible.planned[axis] != name for axis, name in arm.choices.items()):
            continue  # or is another row: gpt-oss without a choice is in MXFP4
        reason = parallel.unrunnable(facts, possible.plan.load.quantization, *shared)
        if choice and not reason:
            arm = dataclasses.replace(arm, choices={**arm.choices, "parallel": choice})
            reason = why_refused(arm.on(stocked(device.machine)))
        if reason:
            unsplit[reason] = None
        else:
            rows.append(fit_row(arm, device, offered, missing))
    if unsplit and not rows:
        raise InputError(f"{facts.label} cannot be split over {gpus} GPUs. {' '.join(unsplit)} Use one GPU.")

    def order(row: FitRow) -> tuple[bool, bool, list[int]]:
        unusable = device.here and bool(row.not_here)
        return not row.fits, unusable, [axis.loss(row.choices[axis.name]) for axis in axes]

    ordered = _marked(sorted(rows, key=order), axes[0].name)
    answer = smallest(facts, device, chosen, batch, gpus, why)
    if answer.found is not None and (beside := _beside(answer.found, facts, axes, gpus)):
        ordered = (_answer_row(answer.found, beside, facts, device, (chosen, batch, gpus), offered, why), *ordered)
    return Fit(facts, device, chosen, batch, ordered, device.limits(facts.dtype), answer, gpus, tuple(unsplit))


def _beside(found: Arrangement, facts: ModelFacts, axes: Sequence[Optimization], gpus: int) -> Mapping[str, str]:
    """The choices by which an arrangement is none of the rows, which share the model among so many GPUs."""
    names = {axis.name for axis in axes}
    beside = {axis: choice for axis, choice in found.choices.items() if axis not in names}
    usual = found.gpus == gpus and beside.get("parallel") == parallel.choice_of(facts, gpus)
    return {axis: choice for axis, choice in beside.items() if axis != "parallel"} if usual else beside


def _answer_row(
    found: Arrangement,
    beside: Mapping[str, str],
    facts: ModelFacts,
    device: Device,
    lengths: tuple[int, int, int],
    offered: Sequence[Card],
    missing: str,
) -> FitRow:
    """The row of the answer, where it is none of the others. Where it takes more GPUs, bytes are of each."""
    defaults = {axis.name: axis.default for axis in table_axes(facts)}
    context, batch, gpus = lengths
    arm = FitArm(facts, {**defaults, **found.choices}, context, batch)
    planned = arm.on(stocked(device.machine)).planned
    arm = dataclasses.replace(arm, choices={axis: planned[axis] for axis in arm.choices})
    row = fit_row(arm, dataclasses.replace(device, machine=of_gpus(device.machine, found.gpus)), offered, missing)
    return dataclasses.replace(
        row,
        beside=beside,
        peak_bytes=found.needed_bytes,
        margin_bytes=found.room_bytes - found.needed_bytes,
        margin=found.margin,
        max_context=found.max_context,
        fits=True,
        enough_gpus=found.gpus if found.gpus > gpus else 0,
        smallest_gpu=row.smallest_gpu
        or (device.name if found.gpus == gpus and not device.here and not device.note else ""),
        main=True,
    )


def _marked(rows: list[FitRow], first: str) -> tuple[FitRow, ...]:
    """The rows with `main` set: the first of each choice of `first`, and of the best what saves memory."""
    least: dict[str, int] = {}
    marked = []
    for row in rows:
        name = row.choices[first]
        saves = name == rows[0].choices[first] and row.peak_bytes < (1 - SAVES) * least.get(name, 0)
        if main := name not in least or saves:
            least[name] = row.peak_bytes
        marked.append(dataclasses.replace(row, main=main))
    return tuple(marked)
