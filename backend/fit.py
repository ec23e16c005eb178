"""What fits: every quantization with every cache on one device, from a model's config alone. Nothing is loaded."""

import dataclasses
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.arms import make_config
from backend.config import MAX_BATCH_SIZE, Workload
from backend.errors import InputError
from backend.fit_device import Device, roomy, several, stocked
from backend.models import ModelFacts, resolve
from backend.optimizations import axes
from backend.predict import parallel
from backend.predict.memory import MemoryEstimate, Setup, attention_of, peak_bytes
from backend.predict.roofline import Limits, floor
from backend.remedies import loss_rank
from backend.rules import check, setup_of

AXES = ("quantization", "cache")
DEFAULT_CONTEXT = 8_192


@dataclass(frozen=True, slots=True)
class Row:
    """One combination at the asked context and batch; bytes are those of one GPU.

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
    """The table, what fits first and with the least loss.

    limits      what the floors were worked out from
    gpus        how many share the model; `refused`: why quantizations were left out that one GPU alone could have
    """

    facts: ModelFacts
    device: Device
    context: int
    batch: int
    rows: tuple[Row, ...]
    limits: Limits | None
    gpus: int = 1
    refused: tuple[str, ...] = ()

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
            "gpu": gpu, "gpus": self.gpus, "context": self.context, "batch": self.batch, "note": self.device.note,
            "rows": [dataclasses.asdict(row) for row in self.rows],
            "best": {axis: getattr(self.best, axis) for axis in AXES} if self.best else None,
        }  # fmt: skip


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
    *, gpus: int = 1, local_paths: bool = True,
) -> Fit:  # fmt: skip
    """The table for a model by any reference; its config.json is enough."""
    facts = resolve(model, models_dir, local_paths=local_paths)
    chosen = check_lengths(facts, context, batch)
    shared = parallel.sizes(facts, gpus)
    parallel.check_sizes(facts, *shared)
    device = several(device, gpus)
    defaults = {axis.name: axis.default for axis in axes()}
    choices = {axis.name: [choice.name for choice in axis.choices] for axis in axes()}
    rows, refused = list[Row](), dict[str, None]()
    for quantization in choices.get("quantization", ["none"]):
        for cache in choices.get("cache", ["dynamic"]):
            row = _row(facts, device, {"quantization": quantization, "cache": cache}, chosen, batch, shared)
            if row is None:
                continue
            reason = parallel.refusal(facts, quantization, gpus)
            if reason:
                refused[reason] = None
            else:
                rows.append(row)
    if refused and not rows:
        raise InputError(f"{facts.label} cannot be split over {gpus} GPUs. {' '.join(refused)} Ask for one GPU.")

    def order(row: Row) -> tuple[bool, bool, int, int]:
        ranks = [loss_rank({axis: getattr(row, axis)}, axis, defaults.get(axis, "none")) for axis in AXES]
        return not row.fits, bool(row.note), ranks[0], ranks[1]

    found = device.limits(_compute_dtype(facts, "auto"))
    return Fit(facts, device, chosen, batch, tuple(sorted(rows, key=order)), found, gpus, tuple(refused))


def _row(
    facts: ModelFacts, device: Device, choices: dict[str, str], context: int, batch: int, shared: tuple[int, int]
) -> Row | None:
    """One combination; None for one that this model, or a machine like that one with every package, refuses."""
    known = {axis.name: axis.default for axis in axes()}
    config = make_config(facts.model, {axis: choice for axis, choice in choices.items() if axis in known})
    work = Workload(prompt_tokens=max(1, context - 1), max_new_tokens=1, batch_size=batch)
    spacious = roomy(device.machine)  # what fits is found out below
    able = stocked(spacious)
    if any(v.level in ("blocked", "fallback") and v.axis != "model" for v in check(config, facts, able, work).verdicts):
        return None
    checked = check(config, facts, spacious, work)
    tensor, expert = shared
    setup = replace(setup_of(checked.plan, device.machine), tensor_parallel=tensor, expert_parallel=expert)
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
