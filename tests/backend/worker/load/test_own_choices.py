"""A checkpoint's config chooses neither attention nor experts nor kernels: the arm does, and it is said."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoConfig
from transformers.integrations import hub_kernels

from tests.support.command_line import POCKET
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import ALLOWED_KERNELS
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.channel import QueueChannel
from tokendyno.backend.worker.load.loader import forget_own_choices, guard_kernels, load


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Repositories whose kernels were asked for."""
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
    field: str, asked: list[str], tmp_path: Path
) -> None:
    folder = checkpoint(tmp_path / "model", **{field: "evil/kernel"})
    assert AutoConfig.from_pretrained(folder)._attn_implementation == "evil/kernel", "transformers takes it"
    loaded = load(LoadPlan(ModelSource("folder", path=str(folder))), QueueChannel(lambda event: None))
    assert asked == [] and "evil" not in str(loaded.model.config._attn_implementation)
    assert "asked for attention=evil/kernel, which the arm decides" in loaded.remark


def test_the_arms_choice_wins_over_the_configs(asked: list[str], tmp_path: Path) -> None:
    folder = checkpoint(tmp_path / "model", attn_implementation="evil/kernel", experts_implementation="evil/other")
    plan = LoadPlan(ModelSource("folder", path=str(folder)), attention="eager")
    loaded = load(plan, QueueChannel(lambda event: None))
    assert loaded.model.config._attn_implementation == "eager" and asked == []
    assert "attention=evil/kernel, experts=evil/other" in loaded.remark


def test_a_config_that_chooses_nothing_is_left_alone(tmp_path: Path) -> None:
    loaded = load(LoadPlan(ModelSource("folder", path=str(POCKET))), QueueChannel(lambda event: None))
    assert "asked for" not in loaded.remark
    config = AutoConfig.from_pretrained(POCKET)
    assert forget_own_choices(config) == ""


def test_kernels_that_are_not_listed_are_not_fetched_whoever_asks(asked: list[str]) -> None:
    guard_kernels({ALLOWED_KERNELS: "org/good, org/other"})
    guard_kernels({ALLOWED_KERNELS: ""})  # the first list stays
    with pytest.raises(FileNotFoundError):
        hub_kernels.get_kernel("org/good", version=1)
    with pytest.raises(InputError, match=r"kernels from the Hub \(org/bad\), which are binaries"):
        hub_kernels.get_kernel("org/bad", version=1)
    assert asked == ["org/good"]
