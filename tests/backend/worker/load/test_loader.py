"""How many threads a model gets on a CPU, and what is said of a checkpoint that lacks tensors."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM

from tests.support.command_line import POCKET
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import ONE_THREAD_BELOW_BYTES, LoadPlan
from tokendyno.backend.worker.channel import QueueChannel
from tokendyno.backend.worker.load import loader


@pytest.fixture(autouse=True)
def restored() -> object:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_a_tiny_model_gets_one_thread_and_a_larger_one_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_THREADS", 2)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert "1 CPU thread" in loader.choose_threads(10_000_000)
    assert torch.get_num_threads() == 1
    assert loader.choose_threads(ONE_THREAD_BELOW_BYTES) == ""
    assert torch.get_num_threads() == 2


def test_a_count_that_the_user_set_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_THREADS", 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert loader.choose_threads(10_000_000) == ""
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("weight_bytes", "dtype", "said"),
    [(10 << 20, "bfloat16", True), (10 << 20, "float32", False), (ONE_THREAD_BELOW_BYTES, "bfloat16", False)],
)
def test_a_model_too_small_for_bfloat16_on_a_cpu_is_told_so(weight_bytes: int, dtype: str, said: bool) -> None:
    assert ("dtype=float32" in loader.slow_format(weight_bytes, getattr(torch, dtype))) is said


@pytest.mark.parametrize("lacking", [[], ["model.norm.weight", "model.layers.0.input_layernorm.weight"]])
def test_tensors_that_a_checkpoint_lacks_are_named(lacking: list[str], tmp_path: Path) -> None:
    folder = shutil.copytree(POCKET, tmp_path / "model")
    kept = load_file(folder / "model.safetensors")
    for name in lacking:
        del kept[name]
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    loaded = loader.load(LoadPlan(ModelSource("folder", path=str(folder))), QueueChannel(lambda event: None))
    assert ("2 of the model's tensors are not in the checkpoint, first model.layers.0." in loaded.remark) is bool(
        lacking
    )
    assert ("checkpoint" in loaded.remark) is bool(lacking)
    assert loaded.counts["drawn_tensors"] == len(lacking)


def test_an_encoder_without_a_pooler_lacks_nothing_that_its_states_depend_on(tmp_path: Path) -> None:
    size = {"vocab_size": 3072, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertForMaskedLM(BertConfig(**size, intermediate_size=32)).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(POCKET / name, tmp_path)
    loaded = loader.load(LoadPlan(ModelSource("folder", path=str(tmp_path))), QueueChannel(lambda event: None))
    assert loaded.counts["drawn_tensors"] == 0
    assert "no pooler" in loaded.remark and "Copy the weights again" not in loaded.remark
