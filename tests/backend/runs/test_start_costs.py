"""What a choice costs at the start: medians of what arms took with it and without it, and nothing where none tells."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.messages import PhaseName, Progress
from tokendyno.backend.runs.earlier import Place, StartCosts, key_of
from tokendyno.backend.runs.records import ArmEvent, WaitKeys
from tokendyno.backend.runs.store import Store

HERE = Place({"cpu": "one", "device": "cpu", "memory": "24 GiB"}, {"torch": "2.13"})
COMPILED = {"compile": "default", "cache": "static"}


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "history.sqlite" if request.param == "file" else None)
    yield store
    store.close()


def keep(
    store: Store,
    run_id: str,
    b: Mapping[str, str],
    seconds: tuple[float, float],
    place: Place = HERE,
    loads: tuple[str, str] = ("", ""),
    phases: tuple[PhaseName, ...] = ("load", "compile", "warmup"),
    level: str = "note",
) -> None:
    """A run whose arms are the defaults and `b`, each of whose phases took so many seconds."""
    first = created(run_id)
    verdicts = [Verdict(level, "cache", "")]  # type: ignore[arg-type]
    arms = [
        replace(arm, requested={"dtype": "auto", **choices}, verdicts=verdicts, waits=WaitKeys(load))
        for arm, choices, load in zip(first.arms, ({}, b), loads, strict=True)
    ]
    store.add(run_id, replace(first, arms=arms, machine=dict(place.machine), versions=dict(place.versions)))
    for name, spent_s in zip("AB", seconds, strict=True):
        for phase in phases:
            store.add(run_id, ArmEvent(name, 0, 1.0, Progress(phase, "end", spent_s, 1.0)))
        run, later = Progress("run", "end", 2.0), Progress("compile", "end", 500.0)
        store.add(run_id, *arm_records(name, 9), ArmEvent(name, 0, 1.0, run), ArmEvent(name, 0, 2.0, later))
    store.add(run_id, ended())
    store.flush()


def test_it_is_the_median_of_what_came_after_a_load_that_is_the_same(store: Store) -> None:
    costs = StartCosts(store)
    assert costs.of("pocket", HERE) == {}
    for index, spent_s in enumerate((6.0, 2.0, 4.0)):
        keep(store, f"run{index}", COMPILED, (1.0, spent_s))
    both = "cache=static compile=default"
    for _ in range(2):  # read, and as it was kept
        assert costs.of("pocket", HERE) == {both: 2 * (4.0 - 1.0), f"whole {both}": 2 * (4.0 - 1.0)}
    keep(store, "cache", {"cache": "static"}, (1.0, 1.5))
    seconds = costs.of("pocket", HERE)
    assert seconds["cache=static"] == 1.0 and seconds["compile=default"] == 2 * (4.0 - 1.5), "of arms of several runs"
    assert "whole compile=default" not in seconds and key_of(COMPILED, True) in seconds


def test_a_load_counts_where_it_is_another(store: Store) -> None:
    keep(store, "run", {"quantization": "bnb-nf4"}, (1.0, 3.0), loads=("plain", "nf4"))
    assert StartCosts(store).of("pocket", HERE)["quantization=bnb-nf4"] == 3 * (3.0 - 1.0)


def test_what_is_not_comparable_tells_nothing(store: Store) -> None:
    keep(store, "elsewhere", COMPILED, (1.0, 9.0), HERE._replace(machine={"cpu": "another"}))
    keep(store, "older", COMPILED, (1.0, 9.0), HERE._replace(versions={"torch": "2.12"}))
    keep(store, "kept", COMPILED, (1.0, 9.0), phases=("warmup",))  # its worker had the model
    keep(store, "fell", COMPILED, (1.0, 9.0), level="fallback")
    assert StartCosts(store).of("pocket", HERE) == {}
