"""What cannot be loaded is known before a worker is started, and said in one sentence with what to do."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from huggingface_hub import constants

from tests.support.command_line import POCKET
from tests.support.fake_hub import COMMIT, fake_hub
from tokendyno.backend.models import obstacle, resolve
from tokendyno.backend.models.files import hub
from tokendyno.backend.models.source import ModelSource

DEAD = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def hub_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty cache, no login, no Hub, and no answers from before."""
    cache = tmp_path / "cache"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", DEAD)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub._answers.clear()
    yield cache
    hub._answers.clear()


def cached(cache: Path, repo: str, *names: str) -> Path:
    """These files of pocket in the cache, as the Hub's client lays them out."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    snapshot = folder / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text(COMMIT)
    for name in names:
        shutil.copy(POCKET / name, snapshot)
    return snapshot


def says(model: str, offline: bool = False) -> str:
    return obstacle(resolve(model), offline)


def test_a_model_that_is_not_here_while_downloads_are_off() -> None:
    assert says("gpt2", offline=True) == (
        "openai-community/gpt2 is not on this machine, and downloads are off (HF_HUB_OFFLINE). Unset it to download "
        "the model, give a local folder, or run its architecture without a download: random:gpt2."
    )


def test_a_model_that_is_not_here_while_the_hub_is_not_reached() -> None:
    said = says("gpt2")
    assert said.startswith(
        "openai-community/gpt2 is not on this machine, and the Hub could not be reached (ConnectError). "
    )
    assert said.endswith("random:gpt2.")


def test_what_the_hub_refuses_or_has_no_weights_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole, pickled = tmp_path / "whole", tmp_path / "pickled"
    for folder in (whole, pickled):
        folder.mkdir()
        shutil.copy(POCKET / "config.json", folder)
    shutil.copy(POCKET / "model.safetensors", whole)
    (pickled / "pytorch_model.bin").write_bytes(b"pickle")
    repos = {"org/whole": whole, "org/pickled": pickled, "openai-community/gpt2": whole}
    with fake_hub(repos, gated=["openai-community/gpt2"]) as (endpoint, requested):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        assert says("org/whole") == ""
        before = len(requested)
        assert says("org/whole") == "" and len(requested) == before, "an answer is kept"
        assert "has no safetensors weights" in says("org/pickled")
        assert says("gpt2").startswith("openai-community/gpt2 is gated. Accept its licence")
    assert not [path for path in requested if path.endswith((".bin", ".safetensors"))]


def test_weights_that_a_repository_says_beside_its_config_to_be_packed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(POCKET / name, tmp_path)
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"quant_algo": "FP8"}}')
    with fake_hub({"org/modelopt": tmp_path}) as (endpoint, requested):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        assert says("org/modelopt").startswith("hf_quant_config.json of org/modelopt says that the weights are quant")
    assert not [path for path in requested if path.endswith(".safetensors")]


def test_a_whole_download_needs_no_hub(hub_home: Path) -> None:
    cached(hub_home, "openai-community/gpt2", "config.json", "model.safetensors", "tokenizer.json")
    assert says("gpt2", offline=True) == says("gpt2") == ""


@pytest.mark.parametrize(
    ("names", "part"),
    [
        (["config.json"], "is not on this machine"),
        (["config.json", "tokenizer.json"], "is not on this machine"),
        (["config.json", "model.safetensors"], "was downloaded only in part (its tokenizer is missing)"),
    ],
)
def test_a_download_that_ended_early(hub_home: Path, names: list[str], part: str) -> None:
    cached(hub_home, "openai-community/gpt2", *names)
    assert f"openai-community/gpt2 {part}, and downloads are off" in says("gpt2", offline=True)
    assert f"openai-community/gpt2 {part}, and the Hub could not be reached" in says("gpt2")


def test_missing_shards_are_counted(hub_home: Path) -> None:
    snapshot = cached(hub_home, "openai-community/gpt2", "config.json", "tokenizer.json")
    names = [f"model-{n}-of-3.safetensors" for n in (1, 2, 3)]
    index = {"weight_map": {f"w{i}": name for i, name in enumerate(names)}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    shutil.copy(POCKET / "model.safetensors", snapshot / names[0])
    said = says("gpt2", offline=True)
    assert "was downloaded only in part (2 of 3 weight files are missing), and downloads are off" in said


@pytest.mark.parametrize(
    ("name", "data", "part"),
    [
        ("tokenizer.json", b'{"model":', "org/model/tokenizer.json is cut off, or no JSON object."),
        ("model.safetensors", b"", "org/model/model.safetensors is not a complete safetensors file"),
    ],
)
def test_a_torn_file_in_the_cache_is_told_with_how_to_remove_it(
    hub_home: Path, name: str, data: bytes, part: str
) -> None:
    repo = "org/model"
    snapshot = cached(hub_home, repo, "config.json", "model.safetensors", "tokenizer.json")
    facts = replace(resolve("pocket"), source=ModelSource("hub", repo=repo, commit=COMMIT))
    assert obstacle(facts, offline=True) == ""
    (snapshot / name).write_bytes(data)
    said = obstacle(facts, offline=True)
    assert part in said and said.endswith("remove it there first (hf cache rm model/org/model).")
    assert str(hub_home) not in said


def test_weights_that_had_begun_to_arrive(hub_home: Path) -> None:
    snapshot = cached(hub_home, "openai-community/gpt2", "config.json", "tokenizer.json")
    blobs = snapshot.parent.parent / "blobs"
    blobs.mkdir()
    (blobs / "abc.incomplete").write_bytes(b"12")
    assert "was downloaded only in part (its weights are missing)" in says("gpt2", offline=True)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["config.json"], "has no weights"),
        (["config.json", "model.safetensors"], "has no tokenizer"),
        (["config.json", "model.safetensors", "tokenizer_config.json"], "has no tokenizer"),
        (["config.json", "model.safetensors", "tokenizer.json"], ""),
    ],
)
def test_a_local_folder_lacks_weights_or_a_tokenizer(tmp_path: Path, names: list[str], said: str) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in names:
        shutil.copy(POCKET / name, folder)
    found = says(str(folder))
    assert said in found and bool(found) is bool(said)
    assert says(f"random:{folder}") == ""


def test_a_tokenizer_of_bytes_needs_no_vocabulary(tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        shutil.copy(POCKET / name, tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}')
    assert says(str(tmp_path)) == ""
