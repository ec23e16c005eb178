"""Settings of a wrong kind are found before a worker is started, and only those that transformers fails on."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.backend.models.files.test_tokenizer_files import with_file
from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.models import obstacle, resolve
from tokendyno.backend.models.files.generation_file import NAME as GENERATION
from tokendyno.backend.models.files.tokenizer_settings import SETTINGS, SPECIAL_MAP

END, ADDED = "<|endoftext|>", {"__type": "AddedToken", "content": "<|endoftext|>"}
TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
CASES: list[tuple[str, str, Any, bool]] = [
    (SETTINGS, "eos_token", END, True),
    (SETTINGS, "eos_token", None, True),
    (SETTINGS, "eos_token", ADDED, True),
    (SETTINGS, "eos_token", {"__type": "AddedToken"}, True),
    (SETTINGS, "eos_token", ADDED | {"content": 5}, False),
    (SETTINGS, "eos_token", {"content": END}, False),
    (SETTINGS, "eos_token", 5, False),
    (SETTINGS, "mask_token", ["a"], False),
    (SETTINGS, "additional_special_tokens", [END, ADDED], True),
    (SETTINGS, "additional_special_tokens", {"more": END}, True),
    (SETTINGS, "additional_special_tokens", None, True),
    (SETTINGS, "additional_special_tokens", "x", False),
    (SETTINGS, "extra_special_tokens", [5], False),
    (SETTINGS, "extra_special_tokens", {"more": 5}, False),
    (SETTINGS, "padding_side", "left", True),
    (SETTINGS, "padding_side", "LEFT", False),
    (SETTINGS, "truncation_side", None, False),
    (SETTINGS, "tokenizer_class", None, True),
    (SETTINGS, "tokenizer_class", "Unheard", True),
    (SETTINGS, "tokenizer_class", 5, False),
    (SETTINGS, "model_max_length", 2.5, True),
    (SETTINGS, "model_max_length", -3, True),
    (SETTINGS, "model_max_length", "4096", False),
    (SETTINGS, "added_tokens_decoder", {}, True),
    (SETTINGS, "added_tokens_decoder", {"0": {"content": END}}, True),
    (SETTINGS, "added_tokens_decoder", None, False),
    (SETTINGS, "added_tokens_decoder", {"a": {"content": END}}, False),
    (SETTINGS, "added_tokens_decoder", {"0": None}, False),
    (SETTINGS, "added_tokens_decoder", {"3071": {"content": 5}}, False),
    (SETTINGS, "chat_template", ["a"], False),
    (SETTINGS, "chat_template", [{"name": "a"}], False),
    (SETTINGS, "chat_template", [{"name": ["a"], "template": "b"}], False),
    (SETTINGS, "clean_up_tokenization_spaces", "not read", True),
    (SPECIAL_MAP, "eos_token", END, True),
    (SPECIAL_MAP, "eos_token", {"content": END}, True),
    (SPECIAL_MAP, "eos_token", 5, False),
    (SPECIAL_MAP, "eos_token", ["a"], False),
]
"""A file, a key, its value, and whether the tokenizer loads."""

TEMPLATES: list[tuple[Any, bool]] = [
    (TEMPLATE, True),
    ([{"name": "default", "template": TEMPLATE}], True),
    ([{"name": "other", "template": TEMPLATE}], False),
    ([{"name": "default", "template": 5}], False),
    ({"default": TEMPLATE}, True),
    ({"a": 5}, False),
    (5, False),
    (True, False),
    (2.5, False),
]
"""`chat_template`, and whether a chat can be rendered: the tokenizer loads with each of them."""


def with_setting(folder: Path, name: str, key: str, value: Any) -> Path:
    """Pocket, with this setting of its tokenizer."""
    made = with_file(folder, "README.md", b"")
    before = json.loads((made / name).read_text()) if (made / name).exists() else {}
    (made / name).write_text(json.dumps(before | {key: value}))
    return made


def named(case: tuple[str, str, Any, bool]) -> str:
    return f"{case[0]}-{case[1]}-{case[2]!r:.30}"


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_setting_on_which_the_tokenizer_fails_is_refused(tmp_path: Path, case: tuple[str, str, Any, bool]) -> None:
    name, key, value, loads = case
    folder = with_setting(tmp_path / "m", name, key, value)
    said = obstacle(resolve(str(folder)), offline=True)
    assert loads is (said == ""), said
    if not loads:
        assert said.startswith(f"The tokenizer cannot be read: {folder / name}: {key!r} is {value!r:.40}")
        assert said.endswith("Correct the file, or copy the tokenizer's files of the original model again.")
    assert obstacle(resolve(f"random:{folder}"), offline=True) == "", "random weights need no tokenizer"


def chat_refused(folder: Path, chat: bool = True) -> list[str]:
    work = Workload(prompt="Once", chat=chat)
    return [one.reason for one in check(make_config("m", {}), resolve(str(folder)), hardware.detect(), work).blocked]


@pytest.mark.parametrize(("template", "renders"), TEMPLATES, ids=repr)
def test_a_template_that_is_none_is_refused_where_there_is_a_chat(tmp_path: Path, template: Any, renders: bool) -> None:
    folder = with_setting(tmp_path / "m", SETTINGS, "chat_template", template)
    assert obstacle(resolve(str(folder)), offline=True) == "" and chat_refused(folder, chat=False) == []
    found = chat_refused(folder)
    assert renders is (found == []), found
    if not renders:
        assert found[0].startswith(f"{folder / SETTINGS}: 'chat_template' is {template!r:.40}")
        assert found[0].endswith("Copy it again from the original checkpoint, or turn chat off.")


def test_what_counts_before_a_setting_makes_up_for_it(tmp_path: Path) -> None:
    folder = with_setting(tmp_path / "a", SETTINGS, "chat_template", ["a"])
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    assert obstacle(resolve(str(folder)), offline=True) == "" and chat_refused(folder) == []
    folder = with_setting(tmp_path / "b", SETTINGS, "eos_token", 5)
    with_setting(folder, SPECIAL_MAP, "eos_token", END)  # replaces what that was about to say
    (folder / SETTINGS).write_text(json.dumps({"eos_token": 5}))
    assert obstacle(resolve(str(folder)), offline=True) == ""
    (folder / SETTINGS).write_text(json.dumps({"eos_token": 5, "added_tokens_decoder": {}}))
    assert "'eos_token' is 5" in obstacle(resolve(str(folder)), offline=True), "the map is not read beside these"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", [SETTINGS, SPECIAL_MAP, "chat_template.jinja", "added_tokens.json", GENERATION])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(tmp_path: Path, name: str) -> None:
    folder = with_file(tmp_path / "m", "README.md", b"")
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    assert obstacle(resolve(str(folder)), offline=True) == "" and chat_refused(folder, chat=False) == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to(path), lambda path: None])
def test_a_vocabulary_that_is_no_file_is_none(tmp_path: Path, make: Callable[[Path], object]) -> None:
    folder = with_file(tmp_path / "m", "README.md", b"")
    (folder / "tokenizer.json").unlink()
    make(folder / "tokenizer.json")
    assert "has no tokenizer (no tokenizer.json)" in obstacle(resolve(str(folder)), offline=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_transformers_fails_on_what_is_refused_and_on_nothing_else(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    def loads(folder: Path, chat: bool) -> bool:
        try:
            tokenizer = AutoTokenizer.from_pretrained(folder)
            if chat:
                tokenizer.apply_chat_template([{"role": "user", "content": "Once"}], tokenize=False)
            return bool(tokenizer("Once").input_ids)
        except Exception:
            return False

    for number, (name, key, value, can) in enumerate(CASES):
        assert loads(with_setting(tmp_path / f"a{number}", name, key, value), chat=False) is can, (name, key, value)
    for number, (template, can) in enumerate(TEMPLATES):
        folder = with_setting(tmp_path / f"b{number}", SETTINGS, "chat_template", template)
        assert loads(folder, chat=False) and loads(folder, chat=True) is can, template
