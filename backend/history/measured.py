"""The measured run of what was predicted to fit: one of the visitor's, or one that comes with tokendyno."""

from collections.abc import Iterator, Mapping

import msgspec

from tokendyno.backend.fit.table import Fit
from tokendyno.backend.history.rows import Listing
from tokendyno.backend.hosting.visitor import Visitor
from tokendyno.backend.models import RANDOM, without
from tokendyno.backend.optimizations import defaults
from tokendyno.backend.recordings.recorded_runs import shipped_firsts
from tokendyno.backend.runs.row import choices_text, machine_text


class Measured(msgspec.Struct, frozen=True):
    """A run with an arm of the same model, with these or with random weights, and the same choices."""

    run: str
    machine: str

    @property
    def words(self) -> str:
        machine = self.machine or "an unknown machine"
        return f"The same choices ran on {machine}, with their own prompt and length: run {self.run}."


def measured(fitting: Fit, listing: Listing, visitor: Visitor) -> Measured | None:
    """The newest run of what fits, one on that device before others of its kind; None if nothing was measured."""
    if fitting.smallest.found is None:
        return None
    cpu = fitting.device.machine.device == "cpu"
    every = _runs(fitting, fitting.smallest.found.choices, listing, visitor)
    runs = [run for run in every if run.machine.endswith(" cores") == cpu]
    return next((run for run in runs if _is_on(run, fitting)), runs[0] if runs else None)


def _is_on(run: Measured, fitting: Fit) -> bool:
    """Whether a run had that device: one or several GPUs, or a CPU, after which its cores are named."""
    device = run.machine.partition(", ")[0].rpartition(" x ")[2]
    return device in fitting.device.names


def _runs(fitting: Fit, choices: Mapping[str, str], listing: Listing, visitor: Visitor) -> Iterator[Measured]:
    model, changed = without(RANDOM, fitting.facts.model), _changed(choices_text(choices))
    for row in listing.of_model(model, visitor):
        if any(_changed(arm.text) == changed for arm in row.arms):
            yield Measured(row.id, row.machine)
    for first in shipped_firsts():
        request = first.request
        alike = without(RANDOM, request.model) == model and request.traffic is None and request.quality is None
        if alike and any(_changed(choices_text(arm.choices)) == changed for arm in request.arms):
            yield Measured(first.id, machine_text(first.machine))


def _changed(text: str) -> set[str]:
    """What an arm, as `choices_text` wrote it, does not leave at its default."""
    return {*text.split(", ")} - {"defaults", *(f"{axis}={choice}" for axis, choice in defaults().items())}
