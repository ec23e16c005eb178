"""What the arm decides and not the checkpoint, what is measured, and what is said of files that transformers
refuses."""

import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, BertConfig, BertForMaskedLM
from transformers.integrations import hub_kernels

from tests.support.command_line import POCKET
from tests.support.worker import light
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import ALLOWED_KERNELS
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import ONE_THREAD_BELOW_BYTES, LoadPlan
from tokendyno.backend.worker.channel import Channel
from tokendyno.backend.worker.load import loader
from tokendyno.backend.worker.load.loader import cached_share, forget_own_choices, guard_kernels, load


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


@pytest.mark.parametrize("lacking", [[], ["model.norm.weight", "model.layers.0.input_layernorm.weight"]])
def test_tensors_that_a_checkpoint_lacks_are_named(lacking: list[str], tmp_path: Path) -> None:
    folder = shutil.copytree(POCKET, tmp_path / "model")
    tensors = load_file(folder / "model.safetensors")
    for name in lacking:
        del tensors[name]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    loaded = loader.load(LoadPlan(ModelSource("folder", path=str(folder))), Channel(lambda event: None))
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
    loaded = loader.load(LoadPlan(ModelSource("folder", path=str(tmp_path))), Channel(lambda event: None))
    assert loaded.counts["drawn_tensors"] == 0
    assert "no pooler" in loaded.remark and "Copy the weights again" not in loaded.remark


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Repositories whose kernels were requested."""
    names: list[str] = []

    def get(name: str, *args: object, **more: object) -> Any:
        names.append(name)
        raise FileNotFoundError(name)

    monkeypatch.setattr(hub_kernels, "get_kernel_hub", get)
    yield names


def checkpoint(folder: Path, **fields: object) -> Path:
    shutil.copytree(POCKET, folder)
    config = json.loads((folder / "config.json").read_text()) | fields
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("field", ["attn_implementation", "_attn_implementation"])
def test_a_repository_that_the_config_names_as_its_attention_is_not_asked_for(
    field: str, requested: list[str], tmp_path: Path
) -> None:
    folder = checkpoint(tmp_path / "model", **{field: "evil/kernel"})
    assert AutoConfig.from_pretrained(folder)._attn_implementation == "evil/kernel", "transformers takes it"
    loaded = load(LoadPlan(ModelSource("folder", path=str(folder))), Channel(lambda event: None))
    assert requested == [] and "evil" not in str(loaded.model.config._attn_implementation)
    assert "asked for attention=evil/kernel, which the arm decides" in loaded.remark


def test_the_arms_choice_wins_over_the_configs(requested: list[str], tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", attn_implementation="evil/kernel", experts_implementation="evil/other")
    plan = LoadPlan(ModelSource("folder", path=str(folder)), attention="eager")
    loaded = load(plan, Channel(lambda event: None))
    assert loaded.model.config._attn_implementation == "eager" and requested == []
    assert "attention=evil/kernel, experts=evil/other" in loaded.remark


def test_a_config_that_chooses_nothing_is_left_alone(tmp_path: Path) -> None:
    loaded = load(LoadPlan(ModelSource("folder", path=str(POCKET))), Channel(lambda event: None))
    assert "asked for" not in loaded.remark
    config = AutoConfig.from_pretrained(POCKET)
    assert forget_own_choices(config) == ""


def test_kernels_that_are_not_listed_are_not_fetched_whoever_asks(requested: list[str]) -> None:
    guard_kernels({ALLOWED_KERNELS: "org/good, org/other"})
    guard_kernels({ALLOWED_KERNELS: ""})  # the first list stays
    with pytest.raises(FileNotFoundError):
        hub_kernels.get_kernel("org/good", version=1)
    with pytest.raises(InputError, match=r"kernels from the Hub \(org/bad\), which are binaries"):
        hub_kernels.get_kernel("org/bad", version=1)
    assert requested == ["org/good"]


def test_what_was_just_written_is_in_the_page_cache_and_what_was_dropped_is_not(tmp_path: Path) -> None:
    path, empty = tmp_path / "weights.safetensors", tmp_path / "empty.safetensors"
    path.write_bytes(bytes(1 << 20))
    empty.touch()
    assert cached_share([path, empty]) == 1.0 and cached_share([empty]) is None
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    assert cached_share([path]) in (0.0, 1.0)  # a file system in memory drops nothing


def test_a_file_too_large_to_be_copied_in_memory_counts(tmp_path: Path) -> None:
    small, large = tmp_path / "small.safetensors", tmp_path / "large.safetensors"
    small.write_bytes(bytes(1 << 20))
    large.touch()
    os.truncate(large, 1 << 36)  # 64 GiB of which nothing was written or read
    share = cached_share([small, large])
    assert share is not None and share < 0.01


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files of another user")
def test_of_a_file_of_another_user_that_may_only_be_read_nothing_is_known(tmp_path: Path) -> None:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(bytes(1 << 20))
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    file = f"/proc/self/fd/{os.open(path, os.O_RDONLY)}"  # the folders above it belong to root alone
    os.seteuid(65534)
    try:
        assert cached_share([Path(file)]) is None
    finally:
        os.seteuid(0)
    assert cached_share([path]) == 1.0


COPY_AGAIN = "Copy it again from the original checkpoint, or choose another model."


@pytest.mark.parametrize(
    ("name", "change", "begin"),
    [
        ("config.json", {"eos_token_id": "</s>"}, "config (config.json) cannot be read (StrictDataclass"),
        ("config.json", {"pad_token_id": 9999}, "config (config.json) cannot be read (AssertionError: Padding_idx"),
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
