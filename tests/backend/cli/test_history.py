"""`tokendyno history` over a file of runs, and where commands keep what they run."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.backend.runs.test_history_file import newer
from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tests.support.command_line import sentence
from tests.support.kept_runs import H200, made, run_on
from tests.support.kept_runs import history_of as kept_in
from tests.support.runs import ended
from tokendyno.backend.ablation.courses import kept_journal
from tokendyno.backend.ablation.journal import SWEEP, Heading, Journal
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.cli.stored import history_of
from tokendyno.backend.config import Workload
from tokendyno.backend.runs import history_file
from tokendyno.backend.runs.records import Created

RUNS = [
    made(run_on("aaaa1111", at_s=86_400.0)),
    made(run_on("aaaa2222", H200, at_s=172_800.0), line="B generates 2.6x faster."),
    [batch_created("bbbb3333", at_s=1e6), *batch_arm("A", static_events()), *batch_arm("B", paged_events()), ended()],
    made(run_on("cccc4444", owner="ada")),
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "h.sqlite"
    with kept_in(path, RUNS):
        pass
    monkeypatch.setenv("TOKENDYNO_HISTORY", str(path))
    monkeypatch.setenv("COLUMNS", "80")
    return path


def output(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, str]:
    """What a command that succeeds prints."""
    assert main(["history", *words]) == 0
    printed = capsys.readouterr()
    return printed.out, printed.err


def test_a_history_that_cannot_be_read_is_no_empty_one(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    newer(file)
    for words in (["history"], ["history", "show", "aaaa1111"], ["replay", "aaaa1111"]):
        assert main([*words, "--history", str(file)]) == 2
        printed = capsys.readouterr()
        assert printed.out == "" and "A newer version of tokendyno wrote the history h.sqlite (format 99" in " ".join(
            printed.err.split()
        )
        assert "Update tokendyno, or name another file with --history" in " ".join(printed.err.split())


def test_a_run_that_was_stopped_is_called_so_as_on_the_page(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kept_in(file, [[run_on("dddd5555"), ended("cancelled")]]):
        pass
    listed, shown = output(capsys)[0], output(capsys, "show", "dddd5555")[0]
    assert "stopped." in listed and ", stopped" in shown.splitlines()[0] and "cancelled" not in listed


def test_a_home_folder_that_the_shell_left_is_found(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(file.parent))
    monkeypatch.chdir(file.parent)
    history = "--history=~/h.sqlite"
    assert main(["export", "--run", "aaaa1", history, "--output=~/run.dyno"]) == 0, "a run is named as the list has it"
    assert main(["replay", "aaaa1", history]) == 0
    assert main(["report", "aaaa1", history, "--csv=~/run.csv"]) == 0
    assert main(["replay", "aaaa", history]) == 2, "two begin so"
    assert main(["import", "run.dyno", "--history=~/other.sqlite"]) == 0
    names = {path.name for path in file.parent.iterdir()}
    assert {"run.dyno", "run.csv", "other.sqlite"} <= names and "~" not in names


@pytest.mark.parametrize("words", [["history"], ["history", "show", "aaaa1111"], ["replay", "aaaa1111"]])
def test_a_damaged_history_is_no_empty_one(file: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("no database " * 500)
    assert main([*words, "--history", str(file)]) == 2
    assert "h.sqlite cannot be read: the file is damaged. Put a backup in its place" in " ".join(
        capsys.readouterr().err.split()
    )


def test_a_history_that_another_program_has_locked_is_no_empty_one(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(history_file, "WAIT_S", 0.1)
    with closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        assert main(["history"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "tokendyno: The history h.sqlite cannot be read: another program has locked it. End that" in printed.err


def test_runs_are_listed_found_and_written(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = output(capsys)
    assert [line.split()[0] for line in out.splitlines() if line[:4] in ("aaaa", "bbbb", "cccc")] == [
        "bbbb3333",
        "aaaa2222",
        "aaaa1111",
    ]
    assert "    B generates 2.6x faster." in out and "Runs 1 to 3 of 3." in out
    assert all(len(line) <= 80 for line in out.splitlines())
    out, _ = output(capsys, "--machine", "h200", "--axis", "cache=unwindowed", "--until", "1970-01-05")
    assert "aaaa2222" in out and "aaaa1111" not in out
    out, _ = output(capsys, "--limit", "2")
    assert "Runs 1 to 2 of 3; --page 2 shows the next." in out
    assert output(capsys, "--page", "9")[0] == "3 runs, and none on page 9.\n"
    assert output(capsys, "--words", "nowhere")[0] == "No run of 3 matches. Leave a filter out.\n"
    document = json.loads(output(capsys, "--model", "pocket", "--json", "-")[0])
    assert (document["kind"], document["schema"], document["total"], document["kept"]) == ("history", 3, 3, 3)


def test_a_run_is_named_shown_deleted_and_had_back(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "'a first try'" in output(capsys, "name", "aaaa2", "a first try")[1]
    out, _ = output(capsys, "show", "aaaa2")
    assert "Name: a first try" in out and "Time per token, mean" in out and "NVIDIA H200" in out
    document = json.loads(output(capsys, "show", "aaaa2", "--json", "-")[0])
    assert document["kind"] == "run" and document["versions"]["torch"] == "2.11.0"
    predicted = document["arms"][1]["kv_bytes_predicted"]
    assert predicted["sliding"] == document["arms"][1]["kv_bytes"]["sliding"]
    assert json.loads(output(capsys, "show", "bbbb", "--json", "-")[0])["kind"] == "batch"
    assert "history undelete aaaa2222`" in output(capsys, "delete", "aaaa2")[1]
    assert "Runs 1 to 2 of 2." in output(capsys)[0]
    output(capsys, "undelete", "aaaa2")
    assert "a first try: B generates" in output(capsys)[0]
    out, _ = output(capsys, "pins", "aaaa1.A", "aaaa2.B")
    assert "machine (Ryzen 7, 8 cores; NVIDIA H200)" in " ".join(out.split()) and "Time per token, mean" in out


def test_what_is_done_with_a_row_that_stands_for_many_trials_is_said_to_be_done_with_one(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def trial(run_id: str, of: str) -> Created:
        first = run_on(run_id, at_s=2e6)
        return msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, trial=of))

    monkeypatch.setenv("COLUMNS", "400")
    ids = {"dddd0001": "two-sizes", "dddd0002": "two-sizes", "eeee0001": "not-kept-any-more"}
    with kept_in(file, [made(trial(run_id, of)) for run_id, of in ids.items()]):
        pass
    journal = kept_journal(file, "two-sizes")
    assert journal is not None
    journal.parent.mkdir()
    heading = Heading("pocket", {}, [("batch_size", "1,4")], [SWEEP], Workload(prompt="Hi"))
    Journal(journal, heading).close()
    note = "This run is one of several trials (Sweep: Batch size 1, 4)."
    note += " All of them: `tokendyno report two-sizes --html FILE`."
    assert f"{note}\n" in output(capsys, "show", "dddd0001")[0]
    gone = "This run is one of several trials (an ablation, a sweep or advice).\n"
    assert gone in output(capsys, "show", "eeee")[0]
    assert "several trials" not in output(capsys, "show", "aaaa1")[0]
    assert main(["report", "dddd0001"]) == 0
    assert f"note: {note}\n" in capsys.readouterr().err
    deleted = output(capsys, "delete", "dddd0001", "dddd0002", "eeee", "aaaa1")[1]
    assert deleted.splitlines()[1:] == [
        "note: This deleted 2 trials of several (Sweep: Batch size 1, 4); others are kept.",
        "note: This deleted 1 trial of several (an ablation, a sweep or advice); others are kept.",
    ]


def test_a_report_of_many_requests_is_refused_with_the_commands_that_print_them(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["report", "bbbb"])
    printed = capsys.readouterr()
    says = "`tokendyno replay bbbb` prints its table, as `tokendyno history show` does"
    assert says in sentence(code, printed.out, printed.err)
    shown = output(capsys, "show", "bbbb")[0]
    assert main(["replay", "bbbb"]) == 0
    assert capsys.readouterr().out.strip() in shown


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["show", "aaaa"], "Several runs begin with 'aaaa': aaaa2222, aaaa1111"),
        (["show", "cccc4444"], "There is no run 'cccc4444'"),  # somebody else's
        (["show"], "Which run?"),
        (["delete"], "Which runs?"),
        (["name", "a", "b"], "too short"),
        (["delete", "aaaa1", "zzzz"], "There is no run 'zzzz'"),
        (["undelete", "aaaa1"], "no deleted run"),
        (["pins", "aaaa1.A"], "Which arms? Name 2 to 5"),
        (["pins", "aaaa1", "aaaa2"], "no pin"),
        (["list", "x"], "takes no name"),
        (["--limit", "0"], "--limit: must be a whole number from 1 to 10,000, not '0'"),
        (["--page", "0"], "--page: must be a whole number from 1 to"),
        (["--since", "monday"], "Write a date"),
        (["--axis", "cashe"], "Did you mean 'cache'?"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    words: list[str], part: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["history", *words])
    printed = capsys.readouterr()
    assert part in sentence(code, printed.out, printed.err)
    assert "Runs 1 to 3 of 3." in output(capsys)[0]


def test_an_empty_history_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENDYNO_HISTORY", str(tmp_path / "new" / "h.sqlite"))
    assert "`tokendyno compare` makes one" in output(capsys)[0]


def test_commands_keep_their_runs_where_the_page_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def chosen(*words: str) -> Path | None:
        return history_of(make_parser().parse_args(["run", *words]))

    monkeypatch.delenv("TOKENDYNO_HISTORY", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert chosen() == tmp_path / "tokendyno" / "history.sqlite"
    assert chosen("--no-history") is None and chosen("--history", "x") == Path("x")
    monkeypatch.setenv("TOKENDYNO_HISTORY", "/proc/none/h.sqlite")
    assert chosen() is None and "note: this run is not kept" in capsys.readouterr().err
