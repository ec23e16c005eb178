"""States, latents and shared keys in the custom decode loop on a GPU: captured, and told from what cannot be."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.gpu.test_own import Maker, prompt
from tests.support.decode_loop import NEW, Told, greedy
from tests.support.ledger import unsound
from tests.support.tiny_models import LATENTS, MORE_STATES, STATES, WINDOW, build
from tokendyno.backend.arms.bundles import bundle, grant
from tokendyno.backend.config import Workload
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.hardware import detect
from tokendyno.backend.models import resolve
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.loop import DecodeLoop
from tools.bench.gpu.bench_cli import tell
from tools.bench.gpu.every import perform
from tools.tiny_config import tiny_config

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]
WAITS = ("gemma3n_text", "jetmoe")
ON_A_GPU = [name for name in (*STATES, *MORE_STATES, *LATENTS) if name not in WAITS]
CAPTURE = """
from tests.gpu.test_own import Maker, prompt
from tests.support.tiny_models import build
Maker(build({name!r}, device="cuda"), 60)(prompt(5))
"""


def built(architecture: str) -> Any:
    model = build(architecture, device="cuda")
    if any("expert" in name for name, _ in model.named_modules()):
        model.set_experts_implementation("batched_mm")
    return model


@pytest.mark.parametrize("architecture", ON_A_GPU)
def test_captured_greedy_text_is_that_of_generate(architecture: str) -> None:
    model = built(architecture)
    for batch in (1, 3):
        made = Maker(model, 60)
        for asked in (prompt(5, batch), prompt(WINDOW, batch), prompt(20, batch, padded=4 if batch > 1 else 0)):
            assert torch.equal(made(asked), greedy(model, asked))
        assert made.loop.captures == 1


@pytest.mark.parametrize("architecture", ["lfm2", "qwen3_5_text", "qwen3_next", "falcon_h1", "bamba"])
def test_captured_prompts_give_the_text_of_generate(architecture: str) -> None:
    model = built(architecture)
    for batch in (1, 3):
        cache = StaticSlotCache(model.config, 60)
        loop = DecodeLoop(model, 0, [], None, True, prefill_graphs=True)
        for tokens, padded in ((20, 0), (5, 0), (20, 4), (1, 0), (5, 0), (20, 7)):
            asked = prompt(tokens, batch, padded if batch > 1 else 0)
            with torch.inference_mode():
                cache.reset()
                made = loop.generate(asked.ids, asked.mask, cache, NEW, Told(), ignore_eos=True)
            assert torch.equal(made, greedy(model, asked)), (batch, tokens, padded)


@pytest.mark.parametrize("architecture", WAITS)
def test_a_step_that_waits_for_the_device_cannot_be_captured(architecture: str) -> None:
    """In a process of its own, which the failed capture leaves unusable."""
    tried = subprocess.run(
        [sys.executable, "-c", CAPTURE.format(name=architecture)], capture_output=True, text=True, check=False
    )
    assert tried.returncode and "captur" in tried.stderr, tried.stderr[-2000:]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("architecture", [*STATES, *WAITS, "deepseek_v3"])
def test_lowest_latency_is_granted_and_each_row_is_sound(architecture: str, bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(tiny_config(architecture) | {"dtype": "bfloat16"}))
    work = Workload(prompt_tokens=40, max_new_tokens=16, ignore_eos=True)
    model, preset = f"random:{tmp_path}", bundle("lowest-latency")
    assert preset is not None
    choices = grant(preset, resolve(model), detect(), work).choices
    assert choices["loop"] == "own" and ("cuda_graphs" in choices) is (architecture not in WAITS)
    run, document = perform(bench, model, dict(choices), work)
    assert run.status == "done", run.message
    tell(document)
    assert unsound(document["arms"][0]["evidence"]) == []
