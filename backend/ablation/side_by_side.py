"""Trials in several places at once. What a place had not finished when it was lost is given back and runs elsewhere."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tokendyno.backend.ablation.places import Place, PlaceLost
from tokendyno.backend.config import Request
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.trial_process import Done, Impossible, TrialTask

Key = TypeVar("Key")
MAX_LOSSES = 3
"""How often trials are given back before they are taken for the cause."""


@dataclass(slots=True)
class Unit(Generic[Key]):
    """Trials of one place, one after the other: what is to be compared with each other. `losses`: how often it was
    given back."""

    trials: list[tuple[Key, Request]]
    losses: int = 0


@dataclass(frozen=True, slots=True)
class _Lost(Generic[Key]):
    unit: Unit[Key]
    place: Place
    error: PlaceLost


class SideBySide(Generic[Key]):
    """One course of trials. Used by one thread, which keeps what comes; each place has a thread of its own.

    errand  what all errands have in common
    keep    called with each finished trial
    say     tells the user what is given back
    """

    def __init__(
        self,
        places: Sequence[Place],
        errand: TrialTask,
        keep: Callable[[Key, Done, Place], None],
        say: Callable[[str], None],
    ) -> None:
        self._places, self._errand, self._keep, self._say = places, errand, keep, say
        self._free: deque[Place] = deque(places)
        self._waiting: deque[Unit[Key]] = deque()
        self._news: queue.SimpleQueue[tuple[Key, Done, Place] | _Lost[Key] | Place | Exception] = queue.SimpleQueue()

    def perform(self, units: Sequence[Unit[Key]]) -> None:
        """Return when all are done. InputError where a trial cannot be run anywhere; whatever `keep` raises."""
        self._waiting.extend(units)
        busy = 0
        try:
            while self._waiting or busy:
                while self._waiting and self._free:
                    self._start(self._free.popleft(), self._waiting.popleft())
                    busy += 1
                if not busy:
                    raise InputError("No place is left in which trials can run. Finished ones are kept.")
                match self._news.get():
                    case _Lost() as lost:
                        busy -= 1
                        self._give_back(lost)
                    case Exception() as error:
                        raise error
                    case (key, done, place):
                        self._keep(key, done, place)
                    case place:
                        busy -= 1
                        self._free.append(place)
        finally:
            for place in self._places if busy else ():
                place.stop()

    def _start(self, place: Place, unit: Unit[Key]) -> None:
        threading.Thread(target=self._run, args=(place, unit), name=f"place-{place.name}", daemon=True).start()

    def _give_back(self, lost: _Lost[Key]) -> None:
        unit = lost.unit
        unit.losses += 1
        if unit.losses > MAX_LOSSES:
            raise InputError(f"The same trial was lost {unit.losses} times: {lost.error}")
        left = "1 trial runs" if len(unit.trials) == 1 else f"{len(unit.trials)} trials run"
        self._say(f"note: {lost.place.name} was lost ({lost.error}); {left} again elsewhere.")
        self._waiting.append(unit)
        if not lost.error.gone:
            self._free.append(lost.place)

    def _run(self, place: Place, unit: Unit[Key]) -> None:
        """Body of a place's thread: one unit."""
        errand = TrialTask(
            [request for _, request in unit.trials], self._errand.models_dir, self._errand.device, self._errand.versions
        )
        try:
            for answer in place.carry_out(errand):
                if isinstance(answer, Impossible):
                    raise InputError(answer.reason)
                self._news.put((unit.trials.pop(0)[0], answer, place))
            if unit.trials:
                raise PlaceLost("it ended early")
            self._news.put(place)
        except PlaceLost as error:
            self._news.put(_Lost(unit, place, error))
        except Exception as error:
            self._news.put(error)
