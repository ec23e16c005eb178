"""Files named on a command line: read with a limit, written whole or not at all."""

import json
import os
from pathlib import Path

import pytest

from tokendyno.backend.cli.files import check_distinct, check_writable, read_prompt, write_json
from tokendyno.backend.cli.main import main
from tokendyno.backend.config import MAX_PROMPT_BYTES
from tokendyno.backend.errors import InputError


@pytest.mark.parametrize("text", ["one", "", "ein Bär 🐻\r\n\x00end", "\ufeffwith a mark", "x" * MAX_PROMPT_BYTES])
def test_a_prompt_is_read_as_it_stands(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.txt").write_bytes(text.encode())
    assert read_prompt(tmp_path / "p.txt") == text


def test_a_document_replaces_a_file_in_one_step_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    check_writable(str(target))
    assert target.read_text() == "old"
    write_json(str(target), {"a": [1.5, "é"]})
    assert json.loads(target.read_text()) == {"a": [1.5, "é"]}
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    before = os.stat("/dev/null").st_rdev
    check_writable("/dev/null")
    write_json("/dev/null", {"a": 1})
    assert os.stat("/dev/null").st_rdev == before


@pytest.mark.parametrize(
    ("command", "options"),
    [
        (["advise"], ["--json", "--journal"]),
        (["sweep", "--over", "batch_size=1,2"], ["--json", "--csv"]),
        (["sweep", "--over", "batch_size=1,2"], ["--csv", "--journal"]),
        (["report", "launch-bound"], ["--html", "--csv"]),
    ],
)
def test_one_result_of_a_command_never_replaces_another(
    command: list[str], options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("old")
    assert main([*command, *(word for option in options for word in (option, str(tmp_path / "file")))]) == 2
    assert f"{options[0]} and {options[1]} name the same file. Name another" in capsys.readouterr().err
    assert (tmp_path / "file").read_text() == "old"


def test_results_may_share_a_device_but_not_standard_output(tmp_path: Path) -> None:
    check_distinct({"--json": "/dev/null", "--csv": "/dev/null", "--journal": None})
    check_distinct({"--json": "-", "--journal": tmp_path / "a", "--csv": str(tmp_path / "b")})
    with pytest.raises(InputError, match="--json and --csv"):
        check_distinct({"--json": "-", "--csv": "-"})


def test_minus_is_standard_output_and_none_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(None, {"a": 1})
    check_writable(None)
    check_writable("-")
    assert capsys.readouterr().out == ""
    write_json("-", {"a": "é"})
    assert json.loads(capsys.readouterr().out) == {"a": "é"}
