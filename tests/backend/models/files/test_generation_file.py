"""Ids of generation_config.json on which a run fails are refused before a worker is started, and no others."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.backend.models.files.test_tokenizer_files import with_file
from tests.support.local_worker import LocalWorker
from tests.support.worker import SENTENCE, plan_of
from tokendyno.backend.messages import Finished, Generate
from tokendyno.backend.models import obstacle, resolve
from tokendyno.backend.models.files import generation_file
from tokendyno.backend.models.files.generation_file import NAME

EOS, PAD = "the id of a token, a list of ids or null", "the id of a token or null"
IDS: list[tuple[str, Any, bool]] = [
    ("eos_token_id", 0, True),
    ("eos_token_id", None, True),
    ("eos_token_id", [], True),
    ("eos_token_id", [0, 1], True),
    ("eos_token_id", [[0], [1]], True),
    ("eos_token_id", [0, 2.5], True),
    ("eos_token_id", True, True),
    ("eos_token_id", -1, True),
    ("eos_token_id", 10**6, True),
    ("eos_token_id", 2**63 - 1, True),
    ("eos_token_id", "", True),
    ("eos_token_id", {}, True),
    ("eos_token_id", "</s>", False),
    ("eos_token_id", "0", False),
    ("eos_token_id", ["</s>"], False),
    ("eos_token_id", [0, "</s>"], False),
    ("eos_token_id", [0, None], False),
    ("eos_token_id", [{}], False),
    ("eos_token_id", {"a": 1}, False),
    ("eos_token_id", 2.0, False),
    ("eos_token_id", 2**63, False),
    ("eos_token_id", [2**63], False),
    ("pad_token_id", 0, True),
    ("pad_token_id", None, True),
    ("pad_token_id", -1, True),
    ("pad_token_id", 2.5, True),
    ("pad_token_id", False, True),
    ("pad_token_id", "", False),
    ("pad_token_id", "<pad>", False),
    ("pad_token_id", [0], False),
    ("pad_token_id", {}, False),
    ("pad_token_id", 2**63, False),
    ("pad_token_id", float("inf"), False),
    ("pad_token_id", float("nan"), False),
    ("bos_token_id", "not read", True),
]
"""A key, its value, and whether text is generated."""

FILES: list[tuple[bytes, bool]] = [
    (b"", True),
    (b"{", True),
    (b"\xff{}", True),
    (b"{}", True),
    (b'{"a": Infinity}', True),
    (b"[]", False),
    (b"5", False),
    (b"null", False),
    (b"[" * 100_000, False),
]
"""The file, and whether transformers takes it, or goes by config.json."""


def with_generation(folder: Path, data: bytes) -> Path:
    return with_file(folder, NAME, data)


@pytest.mark.parametrize(("key", "value", "runs"), IDS, ids=lambda one: f"{one!r:.30}")
def test_an_id_that_is_none_is_refused(tmp_path: Path, key: str, value: Any, runs: bool) -> None:
    folder = with_generation(tmp_path / "m", json.dumps({key: value}).encode())
    said = obstacle(resolve(str(folder)), offline=True)
    assert runs is (said == ""), said
    if not runs:
        assert said.startswith(f"{folder / NAME}: {key!r} is ")
        assert said.endswith(
            f"; {EOS if key == 'eos_token_id' else PAD} is needed. Correct the file, or remove it: config.json has the "
            "ids, too."
        )
    assert obstacle(resolve(f"random:{folder}"), offline=True) == ""


@pytest.mark.parametrize(("data", "can"), FILES, ids=lambda one: f"{one!r:.30}")
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, data: bytes, can: bool) -> None:
    folder = with_generation(tmp_path / "m", data)
    said = obstacle(resolve(str(folder)), offline=True)
    advice = "Copy it again from the original checkpoint, or remove it."
    assert said == ("" if can else f"{folder / NAME} is not a JSON object. {advice}")


def test_what_is_too_large_or_cannot_be_opened_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = with_generation(tmp_path / "m", b"{}")
    monkeypatch.setattr(generation_file, "MAX_CONFIG_BYTES", 1)
    assert "has more than 1 bytes, more than any model's" in obstacle(resolve(str(folder)), offline=True)

    def denied(self: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, os.strerror(13))

    facts = resolve(str(folder))
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(ValueError, match=r"generation_config\.json cannot be read \(Permission denied\)"):
        generation_file.check_generation(Path(facts.source.path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_text_is_generated_with_what_is_refused_and_some_with_all_else(tmp_path: Path) -> None:
    def runs(data: bytes, number: int) -> bool:
        folder = with_generation(tmp_path / str(number), data)
        plan = plan_of(str(folder), dtype="float32")
        job = Generate(
            plan=plan,
            prompt=SENTENCE,
            prompt_tokens=0,
            max_new_tokens=2,
            batch_size=2,
            temperature=0.0,
            seed=0,
            ignore_eos=False,
            warmup=False,
            prove=False,
        )
        try:
            return isinstance(LocalWorker(plan.load).run(job), Finished)
        except Exception:
            return False

    cases = [*((json.dumps({key: value}).encode(), can) for key, value, can in IDS), *FILES]
    for number, (data, can) in enumerate(cases):
        assert runs(data, number) is can, data[:60]
