"""What to expect of a run: the phases of earlier runs of the same shape, and of no other."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.support.batches import TRAFFIC
from tests.support.runs import created, ended
from tokendyno.backend.config import Workload
from tokendyno.backend.messages import PhaseName, Progress
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import STATIC, GeneratePlan, LoadPlan, Plan
from tokendyno.backend.runs.earlier import Place, expected_s, wait_keys, whole_s
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import ArmEvent, Created, WaitKeys
from tokendyno.backend.runs.store import Store

KEYS = WaitKeys("load", "run")


def run(run_id: str, at_s: float, keys: WaitKeys = KEYS) -> Created:
    first = created(run_id, "A", at_s=at_s)
    return msgspec.structs.replace(first, arms=[msgspec.structs.replace(first.arms[0], waits=keys)])


def keep(log: RunLog, first: Created, **seconds: float) -> None:
    log.create(first)
    names: dict[str, PhaseName] = {"load": "load", "compile": "compile", "warmup": "warmup"}
    for name, spent_s in seconds.items():
        log.append(first.id, ArmEvent("A", 0, 1.0, Progress(names[name], "end", spent_s, 1.0)))
    log.append(first.id, ended())


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "history.sqlite" if request.param == "file" else None)
    yield store
    store.close()


def told(store: Store, keys: WaitKeys) -> dict[PhaseName, float]:
    new = run("new", 100.0, keys)
    return expected_s(store, new, new.arms[0])


def test_the_newest_run_of_the_same_shape_tells_and_others_do_not(store: Store) -> None:
    log = RunLog(store)
    assert told(store, KEYS) == {}
    keep(log, run("cold", 1.0), load=5.0, compile=61.0, warmup=2.0)
    keep(log, run("warm", 2.0), compile=8.0, warmup=1.0)  # its worker was there: nothing was loaded
    keep(log, run("other", 3.0, WaitKeys("load", "other")), load=6.0, compile=300.0)
    keep(log, run("old", 4.0, WaitKeys()), load=999.0, compile=999.0)
    assert told(store, KEYS) == {"load": 6.0, "compile": 8.0, "warmup": 1.0}
    assert told(store, WaitKeys("load", "new")) == {"load": 6.0}
    assert told(store, WaitKeys("other", "other too")) == {}
    assert told(store, WaitKeys()) == {}  # what has no key is like nothing


def test_it_reaches_the_arm_that_waits(store: Store) -> None:
    log = RunLog(store)
    keep(log, run("cold", 1.0), compile=61.0)
    new = log.create(run("new", 2.0))
    log.expect(new.created)
    assert new.arms["A"].expected_s == {"compile": 61.0}


def test_keys_follow_what_a_wait_depends_on() -> None:
    place = Place({"cpu": "one", "device": "cpu", "memory": "24 GiB"}, {"torch": "2.13"})
    plan = Plan(LoadPlan(ModelSource("embedded", "/pocket")), GeneratePlan(compile_mode="default"))
    work = Workload(prompt="x" * 40, max_new_tokens=100)
    keys = wait_keys(plan, work, place)

    def but(**changes: object) -> WaitKeys:
        args = {"plan": plan, "workload": work, "place": place} | changes
        return wait_keys(**args)  # type: ignore[arg-type]

    replace = msgspec.structs.replace
    assert but(workload=Workload(prompt="y" * 50, max_new_tokens=128)) == keys  # about as long
    assert but(place=place._replace(machine={**place.machine, "memory": "12 GiB"})) == keys
    longer = but(workload=Workload(prompt="x" * 4_000, max_new_tokens=100))
    static = but(plan=replace(plan, generate=replace(plan.generate, cache=STATIC)))
    for other in (longer, static, but(workload=Workload(prompt="x" * 40, max_new_tokens=100, batch_size=4))):
        assert other.load == keys.load and other.run != keys.run
    elsewhere = but(place=place._replace(machine={"cpu": "another", "device": "cpu"}))
    newer = but(place=place._replace(versions={"torch": "2.14"}))
    for other in (elsewhere, newer, but(plan=replace(plan, load=replace(plan.load, dtype="float32")))):
        assert other.load != keys.load and other.run != keys.run


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_reading_is_of_the_files_as_they_are(tmp_path: Path, kind: str) -> None:
    """A model that was trained on and written again is another one, though its load takes as long."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"1")
    plan = Plan(LoadPlan(ModelSource("folder", str(file if kind == "file" else tmp_path))))
    before = wait_keys(plan, Workload(prompt="x"), Place({}, {}))
    (tmp_path / "empty").mkdir()
    assert wait_keys(plan, Workload(prompt="x"), Place({}, {})) == before
    file.write_bytes(b"22")
    after = wait_keys(plan, Workload(prompt="x"), Place({}, {}))
    assert after.plan != before.plan and (after.load, after.run) == (before.load, before.run)


def test_no_more_than_four_runs_of_the_same_shape_are_read(store: Store) -> None:
    """The newest ones; others of the model cost no reading."""
    log = RunLog(store)
    keep(log, run("fifth", 1.0), load=5.0)
    for n in range(4):
        keep(log, run(f"r{n}", 2.0 + n), compile=10.0 + n)
    keep(log, run("other", 9.0, WaitKeys("x", "y")), load=99.0)
    assert told(store, KEYS) == {"compile": 13.0}
    keep(log, run("again", 10.0), load=6.0)
    assert told(store, KEYS) == {"compile": 13.0, "load": 6.0}


def test_the_fourth_run_is_read_and_a_run_tells_nothing_of_itself(store: Store) -> None:
    log = RunLog(store)
    keep(log, run("fourth", 1.0), load=5.0)
    for n in range(3):
        keep(log, run(f"r{n}", 2.0 + n), compile=10.0)
    keep(log, run("new", 9.0), load=99.0, compile=99.0, warmup=99.0)
    assert told(store, KEYS) == {"load": 5.0, "compile": 10.0}


@pytest.mark.parametrize(("size", "alike", "others"), [(32, (17, 32), (16, 33)), (2, (2,), (1, 3)), (1, (1,), (2,))])
def test_lengths_are_alike_up_to_a_power_of_two(size: int, alike: tuple[int, ...], others: tuple[int, ...]) -> None:
    plan, place = Plan(LoadPlan(ModelSource("embedded", "/pocket"))), Place({}, {})

    def keys(tokens: int, new: int) -> WaitKeys:
        return wait_keys(plan, Workload(prompt_tokens=tokens, max_new_tokens=new), place)

    for count in alike:
        assert keys(count, size) == keys(size, count) == keys(size, size)
    for count in others:
        assert keys(count, size).run != keys(size, size).run != keys(size, count).run


def test_a_run_between_the_same_arms_tells_of_all_its_pairs_and_texts(store: Store) -> None:
    log = RunLog(store)
    first = log.create(run("before", 1.0)).created
    for phase, seconds in (
        ("warmup", 1.0),
        ("run", 2.0),
        ("run", 3.0),
        ("prove", 0.5),
        ("warmup", 0.25),
        ("quality", 4.0),
    ):
        log.append(first.id, ArmEvent("A", 0, 1.0, Progress(phase, "end", seconds, 1.0)))  # type: ignore[arg-type]
    assert whole_s(store, run("new", 2.0)) == {}, "it is not over"
    log.append(first.id, ended())
    assert whole_s(store, run("new", 2.0)) == {"A": {"run": 5.0, "prove": 0.5, "quality": 4.25}}
    assert whole_s(store, run("new", 2.0, WaitKeys("load", "other"))) == {}
    new = run("new", 2.0)
    longer = msgspec.structs.replace(new, request=msgspec.structs.replace(new.request, until_s=5.0))
    assert whole_s(store, longer) == {}, "its pairs end by another rule"
    served = msgspec.structs.replace(new, request=msgspec.structs.replace(new.request, traffic=TRAFFIC))
    assert whole_s(store, served) == {}, "it serves requests"
