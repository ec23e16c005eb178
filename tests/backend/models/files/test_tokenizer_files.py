"""A damaged tokenizer.json is found before a worker is started; the worker finds what else is wrong with a tokenizer."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import POCKET
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import obstacle, resolve
from tokendyno.backend.models.files import folder as files
from tokendyno.backend.models.files.folder import check_tokenizer

WHOLE = (POCKET / "tokenizer.json").read_bytes()
CUT, EMPTY = "is cut off, or no JSON object", 'has no vocabulary (no "model")'

DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", CUT),
    "cut": (WHOLE[: len(WHOLE) // 2], CUT),
    "zeros": (WHOLE[:1000] + bytes(len(WHOLE) - 1000), CUT),
    "an LFS pointer": (b"version https://git-lfs.github.com/spec/v1", CUT),
    "nested": (b"[" * 200_000, CUT),
    "no model": (b'{"model": null}', EMPTY),
}


def with_file(folder: Path, name: str, data: bytes) -> Path:
    """Pocket, with this in that file."""
    folder.mkdir(exist_ok=True)
    for one in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(POCKET / one, folder)
    (folder / name).write_bytes(data)
    return folder


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_vocabulary_is_refused_with_what_to_do(tmp_path: Path, name: str) -> None:
    data, what = DAMAGED[name]
    folder = with_file(tmp_path / "m", "tokenizer.json", data)
    advice = "Copy the tokenizer's files of the original model again: save_pretrained of a tokenizer writes them."
    said = obstacle(resolve(str(folder)), offline=True)
    assert said == f"The tokenizer cannot be read: {folder / 'tokenizer.json'} {what}. {advice}"
    assert obstacle(resolve(f"random:{folder}"), offline=True) == "", "random weights need no tokenizer"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_transformers_fails_on_what_is_refused(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    for name, (data, _) in DAMAGED.items():
        with pytest.raises(Exception):  # noqa: B017, whatever its libraries raise
            AutoTokenizer.from_pretrained(with_file(tmp_path / name, "tokenizer.json", data))


def test_a_file_is_read_again_once_it_has_changed_and_within_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = with_file(tmp_path / "m", "tokenizer.json", WHOLE[:-2])
    with pytest.raises(InputError, match="is cut off"):
        check_tokenizer(folder)
    (folder / "tokenizer.json").write_bytes(WHOLE)
    check_tokenizer(folder)
    monkeypatch.setattr(files, "MAX_TOKENIZER_BYTES", 1000)
    (folder / "tokenizer.json").touch()
    with pytest.raises(InputError, match="has more than 1,000 bytes, more than any tokenizer's"):
        check_tokenizer(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["tokenizer_config.json", "chat_template.jinja", "generation_config.json"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = with_file(tmp_path / "m", "README.md", b"")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert obstacle(resolve(str(folder)), offline=True) == ""


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path), lambda path: None])
def test_a_vocabulary_that_is_no_file_is_none(tmp_path: Path, make: Callable[[Path], object]) -> None:
    folder = with_file(tmp_path / "m", "README.md", b"")
    (folder / "tokenizer.json").unlink()
    make(folder / "tokenizer.json")
    assert "has no tokenizer (no tokenizer.json)" in obstacle(resolve(str(folder)), offline=True)
