"""Advice from a journal whose figures are known, and from real runs."""

import contextlib
import itertools
from pathlib import Path

import msgspec
import pytest

from tests.support.ablations import stored_advice
from tests.support.kept_runs import history_of, made, run_on
from tests.support.runs import encoder, ended, passes
from tests.support.scripted_executor import ScriptedExecutor
from tests.ui.report.test_page import held
from tokendyno.backend.ablation.advise import space
from tokendyno.backend.ablation.advise.result import UNCONFIRMED
from tokendyno.backend.ablation.advise.view import advice_view
from tokendyno.backend.ablation.courses import Courses, titled
from tokendyno.backend.ablation.journal import Confirmed, Heading, Journal, Trial, heading_of
from tokendyno.backend.ablation.kinds import AdviceCourse, course_of_journal
from tokendyno.backend.cli.main import BAD_INPUT, FAILED, main
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.executors import KINDS, open_bench
from tokendyno.backend.history.search import Search
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.quality.texts import YOURS, passages
from tokendyno.ui.report.page import course_report


@pytest.fixture
def few_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of those among which advice is sought: to check all takes a second."""
    monkeypatch.setattr(space, "MOST_ARMS", 240)


@pytest.mark.usefixtures("few_arms")
def test_stored_advice_names_the_winner_and_what_stands_against_the_others(tmp_path: Path) -> None:
    stored_advice(tmp_path)
    bench = open_bench(tmp_path / "history.sqlite")
    course = Courses(bench).get("stored-advice")
    assert isinstance(course, AdviceCourse)
    document, view = course.document(), advice_view(course)
    report = course_report(course)
    short = course.advice.document(45).winners[0].certificate  # of which 41 s are spent
    bench.close()
    assert ". For the least time a token, use KV cache static + Decode loop custom: 10." in document.headline
    assert document.headline.startswith("Pocket, 5M on "), "which model, and where"
    (best,) = document.winners
    assert best.ratio == pytest.approx(2.0, rel=0.01) and best.low is not None and best.low > 1
    assert UNCONFIRMED in short and UNCONFIRMED not in best.certificate
    assert "td.load" in best.script and best.serve.startswith("tokendyno serve --model pocket")
    barred = {arm.title: arm.barred for arm in document.measured}
    assert barred["As it comes"] == "time a token of 20.0 ms over 15.0 ms" and "25.0 ms" in barred["Dtype float16"]
    assert [arm.title for arm in document.measured if arm.pareto] == [best.arm.title]
    assert "Out of memory." in [group.why for group in document.not_tried]
    assert ", in 8 runs of " in best.certificate[-1], "the same count as of the course"
    assert view.course.sentence.startswith("Stopped after 8 runs") and view.cards[0].tag == "Best for your wish, so far"
    assert "<title>pocket: advice" in report


@pytest.mark.usefixtures("few_arms")
def test_what_was_measured_again_decides_on_the_page_and_in_the_report(tmp_path: Path) -> None:
    """Of two arms that were alike then, one is not advised because it was faster in the trials before."""
    stored_advice(tmp_path)
    path = tmp_path / "ablations" / "stored-advice.jsonl"
    with contextlib.closing(Journal(path, heading_of(path))) as journal:
        journal.add(Confirmed("cache=static,loop=own", "abcd1234"))
    history, page = tmp_path / "history.sqlite", tmp_path / "page.html"
    with history_of(history, [made(run_on("abcd1234"))]):
        pass
    assert main(["report", str(path), "--history", str(history), "--html", str(page)]) == 0
    with contextlib.closing(open_bench(history)) as bench:
        course = Courses(bench).get("stored-advice")
        assert isinstance(course, AdviceCourse)
        document = course.document()
    assert document.headline.endswith(
        ". For the least time a token, leave it as it comes: 10.0 ms a token, 513 MiB. Nothing was shown to be better: "
        "measured again beside it, KV cache static + Decode loop custom was 1.00\u00d7 as fast. "
        "One pair of runs has no interval. Both figures are of these pairs, others of earlier trials."
    )
    assert held(page.read_text())["headline"] == document.headline
    assert document.winners[0].run == "abcd1234", "its figures are of that run"
    assert document.winners[0].arm in document.measured, "one figure for one thing, in the table too"


@pytest.mark.parametrize(
    ("of_b_s", "said"), [(0.01, "use KV cache full (no sliding window)"), (0.02, "use the defaults")]
)
def test_a_row_of_the_history_says_what_is_advised(tmp_path: Path, of_b_s: float, said: str) -> None:
    stored_advice(tmp_path)
    path, wish = tmp_path / "ablations" / "stored-advice.jsonl", "the least time a token"
    first = encoder("last", "AB", repeats=2)
    first = msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, trial="stored-advice"))
    pairs = [passes(arm, 20, n, step_s) for n in range(2) for arm, step_s in (("A", 0.02), ("B", of_b_s))]
    with history_of(tmp_path / "history.sqlite", [[first, *itertools.chain(*pairs), ended()]]):
        pass
    with contextlib.closing(open_bench(tmp_path / "history.sqlite")) as bench:
        (row,) = bench.history.listing.find(Search(), LOCAL_USER).rows
        assert titled(bench.store.path, row, bench.runs).line == f"Advice: {wish}"
        with contextlib.closing(Journal(path, heading_of(path))) as journal:
            journal.add(Confirmed("cache=unwindowed", "last"))
        assert titled(bench.store.path, row, bench.runs).line == f"Advice: for {wish}, {said}"


@pytest.mark.usefixtures("few_arms")
def test_the_answer_after_the_end_is_not_the_one_that_was_shown_just_before_it(tmp_path: Path) -> None:
    stored_advice(tmp_path, budget_s=41.0)
    bench = open_bench(tmp_path / "history.sqlite")
    course = Courses(bench).get("stored-advice")
    assert isinstance(course, AdviceCourse)
    course.state, course.advice._running = "running", True  # the last line is written, the thread goes on
    assert not course.document().complete
    course.state, course.advice._running = "done", False
    assert course.document().complete and UNCONFIRMED in course.document().winners[0].certificate
    bench.close()


@pytest.mark.usefixtures("few_arms")
def test_the_journal_of_a_command_that_was_stopped_is_reported(tmp_path: Path) -> None:
    """A command decides its budget each time: its journal has none."""
    stored_advice(tmp_path, budget_s=0.0)
    bench = open_bench(None)
    course = course_of_journal(bench, tmp_path / "ablations" / "stored-advice.jsonl")
    assert isinstance(course, AdviceCourse) and (course.state, course.share) == ("done", 1.0)
    document = course.document()
    bench.close()
    assert document.budget_s == document.spent_s == 36.0 and document.winners


@pytest.mark.usefixtures("few_arms")
def test_the_certificate_names_the_text_that_was_given(tmp_path: Path) -> None:
    read = [("text", one.text) for one in passages(YOURS, "A fox of my own. " * 120)]
    stored_advice(tmp_path, changes=[("for", "memory"), *read])
    bench = open_bench(tmp_path / "history.sqlite")
    course = Courses(bench).get("stored-advice")
    assert isinstance(course, AdviceCourse) and len(read) > 1
    said = [line for one in course.document().winners for line in one.certificate if "KL divergence" in line]
    bench.close()
    assert [line.endswith(", on your text.") for line in said] == [True]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--side-by-side", "99"], "--side-by-side is 99, and this machine has"),
        (["--gpu", "H100-SXM", "--side-by-side", "2"], "On a GPU that is not here nothing is measured."),
    ],
)
def test_places_that_there_are_not_are_refused(more: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--no-history", *more]) == BAD_INPUT
    assert said in capsys.readouterr().err


@pytest.mark.usefixtures("few_arms")
@pytest.mark.parametrize("trials", [0, 1])
def test_a_base_that_breaks_is_a_failed_run(
    trials: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(KINDS, "subprocess", ExecutorKind(lambda inbox: ScriptedExecutor(inbox, "dies")))
    line = ["advise", "--no-history", "--journal", str(tmp_path / "j.jsonl")]
    if trials:  # of another arm, by a command that was stopped
        main(line)
        heading = msgspec.json.decode((tmp_path / "j.jsonl").read_bytes().splitlines()[0], type=Heading)
        with contextlib.closing(Journal(tmp_path / "j.jsonl", heading)) as journal:
            journal.add(Trial("cache=static", 0, [0.05, 0.01], 0.05, 1 << 20, 7, [1], spent_s=1.0))
        capsys.readouterr()
    assert main(line) == FAILED
    shown = capsys.readouterr()
    assert "The model as it comes cannot be measured" in shown.err and bool(shown.out) == bool(trials)


@pytest.mark.full
def test_advice_on_the_command_line_ends_in_its_budget_and_is_not_sought_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "advice.jsonl"
    line = ["advise", "--max-new-tokens", "8", "--prompt-tokens", "16", "--budget", "20s", "--no-history"]
    assert main([*line, "--journal", str(journal), "--json", str(tmp_path / "a.json")]) == 0
    first = capsys.readouterr().out
    assert ". For the least time a token, " in first and "Measured" in first
    size = journal.stat().st_size
    assert main([*line, "--journal", str(journal)]) == 0
    assert journal.stat().st_size == size, "there was nothing left to do"
