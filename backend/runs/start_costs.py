"""What a choice costs at the start of a run: how many seconds earlier runs here took longer to be ready with it than
without it.

Two arms tell if the same was asked of them but for that choice, with prompts and outputs of about the same lengths, on
this machine with these versions. Where loading is the same by its key, only what comes after it is compared: the first
arm of a run finds files that nobody has read yet. Each is a median.
"""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from statistics import median
from typing import NamedTuple, Protocol

from tokendyno.backend.messages import Progress
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.runs.earlier import LOADING, MAX_RUNS, PREPARING, Place, alike, lengths
from tokendyno.backend.runs.records import ArmEvent, Created

KEPT_RUNS = 512

Choices = frozenset[tuple[str, str]]


class Keeper(Protocol):
    """Where runs are kept (`tokendyno.backend.runs.store.Store`)."""

    def recent(self, model: str, limit: int) -> list[Created]: ...
    def ended_phases(self, run_id: str) -> list[ArmEvent]: ...


class Start(NamedTuple):
    """What an arm took before its first run, with a model that it had to load."""

    load_key: str
    load_s: float
    prepare_s: float


class StartCosts:
    """Of every model. What a run has told is kept."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._told: OrderedDict[str, dict[str, Start]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, model: str, here: Place) -> dict[str, float]:
        """Seconds by what is added, as `key_of` has it. InputError if the history cannot be read now."""
        defaults = {axis.name: axis.default for axis in all_axes()}
        starts: dict[tuple[int, ...], dict[Choices, list[Start]]] = defaultdict(lambda: defaultdict(list))
        for created in self._keeper.recent(model, MAX_RUNS):
            if created.request.traffic or created.origin != "here" or not alike(created, here):
                continue
            told = self._starts(created)
            for arm in created.arms:
                if arm.name in told and not any(verdict.level == "fallback" for verdict in arm.verdicts):
                    asked = frozenset(pair for pair in arm.requested.items() if pair[1] != defaults.get(pair[0]))
                    starts[lengths(created.request.workload)][asked].append(told[arm.name])
        found = defaultdict[str, list[float]](list)
        for by_choices in starts.values():
            for less, before in by_choices.items():
                for more, after in by_choices.items():
                    if less < more:
                        seconds, added = _longer_s(before, after), dict(more - less)
                        found[key_of(added, False)].append(seconds)
                        if not less:
                            found[key_of(added, True)].append(seconds)
        return {key: median(seconds) for key, seconds in found.items()}

    def _starts(self, created: Created) -> dict[str, Start]:
        """By arm. Of those that have not run yet, and of those whose worker had the model, nothing is told."""
        with self._lock:
            if created.id in self._told:
                return self._told[created.id]
        spent: dict[str, dict[str, float]] = {arm.name: {} for arm in created.arms}
        for record in self._keeper.ended_phases(created.id):
            assert isinstance(record.event, Progress)
            of_arm = spent[record.arm]
            if "run" not in of_arm:  # what comes later is for texts that are read
                of_arm[record.event.phase] = of_arm.get(record.event.phase, 0.0) + record.event.seconds
        keys = {arm.name: arm.waits.load for arm in created.arms}
        told = {
            name: Start(keys[name], _sum(took, LOADING), _sum(took, PREPARING))
            for name, took in spent.items()
            if {"load", "run"} <= took.keys()
        }
        if all("run" in took for took in spent.values()):
            with self._lock:
                self._told[created.id] = told
                while len(self._told) > KEPT_RUNS:
                    self._told.popitem(last=False)
        return told


def key_of(choices: Mapping[str, str], whole: bool) -> str:
    """The choices in the order of their names; `whole`: added to an arm of which nothing else was asked."""
    return ("whole " if whole else "") + " ".join(f"{axis}={choice}" for axis, choice in sorted(choices.items()))


def _sum(took: Mapping[str, float], phases: tuple[str, ...]) -> float:
    return sum(took.get(phase, 0.0) for phase in phases)


def _longer_s(before: list[Start], after: list[Start]) -> float:
    seconds = median(one.prepare_s for one in after) - median(one.prepare_s for one in before)
    if {one.load_key for one in before} == {one.load_key for one in after}:
        return seconds
    return seconds + median(one.load_s for one in after) - median(one.load_s for one in before)
