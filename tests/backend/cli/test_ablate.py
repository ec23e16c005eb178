"""`tokendyno ablate` with real workers: the document, going on after a kill, and what is refused."""

import contextlib
import json
import shlex
from pathlib import Path

import msgspec
import pytest

from tests.support.command_line import cli
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.ablation.journal import Heading, Trial
from tokendyno.backend.ablation.kinds import Ablation
from tokendyno.backend.ablation.result import AblationDocument
from tokendyno.backend.ablation.trials import Task, TrialFailed
from tokendyno.backend.cli.main import CommandFailed, main
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.cli.trials import Ended, measured
from tokendyno.backend.config import Workload
from tokendyno.backend.executors import open_bench

COMMAND = (
    *shlex.split(
        "ablate --base dtype=float32 --add cache=static --steps alone --rounds 2 --max-new-tokens 8 "
        "--journal journal.jsonl"
    ),
)


@pytest.mark.full
def test_an_ablation_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    ran = cli(*COMMAND, "--json", "-", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    printed = json.loads(ran.stdout)
    document = msgspec.convert(printed, AblationDocument)
    assert json.loads(json.dumps(msgspec.to_builtins(document))) == printed and document.complete
    listed = json.loads(cli("history", "list", "--json", "-", cwd=tmp_path).stdout)
    assert [row["trials"] for row in listed["runs"]] == [4] and listed["kept"] == 1
    base, static = document.steps
    assert (base.trials, static.trials, static.same_text) == (2, 2, True)
    assert static.comparison is not None and static.comparison.pairs == 2
    assert static.peak_memory_bytes and static.doubtful == {}
    journal = tmp_path / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    assert len(lines) == 5
    journal.write_bytes(b"".join(lines[:4]) + lines[4][:20])
    again = cli(*COMMAND, "--json", "-", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("round ") == 1, "one trial was lost, and one is run"
    assert journal.read_bytes().splitlines(keepends=True)[:4] == lines[:4]


@pytest.mark.slow
def test_without_a_journal_of_its_own_it_is_found_in_the_history_and_opened_by_its_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = tmp_path / "history.sqlite"
    line = "ablate --base dtype=float32 --add cache=static --steps alone --rounds 2 --max-new-tokens 2"
    for journal in ([], ["--journal", str(tmp_path / "own.jsonl")]):
        assert main([*line.split(), *journal, "--history", str(history)]) == 0
        capsys.readouterr()
        assert main(["history", "--history", str(history), "--json", "-"]) == 0
        row = json.loads(capsys.readouterr().out)["runs"][0]
        assert (row["trials"], row["line"]) == (4, "Ablation: KV cache: static")
        with contextlib.closing(open_bench(history)) as bench:
            course = Courses(bench).get(row["trial"])
            assert isinstance(course, Ablation) and (course.state, course.finished) == ("done", 4)
            assert [step.trials for step in course.results()] == [2, 2]
    assert main(["report", row["trial"], "--history", str(history), "--html", str(tmp_path / "r.html")]) == 0
    assert len([*(tmp_path / "ablations").iterdir()]) == 2


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--add", "cache"], "'cache' is no change"),
        (["--add", "cache=static", "--rounds", "0"], "--rounds: must be a whole number from 1 to 50, not '0'"),
        (
            ["--base", "attention=flash_attention_2,cuda_graphs=manual", "--add", "cache=static"],
            "The base cannot run: FlashAttention 2 runs on NVIDIA GPUs only. Set attention=auto. CUDA graphs need a "
            "CUDA device. Set cuda_graphs=auto.",
        ),
        (["--add", "cache=static", "--steps", "stairs"], "stair"),
        (["--add", "cache=static", "--json", "j.jsonl", "--journal", "j.jsonl"], "name the same file"),
        (["--model", "random:bert-base-uncased", "--add", "dtype=float32", "--quality"], "Leave out --quality"),
        (["--add", "cache=static", "--journal", "none/j.jsonl"], "(No such file or directory). Name another"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence(options: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", *options]) == 2
    err = capsys.readouterr().err
    assert part in err and len(err.splitlines()) == 1


def test_why_no_change_can_run_is_said_once_for_each_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ablate", "--add", "cache=offloaded", "attention=flash_attention_2", "--no-history"]) == 2
    err = capsys.readouterr().err
    assert "cache=offloaded: Offloading moves" in err and "attention=flash_attention_2: FlashAttention 2 runs" in err
    assert err.count("FlashAttention 2 runs") == err.count("Offloading moves") == 1


def test_what_was_measured_before_a_trial_failed_is_shown(tmp_path: Path) -> None:
    """The failure comes last, with its exit code; without a trial there is nothing to show."""
    options = make_parser().parse_args(["ablate", "--add", "cache=static", "--journal", str(tmp_path / "journal")])
    heading = Heading("pocket", {}, [("cache", "static")], ["alone"], Workload("Once upon a time"))

    class Failing(Ablation):
        ends = (0, False)

        def tasks(self, rounds: int, positions: int) -> list[Task]:
            for number in range(self.ends[0]):
                self.journal.add(Trial("", number, [0.5, 0.25], 0.5, 7, None, [1]))
            raise TrialFailed("round 3 of 3: defaults: the worker died.", self.ends[1])

    def outcome(trials: int, bad_input: bool = False) -> tuple[Ablation, Ended]:
        with contextlib.closing(open_bench()) as bench:
            course = Failing(bench, "", heading, None)
            course.ends = trials, bad_input
            return course, measured(bench, options, course)

    course, ended = outcome(2)
    assert len(course.journal.trials) == 2
    with pytest.raises(CommandFailed, match=r"died\. Finished trials are kept in .*journal: the same") as raised:
        ended.exit_code()
    assert raised.value.code == 3
    assert len(outcome(0)[0].journal.trials) == 2, "they were kept"
    options.journal = None
    with pytest.raises(CommandFailed, match="worker died") as raised:
        outcome(0, bad_input=True)
    assert raised.value.code == 2
