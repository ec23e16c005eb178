"""Files of a model that do harm in a worker: the file is named instead of the arm, and the next run works."""

import json
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.corpus import POCKET
from tests.support.worker import light
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.exchange import TEXT_LIMIT_S
from tokendyno.backend.hosting.limits import GIB, LIMITS
from tokendyno.backend.runs.run import Run

COPY = "Copy it again from the original checkpoint, or choose another model."
TOKENIZER = "The model's tokenizer (tokenizer.json)"
TEMPLATE = "The model's chat template (chat_template.jinja)"
ENDLESS = "{{ 7 ** 300000000 }}"
"""Minutes in one call of C code, which no signal and no thread interrupts."""

BOMB = r"(a+)+$|(a|aa)+b|((a*)*)*c"
GIVES_UP = "(PanicException: Onig: Regex search error: retry-limit-in-match over)"


def changed(name: str, change: dict[str, Any]) -> bytes:
    """A JSON file of the pocket model with other fields."""
    return json.dumps(json.loads((POCKET / name).read_text()) | change).encode()


def split(pattern: str) -> bytes:
    """The tokenizer with a regular expression of its own."""
    rule = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return changed("tokenizer.json", {"pre_tokenizer": rule})


def retyped() -> bytes:
    """Weights whose first tensor has bytes for another format than its header says."""
    whole = (POCKET / "model.safetensors").read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header[min(name for name in header if name != "__metadata__")]["dtype"] = "F64"
    new = json.dumps(header).encode()
    return struct.pack("<Q", len(new)) + new + whole[8 + length :]


def run(bench: Bench, tmp_path: Path, name: str, data: bytes, **work: Any) -> Run:
    """A run of a model that has this file."""
    folder = tmp_path / "model"
    shutil.copytree(POCKET, folder)
    (folder / name).write_bytes(data)
    return bench.wait(bench.submit(light(model=str(folder), chat=name == "chat_template.jinja", **work)), 60)


def refused(ended: Run, begin: str, end: str = COPY) -> None:
    assert ended.status == "failed" and ended.bad_input, ended.message
    assert ended.message.startswith(begin) and ended.message.endswith(end), ended.message


def test_a_generation_config_that_cannot_be_read_is_named(warm_bench: Bench, tmp_path: Path) -> None:
    name = "generation_config.json"
    refused(run(warm_bench, tmp_path, name, changed(name, {"__class__": 1})), f"The model's {name} cannot be read (")


def test_weights_that_their_own_library_refuses_are_named(warm_bench: Bench, tmp_path: Path) -> None:
    ended = run(warm_bench, tmp_path, "model.safetensors", retyped())
    refused(ended, "The model's weights (model.safetensors) cannot be read (SafetensorError: ")


def test_a_tokenizer_that_panics_is_named(warm_bench: Bench, tmp_path: Path) -> None:
    ended = run(warm_bench, tmp_path, "tokenizer.json", split(BOMB), prompt="a" * 40 + "!")
    refused(ended, f"{TOKENIZER} fails on this text {GIVES_UP}. ")


def test_a_template_that_calls_itself_is_named(warm_bench: Bench, tmp_path: Path) -> None:
    ended = run(warm_bench, tmp_path, "chat_template.jinja", b"{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}")
    refused(ended, f"{TEMPLATE} cannot be rendered (RecursionError: ", "Use a plain prompt, or another model.")


@pytest.mark.slow
def test_what_native_code_does_with_a_text_has_a_limit(
    warm_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEXT_LIMIT_S, "tokenize", 1.0)
    ended = run(warm_bench, tmp_path, "tokenizer.json", split(r"(?:a|a){22}(?!.)"), prompt="a" * 300)
    refused(ended, f"{TOKENIZER} took longer than 1 s on this text and was stopped. ")
    assert warm_bench.wait(warm_bench.submit(light()), 60).status == "done"


def test_tokens_that_a_file_adds_count_against_the_limit_of_a_prompt(
    warm_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_bench, "limits", replace(LIMITS["local"], prompt_tokens=100))
    longer = b"{{ 'x ' * 2000 }}{{ messages[0].content }}"
    ended = run(warm_bench, tmp_path, "chat_template.jinja", longer, prompt="a")
    assert ended.bad_input, ended.message
    assert re.fullmatch(r"The prompt has \d,\d+ tokens, over the limit of 100 here\. Shorten it\.", ended.message)


@pytest.mark.slow
def test_a_worker_that_takes_too_much_memory_is_ended_and_the_next_run_works(
    warm_bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_bench, "limits", replace(LIMITS["local"], worker_bytes=GIB))
    ended = run(warm_bench, tmp_path, "chat_template.jinja", b"{% set text = 'x' * 1200000000 %}" + ENDLESS.encode())
    assert ended.status == "failed" and ended.message == (
        "Arm A held more than 1.00 GiB of memory during warm-up, the limit here, and was stopped. "
        f"{TEMPLATE} was being rendered. {COPY}"
    )
    assert warm_bench.wait(warm_bench.submit(light()), 60).status == "done"
