"""Commands of README, docs/ and --help that load no model do what their line says: they end well and print something.
Those that run a model are admitted, up to where its run would begin."""

import shlex
from pathlib import Path

import pytest

from tests.project.test_docs import code_blocks
from tokendyno.backend.cli.main import BAD_INPUT, OK, STOPPED, main
from tokendyno.backend.engine.bench import Bench

QUICK = ("check", "claims", "doctor", "export", "fit", "history", "list", "models", "report", "story")
SLOW = {"--run", "--bandwidth"}  # run a model, name a run of one's own, or measure
RUNS = ("ablate", "batch", "compare", "quality", "run", "sweep")
FAR = {"--nnodes", "--ray"}  # wait for other machines
OWN = {"run.dyno", "show", "pins"}  # read a file or runs of the user's own


def documented() -> list[list[str]]:
    lines = {line for line in code_blocks() if line.startswith("tokendyno ")}
    return [shlex.split(line)[1:] for line in sorted(lines)]


def quick() -> list[list[str]]:
    return [one for one in documented() if one[0] in QUICK and not (SLOW | OWN) & set(one)]


def runs() -> list[list[str]]:
    return [one for one in documented() if one[0] in RUNS and not FAR & set(one)]


def test_every_quick_command_is_documented() -> None:
    assert {one[0] for one in quick()} == set(QUICK) and {one[0] for one in runs()} == set(RUNS)


@pytest.mark.parametrize("command", runs(), ids=" ".join)
def test_a_documented_run_is_admitted(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Bench, "start", interrupt)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOKENDYNO_HISTORY", str(tmp_path / "history.sqlite"))
    (tmp_path / "notes.txt").write_text("It was a bright cold day. " * 20)
    (tmp_path / "requests.jsonl").write_text('{"prompt": "Once", "max_new_tokens": 4}\n')
    assert main(command) == STOPPED, capsys.readouterr().err


@pytest.mark.parametrize("command", quick(), ids=" ".join)
def test_a_documented_command_ends_well(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # "-o compiled.py"
    monkeypatch.setenv("TOKENDYNO_HISTORY", str(tmp_path / "history.sqlite"))
    code, told = main(command), capsys.readouterr()
    allowed = {OK, BAD_INPUT} if command[0] == "check" else {OK}  # 2 where the arm cannot run on this machine
    assert code in allowed and (told.out.strip() or any(tmp_path.iterdir())), told.err
