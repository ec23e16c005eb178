"""Commands of README and docs/ that load no model do what their line says: they end well and print something."""

import shlex
from pathlib import Path

import pytest

from backend.cli.exit_codes import BAD_INPUT, OK
from backend.cli.main import main
from tests.project.test_docs import code_blocks

QUICK = ("check", "claims", "doctor", "export", "fit", "history", "models", "story")
SLOW = {"--run", "--bandwidth"}  # run a model, name a run of one's own, or measure


def documented() -> list[list[str]]:
    lines = {line for line in code_blocks() if line.startswith("tokendyno ")}
    given = [shlex.split(line)[1:] for line in sorted(lines)]
    return [one for one in given if one[0] in QUICK and not SLOW & set(one)]


def test_every_quick_command_is_documented() -> None:
    assert {one[0] for one in documented()} == set(QUICK)


@pytest.mark.parametrize("command", documented(), ids=" ".join)
def test_a_documented_command_ends_well(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # "-o compiled.py"
    monkeypatch.setenv("TOKENDYNO_HISTORY", str(tmp_path / "history.sqlite"))
    code, told = main(command), capsys.readouterr()
    allowed = {OK, BAD_INPUT} if command[0] == "check" else {OK}  # 2 where the arm cannot run on this machine
    assert code in allowed and (told.out.strip() or any(tmp_path.iterdir())), told.err
