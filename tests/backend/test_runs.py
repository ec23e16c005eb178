"""The run log and its reading by cursor: every viewer sees everything once, whenever it comes."""

import random
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from backend import runlog
from backend import runs as runs_module
from backend.config import Workload
from backend.lanes import kv_at
from backend.messages import Finding, Finished, Loaded, Mark, Progress, Samples, Started, Tokens
from backend.records import (
    ArmEvent,
    ArmPlanned,
    ArmRequest,
    Created,
    Ended,
    FloorPoint,
    Foretold,
    KvPoint,
    Record,
    Request,
    decode_record,
)
from backend.runlog import RunLog
from backend.runs import Run
from backend.store import Store


def created(run_id: str = "a", at: float = 1.0, arms: str = "AB", repeats: int = 1) -> Created:
    request = Request("pocket", [ArmRequest(name) for name in arms], Workload(prompt="Once", repeats=repeats))
    axes = {"dtype": "auto"}
    planned = [ArmPlanned(name, axes, {"dtype": "bfloat16"}, []) for name in arms]
    return Created(run_id, at, request, planned, "Pocket", "", {}, "cpu")


def tokens(first: int, count: int, text: str = "") -> Tokens:
    each = list(range(first, first + count))
    times = [0.1 * (i + 1) for i in each]
    return Tokens(first, times, [0.1] * count, [i * 2 for i in each], [i * 3 for i in each], [7] * count, each, text)


def finished(text: str, reason: str = "length") -> Finished:
    return Finished(reason, text, 0.1, 1.0, 99, "label", "clock", [Finding("dtype", "bfloat16", "seen")], {})  # type: ignore[arg-type]


def story(rng: random.Random) -> list[Record]:
    """The records of a run of two arms, of random lengths, with some ends that are not the planned one."""
    records: list[Record] = []
    for arm in "AB":
        at_s = 0.0

        def log(event: object, arm: str = arm) -> None:
            nonlocal at_s
            at_s += 0.1
            records.append(ArmEvent(arm, 0, at_s, event))  # type: ignore[arg-type]

        log(Progress("load", "begin", 0.0))
        log(Progress("load", "end", 0.5, 1.0))
        log(Loaded(100, 50, False))
        log(Started(5, 1, 100, ["a note"]))
        records.append(Foretold(arm, [KvPoint(5, 10, 15), KvPoint(105, 10, 315)]))
        made, text = 0, ""
        for _ in range(rng.randrange(12)):
            if rng.random() < 0.4:
                log(Samples([at_s, at_s + 0.05], [1, 2]))
            count = rng.randrange(1, 9)
            said = "".join(rng.choice("ab é\n😀") for _ in range(rng.randrange(6)))
            log(tokens(made, count, said))
            made, text = made + count, text + said
        if rng.random() < 0.8:
            log(finished(text + rng.choice(["", "�", " end"])))
    records.append(Ended(9.0, rng.choice(["done", "failed", "cancelled"])))
    return records


@dataclass
class Viewer:
    """Keeps what it was given, by the rules of a viewer: each answer must begin where its cursor stands."""

    cursors: list[list[int]] = field(default_factory=lambda: [[0, 0, 0], [0, 0, 0]])
    ids_kvs: list[list[int]] = field(default_factory=lambda: [[], []])
    times: list[list[float]] = field(default_factory=lambda: [[], []])
    samples: list[list[int]] = field(default_factory=lambda: [[], []])
    text: list[str] = field(default_factory=lambda: ["", ""])
    version: int = 0
    ended: bool = False

    def pull(self, run: Run) -> None:
        delta = run.delta(self.version, self.cursors, 0.0)
        self.version, self.ended = delta.version, delta.ended
        for i, lane in enumerate(delta.lanes):
            assert [lane.first, lane.sfirst, lane.cfirst] == self.cursors[i]
            assert len(lane.t) == len(lane.lat) == len(lane.kvs) == len(lane.kvf) == lane.n - lane.first
            assert len(lane.st) == len(lane.sm) == lane.sn - lane.sfirst and len(lane.text) == lane.cn - lane.cfirst
            self.ids_kvs[i] += lane.kvs
            self.times[i] += lane.t
            self.samples[i] += lane.sm
            self.text[i] += lane.text
            self.cursors[i] = [lane.n, lane.sn, lane.cn]

    def has_all(self, run: Run) -> bool:
        lanes = list(run.lanes.values())
        return (
            self.ids_kvs == [lane.kv_sliding for lane in lanes]
            and self.times == [lane.t_s for lane in lanes]
            and self.samples == [lane.sample_bytes for lane in lanes]
            and self.text == [lane.text for lane in lanes]
        )


@pytest.mark.parametrize("seed", range(60))
def test_any_sequence_of_pulls_sees_every_token_sample_and_character_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several viewers with their own pace, some coming late, some reloading in mid-run, under any cap."""
    rng = random.Random(seed)
    monkeypatch.setattr(runs_module, "MAX_TOKENS_A_PULL", rng.choice([1, 2, 5, 4000]))
    run = Run(created())
    viewers = [Viewer() for _ in range(4)]
    paces = [rng.random() for _ in viewers]
    for record in story(rng):
        run.append(record)
        for i, pace in enumerate(paces):
            if rng.random() < pace:
                viewers[i].pull(run)
            if rng.random() < 0.05:
                viewers[i] = Viewer()
    for viewer in viewers:
        for _ in range(200):
            viewer.pull(run)
            if viewer.ended:
                break
        assert viewer.ended and viewer.has_all(run)
        before = viewer.cursors
        viewer.pull(run)
        assert viewer.cursors == before and viewer.has_all(run)


@pytest.mark.parametrize("seed", range(20))
def test_a_run_read_back_from_its_records_is_the_same_run(seed: int) -> None:
    live, again = Run(created()), Run(created())
    store = Store(None)
    log = RunLog(store)
    log.create(created())
    for record in story(random.Random(seed)):
        live.append(record)
        log.append("a", record)
    for record in store.read("a")[1:]:
        again.append(record)
    start = [[0, 0, 0]] * 2
    assert again.lanes == live.lanes and again.delta(0, start, 1.0) == live.delta(0, start, 1.0)


@pytest.mark.parametrize("cursor", [[-5, -5, -5], [10**12] * 3])
def test_a_cursor_outside_the_run_is_brought_back_into_it(cursor: list[int]) -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    lane = run.delta(0, [cursor], 0.0).lanes[0]
    assert (lane.first, lane.n) in ((0, 3), (3, 3)) and 0 <= lane.cfirst <= lane.cn == 3


def test_the_head_is_sent_only_when_something_of_it_changed() -> None:
    run = Run(created())
    first = run.delta(0, [[0, 0, 0]] * 2, 0.0)
    assert first.head is not None
    assert run.delta(first.version, [[0, 0, 0]] * 2, 0.0).head is None
    run.append(ArmEvent("A", 0, 1.0, Progress("load", "begin", 0.0)))
    again = run.delta(first.version, [[0, 0, 0]] * 2, 0.0)
    assert again.head is not None and again.head.arms[0].state == "working"


def test_a_run_is_not_told_as_ended_while_tokens_are_to_be_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_module, "MAX_TOKENS_A_PULL", 2)
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3)))
    run.append(Ended(2.0, "done"))
    assert not run.delta(0, [[0, 0, 0]], 0.0).ended
    assert run.delta(0, [[2, 0, 0]], 0.0).ended


def test_tokens_out_of_order_are_refused() -> None:
    run = Run(created(arms="A"))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3)))
    with pytest.raises(ValueError, match="out of order"):
        run.append(ArmEvent("A", 0, 1.0, tokens(4, 1)))


def test_repeats_add_to_the_statistics_and_leave_the_series_alone() -> None:
    run = Run(created(arms="A", repeats=2))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    run.append(ArmEvent("A", 0, 1.1, finished("abc")))
    before = run.delta(0, [[0, 0, 0]], 0.0).lanes
    once = run.summary("A")
    run.append(ArmEvent("A", 1, 2.0, Tokens(0, [0.3, 0.6], [0.3, 0.3], [1, 1], [1, 1], [1, 1], [4, 5], "xy")))
    run.append(ArmEvent("A", 1, 2.1, finished("xy")))
    assert run.delta(0, [[0, 0, 0]], 0.0).lanes == before and run.lanes["A"].text == "abc"
    twice = run.summary("A")
    assert [once.ttft_s, once.latency_mean_s] == pytest.approx([0.1, 0.1])
    assert [twice.ttft_s, twice.latency_mean_s] == pytest.approx([0.2, 0.5 / 3])
    assert twice.tokens == 3


def test_the_proof_is_that_of_the_last_repeat() -> None:
    run = Run(created(arms="A", repeats=2))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    run.append(ArmEvent("A", 0, 1.1, msgspec.structs.replace(finished("abc"), findings=[], extra={"energy_j": 1.0})))
    assert run.ledger("A") == []
    later = msgspec.structs.replace(finished("abc"), extra={"energy_j": 2.0, "step_busy_s": 0.5})
    run.append(ArmEvent("A", 1, 2.1, later))
    assert [(row.axis, row.proof) for row in run.ledger("A")] == [("dtype", "seen")]
    ended = run.lanes["A"].finished
    assert ended is not None and ended.extra == {"energy_j": 1.0, "step_busy_s": 0.5}


def repeat(run: Run, arm: str, number: int, step_s: float, reason: str = "length") -> None:
    times = [1.0, 1.0 + step_s, 1.0 + 2 * step_s]
    run.append(
        ArmEvent(arm, number, 1.0, Tokens(0, times, [1.0, step_s, step_s], [1] * 3, [1] * 3, [1] * 3, [1] * 3, "x"))
    )
    run.append(ArmEvent(arm, number, 1.1, finished("x", reason)))


def test_arms_are_compared_over_the_repeats_that_both_have_ended() -> None:
    run = Run(created(repeats=4))
    assert run.comparison() is None
    for number in range(3):
        repeat(run, "A", number, 0.2 + 0.001 * number)
        if number < 2:
            repeat(run, "B", number, 0.1)
    found = run.comparison()
    assert found is not None and (found.pairs, found.verdict) == (2, "b_faster")
    assert found.ratio == pytest.approx(2.005, abs=1e-3)
    repeat(run, "B", 2, 0.1, "cancelled")
    assert run.comparison() == found, "what was stopped is not compared"


def test_a_verdict_is_told_at_the_end_and_one_arm_alone_has_none() -> None:
    run = Run(created(repeats=2))
    for number in range(2):
        repeat(run, "A", number, 0.2)
        repeat(run, "B", number, 0.1)

    def verdict(of: Run) -> str:
        head = of.delta(0, [[0, 0, 0]] * 2, 0.0).head
        assert head is not None
        return head.verdict

    assert verdict(run) == ""
    run.append(Ended(9.0, "done"))
    assert verdict(run).startswith("B is 2.000 times as fast as A")
    alone = Run(created(arms="A"))
    repeat(alone, "A", 0, 0.2)
    alone.append(Ended(9.0, "done"))
    assert (alone.comparison(), verdict(alone)) == (None, "")


def test_what_spoils_any_repeat_is_told_and_only_marks_of_the_first_are_drawn() -> None:
    run = Run(created(arms="AB", repeats=2))
    for number in range(2):
        repeat(run, "A", number, 0.2)
        run.append(ArmEvent("A", number, 2.0, Mark("throttle", 1, 0.1, 0.5, "the GPU lowered its clocks (power cap)")))
    run.append(ArmEvent("A", 1, 2.0, Mark("gc", 1, 0.1, 0.5, "Python collected garbage")))
    (told,) = run.spoilers("A")
    assert "power cap" in told and "1.00 of 2.00 s" in told and "in 2 runs" in told
    assert len(run.lanes["A"].marks) == 1 and run.spoilers("B") == []


@pytest.mark.parametrize(
    ("status", "state"), [("failed", "failed"), ("interrupted", "failed"), ("cancelled", "cancelled")]
)
def test_an_end_in_mid_phase_breaks_that_phase_and_leaves_finished_and_waiting_arms_alone(
    status: str, state: str
) -> None:
    for at_work, done, waiting in (("A", "", "B"), ("B", "A", "")):
        run = Run(created())
        if done:
            run.append(ArmEvent(done, 0, 1.0, Progress("run", "begin", 0.0)))
            run.append(ArmEvent(done, 0, 2.0, Progress("run", "end", 1.0)))
            run.append(ArmEvent(done, 0, 2.0, finished("x")))
        run.append(ArmEvent(at_work, 0, 3.0, Progress("load", "begin", 0.0)))
        run.append(Ended(5.0, status))  # type: ignore[arg-type]
        phase = run.lanes[at_work].phases["load"]
        assert (run.lanes[at_work].state, phase.state, phase.seconds) == (state, "broken", 2.0)
        if done:
            assert run.lanes[done].state == "done" and run.lanes[done].phases["run"].state == "end"
        if waiting:
            assert run.lanes[waiting].state == "waiting"


def test_the_ledger_joins_what_was_asked_planned_and_found() -> None:
    run = Run(created(arms="A"))
    assert run.ledger("A") == []
    run.append(ArmEvent("A", 0, 1.0, finished("x")))
    (row,) = run.ledger("A")
    assert (row.axis, row.requested, row.planned, row.effective, row.status) == (
        "dtype", "auto", "bfloat16", "bfloat16", "proved",
    )  # fmt: skip


def test_the_predicted_curve_is_straight_between_its_corners_and_flat_outside() -> None:
    points = [KvPoint(10, 100, 0), KvPoint(20, 200, 50), KvPoint(30, 200, 150)]
    assert [kv_at(points, n) for n in (10, 15, 20, 25, 30)] == [
        (100, 0), (150, 25), (200, 50), (200, 100), (200, 150),
    ]  # fmt: skip
    assert kv_at(points, 5) == (100, 0) and kv_at(points, 99) == (200, 150)


def fill(log: RunLog, run_id: str, at: float, end: bool = True) -> None:
    log.create(created(run_id, at, "A"))
    log.append(run_id, ArmEvent("A", 0, 1.0, tokens(0, 3, run_id)))
    if end:
        log.append(run_id, Ended(2.0, "done"))


def test_eviction_never_drops_a_live_run_and_an_evicted_one_is_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runlog, "KEPT_IN_MEMORY", 3)
    log = RunLog(Store(None))
    fill(log, "live", 0.0, end=False)
    live, first = log.get("live"), None
    for n in range(10):
        fill(log, f"r{n}", 1.0 + n)
        first = first or log.get("r0")
        assert len(log._runs) <= 4
    assert log.get("live") is live and log.newest() == "live"
    again = log.get("r0")
    assert again is not None and again is not first and again.lanes["A"].text == "r0" and again.status == "done"
    log.append("live", ArmEvent("A", 0, 1.0, tokens(3, 2)))
    assert live is not None and len(live.lanes["A"].ids) == 5


def test_the_run_looked_at_last_is_the_last_to_be_evicted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runlog, "KEPT_IN_MEMORY", 3)
    log = RunLog(Store(None))
    for n in range(3):
        fill(log, f"r{n}", float(n))
    watched = log.get("r0")
    for n in range(3, 10):
        fill(log, f"r{n}", float(n))
        assert log.get("r0") is watched


def test_a_live_run_of_another_process_is_read_anew_each_time() -> None:
    store = Store(None)
    mine, theirs = RunLog(store), RunLog(store)
    fill(theirs, "a", 1.0, end=False)
    first = mine.get("a")
    theirs.append("a", ArmEvent("A", 0, 1.0, tokens(3, 2)))
    second = mine.get("a")
    assert first is not None and second is not None
    assert len(first.lanes["A"].ids) == 3 and len(second.lanes["A"].ids) == 5


def test_newest_prefers_the_run_at_work_then_the_one_created_last() -> None:
    log = RunLog(Store(None))
    assert log.newest() is None
    fill(log, "a", 1.0)
    fill(log, "b", 2.0)
    assert log.newest() == "b"
    fill(log, "c", 3.0, end=False)
    fill(log, "d", 4.0, end=False)
    log.get("c")
    assert log.newest() == "c"


def test_an_unknown_run_is_none_and_cannot_be_appended_to() -> None:
    log = RunLog(Store(None))
    assert log.get("nothing") is None
    with pytest.raises(KeyError):
        log.append("nothing", Ended(1.0, "done"))


# --- foretold -------------------------------------------------------------------------------------


def foretold(**more: Any) -> Run:
    run = Run(created(arms="A"))
    run.append(Foretold("A", [], [FloorPoint(6, 0.002), FloorPoint(105, 0.004)], "500 GB/s, a test", "1 GB", **more))
    run.append(ArmEvent("A", 0, 0.0, Started(5, 1, 101, [])))
    return run


def test_the_floor_is_that_of_the_middle_token_and_an_arm_states_its_share() -> None:
    run = foretold()
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 100, "x" * 100)))
    summary = run.summary("A")
    assert summary.floor_s == pytest.approx(0.002 + (55 - 6) / 99 * 0.002)
    assert summary.floor_s and summary.latency_median_s
    assert summary.limit_share == pytest.approx(summary.floor_s / summary.latency_median_s)
    head = run.delta(0, [[0, 0, 0]], 1.0).head
    assert head is not None and head.arms[0].floor is not None
    assert (head.arms[0].floor.x, head.arms[0].floor.s) == ([1, 100], [0.002, 0.004])
    tile = next(tile for tile in head.arms[0].tiles if tile.key == "share")
    assert (tile.unit, tile.note) == ("%", "500 GB/s, a test")
    row = next(row for row in run.details("A") if row.key == "floor")
    assert (row.unit, row.note) == ("ms", "1 GB at 500 GB/s, a test")


def test_without_a_floor_there_is_no_share_and_the_reason_is_said() -> None:
    run = Run(created(arms="A"))
    run.append(Foretold("A", [], [], "The bandwidth is not known: measure it."))
    run.append(ArmEvent("A", 0, 0.0, Started(5, 1, 101, [])))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 10, "x" * 10)))
    assert run.summary("A").floor_s is None and run.summary("A").limit_share is None
    head = run.delta(0, [[0, 0, 0]], 1.0).head
    assert head is not None and head.arms[0].floor is None
    tile = next(tile for tile in head.arms[0].tiles if tile.key == "share")
    assert (tile.value, tile.note) == ("n/a", "The bandwidth is not known: measure it.")


def test_a_prediction_kept_by_an_older_version_still_opens() -> None:
    old = b'{"record":"foretold","arm":"A","points":[{"length":5,"sliding":1,"full":2}]}'
    run = Run(created(arms="A"))
    run.append(decode_record(old))
    assert run.lanes["A"].predicted == [KvPoint(5, 1, 2)]
    assert run.lanes["A"].floor == [] and run.lanes["A"].foreseen == {}
    assert all(check.predicted is None for check in run.checks("A"))


def test_what_was_measured_stands_beside_what_was_foretold() -> None:
    run = foretold(memory={"weights": 1000, "kv": 10, "tensors": 1100, "total": 2000})
    run.append(ArmEvent("A", 0, 0.0, Loaded(1000, 1, False)))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 10, "x" * 10)))
    found = {check.part: check for check in run.checks("A")}
    assert (found["weights"].predicted, found["weights"].measured, found["weights"].error_percent) == (1000, 1000, 0.0)
    assert found["peak"].predicted == 2000
