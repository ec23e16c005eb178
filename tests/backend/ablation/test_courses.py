"""Ablations of visitors: which may begin, whose they are, and that one goes on where it was stopped."""

import contextlib
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.ablations import WORK, stored
from tokendyno.backend.ablation.course_view import course_view
from tokendyno.backend.ablation.courses import Courses, changes_of
from tokendyno.backend.ablation.journal import Cost, Journal, heading_of
from tokendyno.backend.ablation.kinds import Ablation, Sweep
from tokendyno.backend.ablation.view import worth_view
from tokendyno.backend.config import MOST_PAIRS, ArmRequest, Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor

B = {"cache": "static", "dtype": "float32"}
OTHER = Visitor("somebody")


def two_arms(b: dict[str, str] = B) -> Request:
    """As Compare asks for it: pairs until they decide. A trial is one run all the same."""
    arms = [ArmRequest("A", {"dtype": "bfloat16"}), ArmRequest("B", b)]
    return Request("pocket", arms, replace(WORK, repeats=MOST_PAIRS), until_s=60, reading=[])


def bench_in(folder: Path, mode: Any = "local") -> Bench:
    return open_bench(folder / "history.sqlite", limits=LIMITS[mode])


def test_a_stored_ablation_is_a_waterfall_that_adds_up(tmp_path: Path) -> None:
    stored(tmp_path)
    bench = bench_in(tmp_path)
    course = Courses(bench).get("stored-worth")
    assert isinstance(course, Ablation) and (course.state, course.finished, course.trials) == ("stopped", 13, 4 * 3 + 3)
    view = worth_view(course)
    assert [course.document(rounds).complete for rounds in (2, 3, 4)] == [True, True, False]
    bench.close()
    assert view.headline.startswith("Together: 1.98× as fast (")
    assert view.headline.index("KV cache: static alone: 1.66× as fast") < view.headline.index(
        "Dtype: float32 alone: 1.25×"
    )
    stairs, alone, without = view.groups
    assert [row.title for row in stairs.rows] == ["Arm A", "Dtype: float32", "KV cache: static", "Arm B"]
    ends = [bar.end for row in stairs.rows if (bar := row.bars[0]) is not None]
    begins = [bar.begin for row in stairs.rows[1:3] if (bar := row.bars[0]) is not None]
    assert begins == pytest.approx(ends[:2]) and ends[3] == pytest.approx(ends[2]) and ends[2] < ends[1] < ends[0] < 1
    first, second = stairs.rows[1].bars[0], stairs.rows[2].bars[0]
    assert first is not None and second is not None
    assert (first.text, second.text) == ("\u221220.0 ms", "\u221230.0 ms") and first.better == "yes"
    memory = alone.rows[2].bars[1]
    assert memory is not None and memory.text == "\u221210.0 MiB" and memory.better == "yes"
    quality = alone.rows[1].bars[2]
    assert quality is not None and (quality.text, quality.better) == ("+0.0200 nats", "no")
    assert alone.rows[2].bars[2] is None, "not read yet"
    assert "quality cost small: up to 0.05 nats and 1.05\u00d7 perplexity" in alone.rows[1].remarks
    assert [row.title for row in without.rows] == ["Arm B", "without Dtype: float32", "without KV cache: static"]
    lost = without.rows[2].bars[0]
    assert lost is not None and lost.text == "+30.0 ms"


def test_what_a_command_measures_now_is_looked_at_and_left_alone(tmp_path: Path) -> None:
    stored(tmp_path)
    path = tmp_path / "ablations" / "stored-worth.jsonl"
    bench = bench_in(tmp_path)
    courses = Courses(bench)
    with contextlib.closing(Journal(path, heading_of(path))) as journal:
        for number in (1, 2):
            course = courses.get("stored-worth")
            assert course is not None and course_view(course).sentence == f"Measuring: {12 + number} of 15 runs."
            with pytest.raises(InputError, match="ended where it was begun"):
                courses.stop("stored-worth", LOCAL_USER)
            journal.add(Cost("cache=static,dtype=bfloat16", 0.02, 0.96, 1.01, "small"))
    course = courses.get("stored-worth")
    assert course is not None and (course.state, course.finished) == ("stopped", 14)
    bench.close()


def test_others_may_look_and_not_touch(tmp_path: Path) -> None:
    stored(tmp_path)
    stored(tmp_path, "older-one", versions={"torch": "1.0"})
    bench = bench_in(tmp_path)
    courses = Courses(bench)
    known = courses.get("stored-worth")
    assert known is not None and courses.get("../history") is None
    assert not courses.stop("stored-worth", OTHER)
    with pytest.raises(InputError, match="nothing of yours"):
        courses.again("stored-worth", OTHER)
    assert courses.newest("", Ablation) == "stored-worth" and courses.newest(OTHER.owner, Ablation) == ""
    assert courses.newest("", Sweep) == ""
    older = courses.get("older-one")
    assert older is not None and older.state == "failed" and "other versions (" in older.message
    assert not course_view(older).again and course_view(known).again
    with pytest.raises(InputError, match="cannot go on"):
        courses.again("older-one", LOCAL_USER)
    bench.close()


def test_what_cannot_be_ablated_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="differ in one choice"):
        changes_of({}, {"cache": "static"})
    assert changes_of({"dtype": "bfloat16"}, B) == [("dtype", "float32"), ("cache", "static")]
    bench = bench_in(tmp_path, "public")
    bench.limits = replace(bench.limits, trials=14)
    with pytest.raises(InputError, match="takes 15 runs, over the limit of 14 here"):
        Courses(bench).begin(two_arms(), LOCAL_USER)
    assert not list((tmp_path / "ablations").iterdir()), "what was not begun leaves no journal"
    one_arm = Request("pocket", [ArmRequest("A", {})], WORK)
    for over, quality, why in (
        ({"batch_size": ["1", "2"]}, True, "only sizes vary"),
        ({"requests": ["4", "8"], "cache": ["dynamic", "static"]}, True, "many requests are swept"),
        ({"batch_size": ["1"]}, False, "two different values"),
        ({"cache": ["offloaded", "offloaded_static"]}, False, "No point can run here"),
        ({"batch_size": ["1", "2", "3", "4", "5"]}, False, "takes 15 runs"),
    ):
        with pytest.raises(InputError, match=why):
            Courses(bench).begin_sweep(one_arm, over, quality, LOCAL_USER)
    bench.close()


def test_a_sweep_tells_its_trials_by_titles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = list[str]()
    monkeypatch.setattr(
        "tokendyno.backend.ablation.course.perform", lambda bench, tasks, *_: labels.extend(t.what for t in tasks)
    )
    bench = bench_in(tmp_path)
    over = {"prompt_tokens": ["16", "1024"], "cache": ["dynamic", "static"]}
    course = Courses(bench).begin_sweep(Request("pocket", [ArmRequest("A", {})], WORK), over, True, LOCAL_USER)
    ended(course, lambda: not course.live)
    bench.close()
    assert "round 1 of 3: Prompt tokens: 1,024, KV cache: static" in labels
    assert labels[-1] == "quality: KV cache static" and not any("=" in what for what in labels)


@pytest.mark.slow
def test_one_goes_on_where_it_was_stopped_and_repeats_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokendyno.backend.ablation.courses.ROUNDS", 1)
    monkeypatch.setattr("tokendyno.backend.ablation.courses.POSITIONS", 0)
    bench = open_bench(tmp_path / "history.sqlite")
    bench.start()
    courses = Courses(bench)
    a, b = {"dtype": "float32"}, {**B, "attention": "eager"}  # in float32 the workers serve several runs
    two = Request("pocket", [ArmRequest("A", a), ArmRequest("B", b)], WORK)
    course = courses.begin(two, LOCAL_USER)
    with pytest.raises(InputError, match="under way"):
        courses.begin(two_arms(), LOCAL_USER)
    ended(course, lambda: course.finished >= 1)
    assert courses.stop(course.id, LOCAL_USER)
    ended(course, lambda: not course.live)
    assert course.state == "stopped" and 1 <= course.finished < course.trials == 4
    lines = (tmp_path / "ablations" / f"{course.id}.jsonl").read_bytes()
    restarted = Courses(bench)  # as after a restart
    resumed = restarted.again(course.id, LOCAL_USER)
    ended(resumed, lambda: not resumed.live)
    assert (resumed.state, resumed.finished, resumed.message) == ("done", 4, "")
    whole = (tmp_path / "ablations" / f"{course.id}.jsonl").read_bytes()
    assert whole.startswith(lines) and whole.count(b'"trial"') == 4
    bench.close()


def ended(course: Any, until: Any) -> None:
    deadline_s = time.monotonic() + 120
    while not until():
        assert time.monotonic() < deadline_s, (course.state, course.doing, course.message)
        time.sleep(0.05)
