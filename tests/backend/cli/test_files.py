"""Files named on a command line: read with a limit, written whole or not at all."""

import errno
import json
import os
from pathlib import Path

import pytest

from tokendyno.backend.cli.files import check_folder, check_writable, read_prompt, write_json
from tokendyno.backend.config import MAX_PROMPT_BYTES
from tokendyno.backend.errors import InputError


@pytest.mark.parametrize("text", ["one", "", "ein Bär 🐻\r\n\x00end", "\ufeffwith a mark", "x" * MAX_PROMPT_BYTES])
def test_a_prompt_is_read_as_it_stands(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.txt").write_bytes(text.encode())
    assert read_prompt(tmp_path / "p.txt") == text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"abc\xff", "is not UTF-8 text: byte 4 is 0xff. Save it as UTF-8."),
        ("Bär".encode("latin-1"), "is not UTF-8 text: byte 2 is 0xe4"),
        (b"x" * (MAX_PROMPT_BYTES + 1), "has more than 1,048,576 bytes. Shorten it."),
        (None, "cannot be read (No such file or directory). Name another text file with --prompt-file"),
    ],
)
def test_a_prompt_that_cannot_be_read_is_one_sentence(tmp_path: Path, data: bytes | None, says: str) -> None:
    path = tmp_path / "p.txt"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError) as refused:
        read_prompt(path)
    assert says in str(refused.value)


def test_neither_a_folder_nor_an_endless_device_is_a_prompt(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Is a directory"):
        read_prompt(tmp_path)
    with pytest.raises(InputError, match="more than"):
        read_prompt(Path("/dev/zero"))


def test_a_document_replaces_a_file_in_one_step_and_leaves_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    check_writable(str(target))
    assert target.read_text() == "old"
    write_json(str(target), {"a": [1.5, "é"]})
    assert json.loads(target.read_text()) == {"a": [1.5, "é"]}
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_check_alone_makes_no_file(tmp_path: Path) -> None:
    check_writable(str(tmp_path / "out.json"))
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_is_none_leaves_the_old_one(tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")
    with pytest.raises(ValueError):
        write_json(str(target), {"a": float("nan")})
    assert target.read_text() == "old"


def test_a_disk_that_is_full_leaves_the_old_document_and_no_half_of_the_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out.json"
    target.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_json(str(target), {"a": 1})
    assert target.read_text() == "old" and [path.name for path in tmp_path.iterdir()] == ["out.json"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_json(str(tmp_path / "link.json"), {})
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "{}\n"


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    before = os.stat("/dev/null").st_rdev
    check_writable("/dev/null")
    write_json("/dev/null", {"a": 1})
    assert os.stat("/dev/null").st_rdev == before


def test_minus_is_standard_output_and_none_is_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    write_json(None, {"a": 1})
    check_writable(None)
    check_writable("-")
    assert capsys.readouterr().out == ""
    write_json("-", {"a": "é"})
    assert json.loads(capsys.readouterr().out) == {"a": "é"}


@pytest.mark.parametrize("name", ["missing/out.json", ".", ""])
def test_what_cannot_be_written_is_said_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    says = r"cannot be written \(.*\)\. Name another with --json\."
    with pytest.raises(InputError, match=says):
        check_writable(name)
    with pytest.raises(InputError, match=says):
        write_json(name, {})
    assert list(tmp_path.iterdir()) == []


def test_a_models_folder_must_be_one(tmp_path: Path) -> None:
    check_folder(None)
    check_folder(tmp_path)
    with pytest.raises(InputError, match=r"There is no models folder .*--models-dir"):
        check_folder(tmp_path / "missing")
