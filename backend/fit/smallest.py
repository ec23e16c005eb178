"""The smallest arrangement of a model that fits on a device, by what changes cost the user (`Choice.loss`)."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tokendyno.backend.arms.check import Checked, needed_bytes
from tokendyno.backend.arms.remedies import least_harm
from tokendyno.backend.fit.device import Device, of_gpus, several
from tokendyno.backend.fit.row import FitArm, Margin, margin_of, why_refused
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hardware.elsewhere import stocked
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.predict import parallel
from tokendyno.backend.predict.weights import resolved_dtype

CURVE_STEPS = 24

Choices = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """An arm with the memory that it needs of a device, which may be more than there is.

    needed_bytes  of each device, at the context that was asked for
    room_bytes    memory of each device; margin: in a word, how much of it is left
    max_context   the longest one that fits; 0 if not even one token does
    numbers       the number format of the weights, or the one in which the checkpoint is packed
    curve         (context, bytes), up to the positions of the model
    """

    choices: Choices
    gpus: int
    needed_bytes: int
    room_bytes: int
    margin: Margin
    max_context: int
    numbers: str
    curve: tuple[tuple[int, int], ...]

    @property
    def changes(self) -> Choices:
        """The choices but for how GPUs share the model."""
        return {axis: choice for axis, choice in self.choices.items() if axis != "parallel"}


@dataclass(frozen=True, slots=True)
class Smallest:
    """The answer for a device, or for several that share the model.

    found     the arrangement that fits and costs least; None if none does
    as_it_is  every axis at its default; None if that cannot run on so many GPUs
    enough    `as_it_is` on the fewest GPUs on which it fits, where it does not fit; None if none are known
    tried     arrangements that were checked
    not_here  why `found` cannot run on this machine in its present state, where that is asked for; else ""
    """

    found: Arrangement | None
    as_it_is: Arrangement | None
    enough: Arrangement | None
    tried: int
    not_here: str = ""


def smallest(
    facts: ModelFacts, device: Device, context: int, batch: int = 1, gpus: int = 1, obstacle: str = ""
) -> Smallest:
    """The first arrangement that fits on so many GPUs, else on more. `obstacle`: as of `fit_facts`."""
    search = _Search(facts, device, context, batch)
    not_here = obstacle if device.here else ""
    as_it_is = next((search.arrangement(way, gpus) for way in search.ways(gpus) if search.needed(way, gpus)), None)
    if as_it_is is not None and as_it_is.margin != "does not fit":
        return Smallest(as_it_is, as_it_is, None, search.tried, not_here)
    found = search.first(gpus)
    if found is None and device.here:  # a package may be all that is missing
        stock = _Search(facts, dataclasses.replace(device, machine=stocked(device.machine)), context, batch)
        found = stock.first(gpus)
        search.tried += stock.tried
        if found is not None:
            checked = search.checked(found.choices, gpus)
            # of a choice that would become another one, such as packed weights that transformers dequantizes
            fallbacks = (verdict.reason for verdict in checked.verdicts if verdict.level == "fallback")
            not_here = next((verdict.reason for verdict in checked.blocked), not_here) or next(fallbacks, "")
    installed = len(device.machine.gpus)
    wider = [count for count in parallel.SIZES if installed and count > gpus]
    if found is None:
        usable = [count for count in wider if count <= installed or not device.here]
        found = next(filter(None, map(search.first, usable)), None)
    enough = (search.fitting(search.ways(count), count) for count in wider)
    return Smallest(found, as_it_is, next(filter(None, enough), None), search.tried, not_here)


class _Search:
    """Checks arrangements on one kind of device, and counts them."""

    def __init__(self, facts: ModelFacts, device: Device, context: int, batch: int) -> None:
        self._facts, self._device, self._context, self._batch = facts, device, context, batch
        self.tried = 0

    def first(self, gpus: int) -> Arrangement | None:
        """The first arrangement on so many GPUs that fits: by the worst of its changes, then by their number."""
        if gpus > 1 and not parallel.choice_of(self._facts, gpus):  # no arm has that number
            return None
        room = self._room_bytes(gpus)

        def lacks(choices: Choices) -> int | None:
            return needed - room if (needed := self.needed(choices, gpus)) else None

        change = least_harm(self._facts, self.ways(gpus), lacks)
        return self.fitting([] if change is None else [change], gpus)

    def fitting(self, arms: Iterable[Choices], gpus: int) -> Arrangement | None:
        """The first of these arms that fits on so many GPUs."""
        room = self._room_bytes(gpus)
        fits = (choices for choices in arms if 0 < self.needed(choices, gpus) <= room)
        return next((self.arrangement(choices, gpus) for choices in fits), None)

    def ways(self, gpus: int) -> list[Choices]:
        """The arms with which so many GPUs share the model as it is, of which some may not run."""
        choice = parallel.choice_of(self._facts, gpus)
        return [{"parallel": choice}, {"parallel": f"device-map-{gpus}"}] if choice and gpus > 1 else [{}]

    def needed(self, choices: Choices, gpus: int) -> int:
        """Bytes that an arm needs of each of so many GPUs; 0 if it cannot run there."""
        self.tried += 1
        arm, checked = self._arm(choices, gpus), self.checked(choices, gpus)
        unsplit = parallel.unrunnable(self._facts, checked.plan.load.quantization, *arm.shared)
        return 0 if why_refused(checked) or unsplit else self._needed(arm, checked, gpus, self._context)

    def checked(self, choices: Choices, gpus: int) -> Checked:
        """What the rules say of an arm on so many GPUs."""
        return self._arm(choices, gpus).on(self._machine(gpus))

    def arrangement(self, choices: Choices, gpus: int) -> Arrangement:
        """An arm with everything that is said of it."""
        arm, checked, facts = self._arm(choices, gpus), self.checked(choices, gpus), self._facts
        room, most = self._room_bytes(gpus), facts.max_positions
        steps = {self._context, *(round(most ** (step / CURVE_STEPS)) for step in range(CURVE_STEPS + 1))}
        steps |= {most * step // CURVE_STEPS for step in range(1, CURVE_STEPS)} - {0}
        curve = tuple((at, self._needed(arm, checked, gpus, at)) for at in sorted(steps))
        longest = arm.longest(arm.setup(checked, self._machine(gpus)), room)
        numbers = facts.quantization or resolved_dtype(facts, checked.plan.load.dtype)
        needed = self._needed(arm, checked, gpus, self._context)
        margin = margin_of(room - needed, room, checked.memory.margin)
        return Arrangement(choices, gpus, needed, room, margin, longest, numbers, curve)

    def _arm(self, choices: Choices, gpus: int) -> FitArm:
        """The arm, on a number of GPUs that no arm has as they would share the model."""
        shared = (1, 1)
        if gpus > 1 and "parallel" not in choices:
            shared = parallel.group_sizes(self._facts, gpus)
        return FitArm(self._facts, choices, self._context, self._batch, shared)

    def _needed(self, arm: FitArm, checked: Checked, gpus: int, context: int) -> int:
        return needed_bytes(arm.memory(arm.setup(checked, self._machine(gpus)), context), checked.plan)

    def _machine(self, gpus: int) -> Machine:
        return of_gpus(self._device.machine, gpus)

    def _room_bytes(self, gpus: int) -> int:
        """Memory of each of so many GPUs: of this machine's what is free, where it has so many."""
        installed = self._device.here and gpus <= len(self._device.machine.gpus)
        return several(self._device, gpus).memory_bytes if installed else self._device.memory_bytes
