"""A model's files that transformers refuses: what fails names the file and says what to do, and blames no arm."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.worker import light
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.paths import PRESETS

POCKET = PRESETS / "models" / "pocket"
COPY_AGAIN = "Copy it again from the original checkpoint, or choose another model."


@pytest.mark.parametrize(
    ("name", "change", "begin"),
    [
        ("config.json", {"eos_token_id": "</s>"}, "config (config.json) cannot be read (StrictDataclass"),
        ("config.json", {"intermediate_size": 256}, "weights (model.safetensors) cannot be read (config.json asks for"),
        ("tokenizer_config.json", {"eos_token": 5}, "tokenizer (tokenizer.json, tokenizer_config.json) cannot be read"),
        (
            "tokenizer_config.json",
            {"chat_template": 5},
            "chat template (tokenizer_config.json) cannot be read (TypeError",
        ),
    ],
)
def test_a_file_that_transformers_refuses_is_named(
    warm_bench: Bench, tmp_path: Path, name: str, change: dict[str, Any], begin: str
) -> None:
    folder = shutil.copytree(POCKET, tmp_path / "model")
    (folder / name).write_text(json.dumps(json.loads((POCKET / name).read_text()) | change))
    ended = warm_bench.wait(warm_bench.submit(light(model=str(folder), chat="chat_template" in change)), 60)
    assert ended.status == "failed" and ended.bad_input
    assert ended.message.startswith(f"The model's {begin}"), ended.message
    assert ended.message.endswith(COPY_AGAIN), ended.message
