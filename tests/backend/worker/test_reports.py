"""The cause of a failed load reaches the page, although transformers logs it and raises something else."""

import logging
import shutil
from pathlib import Path

import pytest

from tests.support.worker import Talk
from tokendyno.backend.messages import Failed
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.paths import PRESETS
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.serve import MOST_CHARACTERS, Reports


def test_warnings_are_kept_while_listening_and_only_then() -> None:
    reports, log = Reports(), logging.getLogger("a.library")
    log.warning("before")
    with reports.listening():
        log.info("too small to matter")
        log.warning(
            "one | CONVERSION |\n\nTraceback (most recent call last):\n  File x\nRuntimeError: sizes differ\n----+---"
        )
    log.warning("after")
    assert reports.text() == "one | CONVERSION; RuntimeError: sizes differ"
    with reports.listening():
        pass
    assert reports.text() == ""


def test_loggers_that_keep_their_records_to_themselves_are_heard_too() -> None:
    reports, log = Reports(), logging.getLogger("a.silent.library")
    log.propagate = False
    with reports.listening():
        log.error("why")
    assert reports.text() == "why"
    assert not log.handlers


def test_what_is_said_is_bounded_and_without_secrets() -> None:
    reports = Reports()
    with reports.listening():
        logging.getLogger("x").warning("begin hf_ABCDEFGHIJ0123456789 %s end", "long " * 1_000)
    assert len(reports.text()) < MOST_CHARACTERS + 20
    assert reports.text().startswith("begin [redacted]") and reports.text().endswith("end")


@pytest.fixture
def torn_mixture(tmp_path: Path) -> Path:
    """A mixture whose second expert has another size than the first: stacking them fails while it is loaded."""
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(
        vocab_size=64,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=2,
    )
    MixtralForCausalLM(config).to(torch.bfloat16).save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    name = next(name for name in weights if "experts.1." in name)
    weights[name] = weights[name][:10].clone()
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(PRESETS / "models" / "pocket" / file, tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_failed_conversion_names_the_tensors_that_did_not_fit(warm_worker: Talk, torn_mixture: Path) -> None:
    failed = warm_worker.load(Plan(LoadPlan(ModelSource("folder", str(torn_mixture)))))
    assert isinstance(failed, Failed)
    assert "issues during automatic conversion" in failed.error
    assert "got [48, 32] at entry 0 and [10, 32] at entry 1" in failed.error
    assert "Traceback" not in failed.error and len(failed.error) < 2_000
