"""Torn files of a tokenizer are found before a worker is started, and only those that transformers fails on."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import POCKET
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import obstacle, resolve
from tokendyno.backend.models.files import tokenizer_files
from tokendyno.backend.models.files.tokenizer_files import check_tokenizer

WHOLE = (POCKET / "tokenizer.json").read_bytes()
SETTINGS = (POCKET / "tokenizer_config.json").read_bytes()

TORN: list[tuple[str, bytes, str]] = [
    ("tokenizer.json", b"", "is cut off, or no JSON object"),
    ("tokenizer.json", b" \n", "is cut off, or no JSON object"),
    ("tokenizer.json", WHOLE[: len(WHOLE) // 2], "is cut off, or no JSON object"),
    ("tokenizer.json", WHOLE[:-2], "is cut off, or no JSON object"),
    ("tokenizer.json", WHOLE[:1000] + bytes(len(WHOLE) - 1000), "is cut off, or no JSON object"),
    ("tokenizer.json", b"version https://git-lfs.github.com/spec/v1", "is cut off, or no JSON object"),
    ("tokenizer.json", b"<html>404</html>", "is cut off, or no JSON object"),
    ("tokenizer.json", b"[]", "is cut off, or no JSON object"),
    ("tokenizer.json", b"[" * 200_000, "is cut off, or no JSON object"),
    ("tokenizer.json", b"{}", 'has no vocabulary (no "model")'),
    ("tokenizer.json", b'{"model": {"type": "BPE"}, "padding": Infinity}', "is cut off, or no JSON object"),
    ("tokenizer.json", b'{"model": null}', 'has no vocabulary (no "model")'),
    ("tokenizer_config.json", b"", "is cut off, or no JSON object"),
    ("tokenizer_config.json", SETTINGS[:-10], "is cut off, or no JSON object"),
    ("tokenizer_config.json", b"[]", "is cut off, or no JSON object"),
    ("tokenizer_config.json", b"\xff\xfe{}", "is cut off, or no JSON object"),
    ("special_tokens_map.json", b"{", "is cut off, or no JSON object"),
    ("added_tokens.json", b"", "is cut off, or no JSON object"),
]
"""A file, what is in it, and what is said of it."""

WHOLE_ENOUGH: list[tuple[str, bytes]] = [
    ("tokenizer.json", WHOLE),
    ("tokenizer_config.json", b"{}"),
    ("tokenizer_config.json", b'{"model_max_length": Infinity}'),
    ("tokenizer_config.json", b'{"model_max_length": 1000000000000000019884624838656}'),
    ("special_tokens_map.json", b'{"bos_token": "<s>"}'),
    ("vocab.json", b"{"),
    ("merges.txt", b""),
    ("chat_template.json", b"{"),
]
"""Files that load: what is not read beside a tokenizer.json may be torn."""


def with_file(folder: Path, name: str, data: bytes) -> Path:
    """Pocket, with this in that file."""
    folder.mkdir(exist_ok=True)
    for one in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(POCKET / one, folder)
    (folder / name).write_bytes(data)
    return folder


def named(cases: list[tuple[str, bytes, str]] | list[tuple[str, bytes]]) -> list[str]:
    return [f"{case[0]}-{case[1][:20]!r}-{len(case[1])}" for case in cases]


@pytest.mark.parametrize(("name", "data", "what"), TORN, ids=named(TORN))
def test_a_torn_file_is_refused_with_what_to_do(tmp_path: Path, name: str, data: bytes, what: str) -> None:
    folder = with_file(tmp_path / "m", name, data)
    advice = "Copy the tokenizer's files of the original model again: save_pretrained of a tokenizer writes them."
    said = obstacle(resolve(str(folder)), offline=True)
    assert said == f"The tokenizer cannot be read: {folder / name} {what}. {advice}"
    assert obstacle(resolve(f"random:{folder}"), offline=True) == "", "random weights need no tokenizer"


@pytest.mark.parametrize(("name", "data"), WHOLE_ENOUGH, ids=named(WHOLE_ENOUGH))
def test_what_loads_is_not_refused(tmp_path: Path, name: str, data: bytes) -> None:
    assert obstacle(resolve(str(with_file(tmp_path / "m", name, data))), offline=True) == ""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_transformers_fails_on_what_is_refused_and_on_nothing_else(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    cases = [*((name, data, False) for name, data, _ in TORN), *((name, data, True) for name, data in WHOLE_ENOUGH)]
    for number, (name, data, can) in enumerate(cases):
        folder = with_file(tmp_path / str(number), name, data)
        try:
            reads = AutoTokenizer.from_pretrained(folder)("Once").input_ids != []
        except Exception:
            reads = False
        assert reads is can, (name, data[:40])


def test_a_file_is_read_again_once_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = with_file(tmp_path / "m", "tokenizer.json", WHOLE[:-2])
    path = folder / "tokenizer.json"
    with pytest.raises(InputError, match="is cut off"):
        check_tokenizer(folder)
    path.write_bytes(WHOLE)
    check_tokenizer(folder)
    state = path.stat()
    path.write_bytes(WHOLE[:-2] + b"  ")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    check_tokenizer(folder)  # as large and as old: not read again
    monkeypatch.setattr(tokenizer_files, "MAX_BYTES", 1000)
    path.touch()
    with pytest.raises(InputError, match="has more than 1,000 bytes, more than any tokenizer's"):
        check_tokenizer(folder)


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = with_file(tmp_path / "m", "tokenizer.json", WHOLE)

    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(InputError, match=r"tokenizer\.json cannot be opened \(Permission denied\)"):
        check_tokenizer(folder)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "name",
    [
        "tokenizer_config.json",
        "special_tokens_map.json",
        "chat_template.jinja",
        "added_tokens.json",
        "generation_config.json",
    ],
)
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
