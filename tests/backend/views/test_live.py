"""What the browser gets: every viewer sees everything once, whenever it arrives, and the rest in words."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, get_args

import msgspec
import pytest

from tests.backend.runs.test_quality import FORMAT, compared
from tests.backend.runs.test_run import repeat
from tests.backend.views.test_batch_live import run_of
from tests.support.runs import arm_records, created, ended, finished, tokens
from tokendyno.backend.messages import Annotation, Loaded, PhaseName, Progress, RankMemory, Samples, Started, Tokens
from tokendyno.backend.predict.kv import KvPoint
from tokendyno.backend.runs import run as run_module
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.records import ArmEvent, Created, Ended, Predicted, Record, RooflinePoint
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store
from tokendyno.backend.views import live
from tokendyno.backend.views.batch_live import BatchHead, batch_delta
from tokendyno.backend.views.details import detail_rows
from tokendyno.backend.views.live import Heads, head_of
from tokendyno.backend.views.phases import PHASE_TITLES
from tokendyno.backend.views.sentences import interference_of
from tokendyno.backend.views.tiles import Tile


def first_record(arms: str = "AB", repeats: int = 1) -> Created:
    return created("a", arms, at_s=1.0, repeats=repeats)


def story(rng: random.Random) -> list[Record]:
    """The records of a run of two arms of random lengths, some of which end early."""
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
        records.append(Predicted(arm, [KvPoint(5, 10, 15), KvPoint(105, 10, 315)]))
        generated, text = 0, ""
        for _ in range(rng.randrange(12)):
            if rng.random() < 0.4:
                log(Samples([at_s, at_s + 0.05], [1, 2]))
            count = rng.randrange(1, 9)
            added = "".join(rng.choice("ab é\n😀") for _ in range(rng.randrange(6)))
            log(tokens(generated, count, added))
            generated, text = generated + count, text + added
        if rng.random() < 0.8:
            log(finished(text + rng.choice(["", "�", " end"])))
    records.append(Ended(9.0, rng.choice(["done", "failed", "cancelled"])))
    return records


@dataclass
class Viewer:
    """Keeps what it was given; each answer must begin where its cursor stands."""

    cursors: list[list[int]] = field(default_factory=lambda: [[0, 0, 0], [0, 0, 0]])
    ids_kvs: list[list[int]] = field(default_factory=lambda: [[], []])
    times: list[list[float]] = field(default_factory=lambda: [[], []])
    samples: list[list[int]] = field(default_factory=lambda: [[], []])
    text: list[str] = field(default_factory=lambda: ["", ""])
    version: int = 0
    ended: bool = False

    def pull(self, run: Run) -> None:
        delta = live.delta(run, self.version, self.cursors, 0.0)
        self.version, self.ended = delta.version, delta.ended
        for i, arm in enumerate(delta.columns):
            assert [arm.first, arm.first_sample, arm.first_character] == self.cursors[i]
            assert (
                len(arm.t_s) == len(arm.latency_s) == len(arm.kv_sliding) == len(arm.kv_growing) == arm.end - arm.first
            )
            assert (
                len(arm.sample_t_s) == len(arm.sample_bytes) == arm.end_sample - arm.first_sample
                and len(arm.text) == arm.end_character - arm.first_character
            )
            self.ids_kvs[i] += arm.kv_sliding
            self.times[i] += arm.t_s
            self.samples[i] += arm.sample_bytes
            self.text[i] += arm.text
            self.cursors[i] = [arm.end, arm.end_sample, arm.end_character]

    def has_all(self, run: Run) -> bool:
        arms = list(run.arms.values())
        return (
            self.ids_kvs == [arm.kv_sliding for arm in arms]
            and self.times == [arm.t_s for arm in arms]
            and self.samples == [arm.sample_bytes for arm in arms]
            and self.text == [arm.text for arm in arms]
        )


@pytest.mark.parametrize("seed", range(15))
def test_any_sequence_of_pulls_sees_every_token_sample_and_character_once(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several viewers at their own pace, some arriving late, some reloading in mid-run, under any cap."""
    rng = random.Random(seed)
    monkeypatch.setattr(run_module, "MAX_TOKENS_PER_PULL", rng.choice([1, 2, 5, 4000]))
    run = Run(first_record())
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


@pytest.mark.parametrize("seed", range(5))
def test_a_run_read_back_from_its_records_is_the_same_run(seed: int) -> None:
    watched, again = Run(first_record()), Run(first_record())
    store = Store(None)
    log = RunLog(store)
    log.create(first_record())
    for record in story(random.Random(seed)):
        watched.append(record)
        log.append("a", record)
    for record in store.read("a")[1:]:
        again.append(record)
    start = [[0, 0, 0]] * 2
    assert again.arms == watched.arms and live.delta(again, 0, start, 1.0) == live.delta(watched, 0, start, 1.0)


def test_the_browser_gets_every_column() -> None:
    run = Run(first_record("A"))
    columns = [0.1, 0.3], [0.1, 0.2], [1, 2], [3, 4], [5, 6], [7, 8]
    run.append(ArmEvent("A", 0, 1.0, Tokens(0, *columns, "xyz", kv_state=[1, 1])))
    run.append(ArmEvent("A", 0, 1.0, Samples([0.5], [9])))
    sent = msgspec.to_builtins(live.delta(run, 0, [[0, 0, 0]], 0.0))
    assert sent["lanes"] == [
        {
            "first": 0, "n": 2, "t": [0.1, 0.3], "lat": [0.1, 0.2], "kvs": [1, 2], "kvf": [2, 3], "kvl": [],
            "kvt": [1, 1], "kvi": [], "sfirst": 0, "sn": 1, "st": [0.5], "sm": [9], "cfirst": 0, "cn": 3, "text": "xyz",
        }
    ]  # fmt: skip


def test_the_head_is_sent_only_when_something_of_it_changed() -> None:
    run = Run(first_record())
    first = live.delta(run, 0, [[0, 0, 0]] * 2, 0.0)
    assert first.head is not None
    assert live.delta(run, first.version, [[0, 0, 0]] * 2, 0.0).head is None
    run.append(ArmEvent("A", 0, 1.0, Progress("load", "begin", 0.0)))
    again = live.delta(run, first.version, [[0, 0, 0]] * 2, 0.0)
    assert again.head is not None and again.head.arms[0].state == "working"
    assert [(phase.name, phase.title) for phase in again.head.arms[0].phases] == [("load", "load")]


# --- the head -------------------------------------------------------------------------------------


def head(run: Run) -> live.Head:
    sent = live.delta(run, 0, [[0, 0, 0]] * len(run.arms), 1.0).head
    assert sent is not None
    return sent


def bound_row(run: Run) -> Tile:
    run.append(ArmEvent("A", 0, 1.1, finished("x")))
    return next(row for row in detail_rows(run.snapshot(), "A") if row.key == "floor")


def test_the_comparison_is_reported_at_the_end_and_a_single_arm_has_none() -> None:
    run = Run(first_record(repeats=2))
    for number in range(2):
        repeat(run, "A", number, 0.2)
        repeat(run, "B", number, 0.1)
    assert (head(run).verdict.sentence, head(run).message) == ("", "pair 2 of 2")
    run.append(Ended(9.0, "done"))
    assert (
        head(run).verdict.sentence.startswith("Full KV cache (no sliding window) ran 2.00×") and head(run).message == ""
    )
    assert head(run).differences["rate"].better == "B"
    alone = Run(first_record("A"))
    repeat(alone, "A", 0, 0.2)
    alone.append(Ended(9.0, "done"))
    assert (alone.snapshot().comparison, head(alone).differences) == (None, {})
    assert head(alone).verdict.sentence.startswith("A generates")


def test_interference_in_any_repeat_is_reported_and_only_annotations_of_the_first_are_drawn() -> None:
    run = Run(first_record(repeats=2))
    for number in range(2):
        repeat(run, "A", number, 0.2)
        run.append(
            ArmEvent("A", number, 2.0, Annotation("throttle", 1, 0.1, 0.5, "the GPU lowered its clocks (power cap)"))
        )
    run.append(ArmEvent("A", 1, 2.0, Annotation("gc", 1, 0.1, 0.5, "Python collected garbage")))
    now = run.snapshot()
    sentence, lock = interference_of(now, "A")
    assert "power cap" in sentence and "1.00 of 2.00 s" in sentence and "in 2 runs" in sentence
    a, b = head(run).arms
    assert len(a.annotations) == 1 and a.interference == [sentence, lock] and b.interference == []


def test_after_the_end_the_run_that_is_told_is_the_one_that_is_drawn() -> None:
    run = Run(first_record("A", repeats=2))
    for number, took_s in enumerate((2.0, 5.0)):
        for event in (Progress("run", "begin", 0.0), tokens(0, 3), Progress("run", "end", took_s), finished("abc")):
            run.append(ArmEvent("A", number, 1.0 + number, event))
    assert [phase.seconds for phase in head(run).arms[0].phases] == [5.0]
    run.append(ArmEvent("A", 2, 4.0, Progress("run", "begin", 0.0)))  # stopped in a third one
    run.append(Ended(9.0, "cancelled"))
    assert [phase.seconds for phase in head(run).arms[0].phases] == [2.0]


def predicted(**more: Any) -> Run:
    run = Run(first_record("A"))
    run.append(
        Predicted("A", [], [RooflinePoint(6, 0.002), RooflinePoint(105, 0.004)], "500 GB/s, a test", "1 GB", **more)
    )
    run.append(ArmEvent("A", 0, 0.0, Started(5, 1, 101, [])))
    return run


def test_the_roofline_is_drawn_over_tokens_and_an_arm_states_its_share() -> None:
    run = predicted()
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 100, "x" * 100)))
    (arm,) = head(run).arms
    assert arm.roofline is not None and (arm.roofline.x, arm.roofline.s) == ([1, 100], [0.002, 0.004])
    tile = next(tile for tile in arm.tiles if tile.key == "share")
    assert (tile.unit, tile.note) == ("%", "500 GB/s, a test")
    row = bound_row(run)
    assert (row.unit, row.note) == ("ms", "1 GB at 500 GB/s, a test")


def test_without_a_roofline_bound_the_reason_is_given() -> None:
    run = Run(first_record("A"))
    run.append(Predicted("A", [], [], "The bandwidth is not known: measure it."))
    run.append(ArmEvent("A", 0, 0.0, Started(5, 1, 101, [])))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 10, "x" * 10)))
    (arm,) = head(run).arms
    assert arm.roofline is None
    assert not any(tile.key == "share" for tile in arm.tiles), "an empty tile that a visitor cannot mend"
    row = bound_row(run)
    assert (row.value, row.note) == ("n/a", "The bandwidth is not known: measure it.")


def test_every_phase_has_a_title() -> None:
    assert set(PHASE_TITLES) == set(get_args(PhaseName))


def test_memory_by_rank_is_told_in_rows_and_the_others_are_a_curve_with_gaps() -> None:
    ranks = [RankMemory(100, 10, 1 << 30, [0.0, 0.1], [5, 6]), RankMemory(90, 10, 1 << 29, [0.0], [7])] * 2
    run = Run(first_record("A"))
    for event in (Started(5, 1, 10, []), tokens(0, 3), msgspec.structs.replace(finished("x"), ranks=ranks)):
        run.append(ArmEvent("A", 0, 1.0, event))
    now = run.snapshot()
    curves = live.head_of(now, 1.0).arms[0].ranks
    assert curves is not None
    assert curves.x == [0.0, None, 0.0, 0.1, None, 0.0, None] and curves.bytes == [7, None, 5, 6, None, 7, None]
    rows = [row for row in detail_rows(now, "A") if row.key.startswith("rank-")]
    assert [(row.label, row.value, row.unit) for row in rows][:2] == [
        ("Peak memory of rank 0", "1.00", "GiB"),
        ("Peak memory of rank 1", "512", "MiB"),
    ]


# --- the figure of a slide -------------------------------------------------------------------------


def test_what_differs_has_a_figure_in_a_sentence_and_what_does_not_has_none() -> None:
    run = Run(created())
    for record in [*arm_records("A", 64), *arm_records("B", 64), ended()]:
        run.append(record)
    figures = head_of(run.snapshot(), 0.0).figures
    assert set(figures) == {"latency", "kv"}
    figure = figures["kv"]
    assert (figure.lead, figure.tail.split(" than ")[0]) == ("Baseline took", "less KV cache")
    assert figure.figure.endswith("%") and 0 < int(figure.figure[:-1]) < 100


def test_of_a_single_arm_the_time_of_a_token_and_the_cache_are_shown() -> None:
    run = Run(created(arms="A"))
    for record in [*arm_records("A", 20), ended()]:
        run.append(record)
    figures = head_of(run.snapshot(), 0.0).figures
    assert set(figures) == {"latency", "kv"} and figures["kv"].tail.endswith("B of KV cache in arm A")


# --- heads that viewers share ----------------------------------------------------------------------

START = [[0, 0, 0]] * 2


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Of each head that is made, the run."""
    runs: list[object] = []
    make = live.head_of

    def counting(run: object, *more: object) -> live.Head:
        runs.append(run)
        return make(run, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(live, "head_of", counting)
    return runs


def test_viewers_share_a_head_until_the_run_goes_on(made: list[object]) -> None:
    heads: Heads[live.Head] = Heads()
    run, other = Run(created()), Run(created())

    def watch(watched: Run, version: int, now_s: float) -> live.Delta:
        return live.delta(watched, version, START, now_s, heads=heads)

    first, second = watch(run, 0, 1.0), watch(run, 0, 3.0)
    assert len(made) == 1 and first.head is not None and second.head is not None
    assert (first.head.now_s, second.head.now_s) == (1.0, 3.0), "the clock is each viewer's own"
    run.append(ArmEvent("A", 0, 1.0, Progress("load", "begin", 0.0)))
    later = watch(run, first.version, 4.0)
    assert later.head is not None and later.head.arms[0].state == "working" and len(made) == 2
    assert watch(run, later.version, 5.0).head is None and watch(other, 0, 5.0).head is not None and len(made) == 3


def test_the_head_of_an_ended_run_is_made_again_after_a_while(
    made: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    heads: Heads[live.Head] = Heads()
    run = compared(FORMAT, same_text=False)
    live.delta(run, 0, START, 1.0, heads=heads)
    monkeypatch.setattr(live, "FRESH_S", 0.0)
    live.delta(run, 0, START, 1.0, heads=heads)
    assert len(made) == 2, "a reading by its arms may have been made since"


def test_only_a_first_pull_of_many_requests_brings_what_they_ask_for_from_a_shared_head() -> None:
    heads: Heads[BatchHead] = Heads()
    run = run_of()
    again, first = (batch_delta(run, version, [(0, 0, 0, 0)] * 2, 1.0, heads=heads).head for version in (0, -1))
    assert again is not None and first is not None and again.asked is None and first.asked is not None


def test_what_is_known_of_the_quality_takes_one_look_at_earlier_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    recent: Callable[..., object] = Store.recent
    monkeypatch.setattr(Store, "recent", lambda *of: looks.append(of) or recent(*of))  # type: ignore[func-returns-value]
    run = compared(FORMAT, same_text=False)
    sent = live.delta(run, 0, START, 1.0, others=RunLog(Store(None))).head
    assert sent is not None and sent.verdict.gate
    assert len(looks) == 1
