"""Trials in several places: each once, and again only where a place was lost."""

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from tests.support.machines import CPU, EIGHT
from tokendyno.backend.ablation import places as places_module
from tokendyno.backend.ablation.places import MAX_LOSSES, Place, PlaceLost, SideBySide, Unit, gpu_places
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.trial_process import Answer, Done, Impossible, TrialTask

REQUEST = Request("pocket", [ArmRequest("A", {})], Workload("Once"))
ERRAND = TrialTask([], None, "cpu", {})


class Scripted:
    """Answers as `script` says: for each request how many times it is lost, or why it is impossible."""

    def __init__(self, name: str, lose: Callable[[int], Exception | None] = lambda n: None) -> None:
        self.name, self._lose = name, lose
        self.begun = 0
        self.stopped = threading.Event()

    def carry_out(self, job: TrialTask) -> Iterator[Answer]:
        for _ in job.requests:
            self.begun += 1
            if (error := self._lose(self.begun)) is not None:
                raise error
            yield Done([], self.name)

    def stop(self) -> None:
        self.stopped.set()


def performed(places: Sequence[Place], units: Sequence[Sequence[str]]) -> tuple[list[tuple[str, str]], list[str]]:
    """Trials with their places in the order in which they were kept, and what was said."""
    kept: list[tuple[str, str]] = []
    notes: list[str] = []
    course = SideBySide[str](places, ERRAND, lambda key, done, place: kept.append((key, done.node)), notes.append)
    course.perform([Unit([(key, REQUEST) for key in unit]) for unit in units])
    return kept, notes


def test_every_trial_runs_once_and_those_of_a_unit_in_one_place() -> None:
    units = [["a1", "b1"], ["a2", "b2"], ["a3", "b3"]]
    kept, notes = performed([Scripted("one"), Scripted("two")], units)
    places = dict(kept)
    assert sorted(places) == ["a1", "a2", "a3", "b1", "b2", "b3"] and len(kept) == 6 and not notes
    assert all(places[first] == places[second] for first, second in units)


def test_a_lost_place_gives_back_what_it_had_not_finished_and_nothing_else() -> None:
    dying = Scripted("dying", lambda n: PlaceLost("the node died", gone=True) if n == 2 else None)
    other = Scripted("other")
    kept, notes = performed([dying, other], [["a", "b", "c"], ["d"]])
    assert sorted(key for key, _ in kept) == ["a", "b", "c", "d"], "none twice, none missing"
    assert ("a", "dying") in kept and {("b", "other"), ("c", "other")} <= set(kept)
    assert notes == ["note: dying was lost (the node died); 2 trials run again elsewhere."]
    assert dying.begun == 2, "a place that is gone gets nothing more"


def test_a_place_that_is_not_gone_is_used_again() -> None:
    kept, notes = performed([Scripted("only", lambda n: PlaceLost("a kill") if n == 1 else None)], [["a"]])
    assert kept == [("a", "only")] and len(notes) == 1


def test_a_trial_that_is_lost_each_time_is_taken_for_the_cause() -> None:
    place = Scripted("only", lambda n: PlaceLost("out of memory"))
    with pytest.raises(InputError, match=r"lost 4 times: out of memory"):
        performed([place], [["a"]])
    assert place.begun == MAX_LOSSES + 1


def test_without_a_place_left_the_rest_is_not_waited_for() -> None:
    with pytest.raises(InputError, match="No place is left"):
        performed([Scripted("only", lambda n: PlaceLost("the node died", gone=True))], [["a"], ["b"]])


def test_what_a_machine_cannot_run_ends_all_and_places_at_work_are_stopped() -> None:
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    waiting = Scripted("waiting")
    waiting.carry_out = lambda job: iter([answers.get()])  # type: ignore[method-assign]
    refusing = Scripted("refusing")
    refusing.carry_out = lambda job: iter([Impossible("It has torch 1.0.")])  # type: ignore[method-assign]
    with pytest.raises(InputError, match=r"It has torch 1\.0"):
        performed([waiting, refusing], [["a"], ["b"]])
    assert waiting.stopped.is_set()
    answers.put(Done([], ""))


def test_a_trial_that_cannot_be_kept_ends_all() -> None:
    def full(*_: object) -> None:
        raise InputError("The disk is full.")

    with pytest.raises(InputError, match="disk is full"):
        SideBySide[str]([Scripted("one")], ERRAND, full, print).perform([Unit([("a", REQUEST)])])


@pytest.mark.parametrize(("wanted", "machine"), [(0, EIGHT), (9, EIGHT), (1, CPU)])
def test_more_trials_at_once_than_gpus_are_refused(wanted: int, machine: object) -> None:
    with pytest.raises(InputError, match=f"--side-by-side is {wanted}, and this machine has {len(machine.gpus)} GPU"):  # type: ignore[attr-defined]
        gpu_places(wanted, machine)  # type: ignore[arg-type]
    assert [place.name for place in gpu_places(2, EIGHT)] == ["GPU 0", "GPU 1"]


@pytest.mark.parametrize(
    ("uuid", "visible", "seen_as"),
    [("GPU-5", "2,3", "GPU-5"), ("", "2,3", "3"), ("", None, "1"), ("GPU-5", None, "GPU-5")],
)
def test_a_place_has_its_own_gpu_and_is_stopped_even_while_it_starts(
    monkeypatch: pytest.MonkeyPatch, uuid: str, visible: str | None, seen_as: str
) -> None:
    started: list[object] = []

    class Process:
        def __init__(self, job: bytes, more: dict[str, str]) -> None:
            started.append(more["CUDA_VISIBLE_DEVICES"])

        def end(self) -> None:
            started.append("ended")

        def answers(self) -> Iterator[bytes]:
            return iter(())

    monkeypatch.setattr(places_module, "TrialProcess", Process)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    gpus = tuple(replace(gpu, uuid=uuid and f"GPU-{gpu.index + 4}") for gpu in EIGHT.gpus[:2])
    place = gpu_places(2, replace(EIGHT, gpus=gpus))[1]
    assert list(place.carry_out(ERRAND)) == [] and started == [seen_as]
    place.stop()
    assert list(place.carry_out(ERRAND)) == [] and started[-2:] == [seen_as, "ended"]
