"""Every form of a model reference, and every way to get it wrong."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.backend.models.test_shape import GOOD
from tokendyno.backend.errors import InputError
from tokendyno.backend.models import DEFAULT_MODEL, catalogue, check_loadable, check_reference, resolve
from tokendyno.backend.models.files import hub

TINY = GOOD | {"dtype": "bfloat16"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with only a config."""
    path = tmp_path / "tiny"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(TINY))
    return path


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here may contact the Hub."""

    def refuse(repo: str, revision: str) -> bytes:
        raise hub.HubUnreachable(f"The Hub could not be reached for {repo}.")

    monkeypatch.setattr(hub, "fetch_config", refuse)


def test_the_default_model_is_embedded_and_can_be_loaded() -> None:
    facts = resolve(DEFAULT_MODEL)
    assert facts.source.kind == "embedded" and not facts.random
    assert facts.packed_bytes
    check_loadable(facts)


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_every_catalogue_name_needs_no_network(entry: Any) -> None:
    facts = resolve(entry.name)
    assert facts.model == entry.name and facts.label == entry.title and facts.kind == entry.kind
    assert facts.source.repo == entry.repo
    assert resolve(entry.repo or entry.name).source == facts.source


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.name)
def test_random_weights_keep_the_shape_and_say_what_they_are(entry: Any) -> None:
    facts = resolve(f"random:{entry.name.upper()}")
    assert facts.random and facts.note.startswith("Random weights: ") and facts.source.kind == "random"
    assert facts.parameters == resolve(entry.name).parameters
    config = json.loads(facts.source.config_json)
    assert config["dtype"] == facts.dtype and "quantization_config" not in config
    assert facts.quantization is None
    check_loadable(facts)


def test_random_takes_a_hub_id_of_the_catalogue_and_a_folder(folder: Path) -> None:
    assert resolve("random:mistralai/Mistral-7B-v0.1").window == 4096
    facts = resolve(f"random:{folder}")
    assert facts.random and facts.layers == 2 and json.loads(facts.source.config_json) == TINY


def test_a_decoders_forward_pass_is_the_same_model_without_tokens() -> None:
    for name in ("forward:random:gpt2", "Forward:Random:GPT2"):
        check_reference(name)
        assert resolve(name).source.forward
    whole, alone = resolve("gpt2"), resolve("forward:gpt2")
    assert (alone.kind, alone.source.forward, alone.parameters) == ("encoder", True, whole.parameters)
    assert alone.label == f"{whole.label}, forward pass" and not whole.source.forward
    with pytest.raises(InputError, match="is an encoder, whose forward pass is timed anyway"):
        resolve("forward:bert-base-uncased")


def test_random_weights_take_the_shape_of_a_folder_and_nothing_else(folder: Path) -> None:
    ignored = {"attn_implementation": "eager", "quantization_config": {"quant_method": "fp8"}, "auto_map": {"A": "b.C"}}
    (folder / "config.json").write_text(json.dumps(TINY | ignored))
    assert resolve(str(folder)).quantization == "fp8"
    facts = resolve(f"random:{folder}")
    assert facts.quantization is None and json.loads(facts.source.config_json) == TINY


def test_a_folder_with_only_a_config_gives_facts_but_cannot_be_loaded(folder: Path) -> None:
    facts = resolve(str(folder))
    assert facts.source.kind == "folder" and facts.packed_bytes is None
    with pytest.raises(InputError, match=r"has no weights.*random:"):
        check_loadable(facts)


@pytest.mark.parametrize("name", ["pocket", "gpt-oss-20b", "random:Llama-3-8B", "org/name@main", "tiny", "random:tiny"])
def test_a_name_is_checked_before_anybody_asks_for_it(name: str, folder: Path) -> None:
    check_reference(name, folder.parent)


@pytest.mark.parametrize("name", ["nope", "random:nope", "", "a/b/c d", "/nowhere"])
def test_a_name_that_no_model_can_have_is_refused(name: str, folder: Path) -> None:
    with pytest.raises(InputError, match=r"model|folder"):
        check_reference(name, folder.parent)


def test_plain_names_are_looked_up_in_the_models_folder(folder: Path) -> None:
    assert resolve("tiny", folder.parent).source.path == str(folder)
    assert resolve("tiny", folder.parent, local_paths=False).layers == 2
    assert resolve("random:tiny", folder.parent, local_paths=False).random
    with pytest.raises(InputError, match="There is no model"):
        resolve("tiny")
    with pytest.raises(InputError, match="There is no architecture 'tiny'"):
        resolve("random:tiny")
    with pytest.raises(InputError, match="There is no model"):
        resolve("tiny2", folder.parent)


def test_the_catalogue_comes_before_a_folder_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "pocket").mkdir()
    assert resolve("pocket", tmp_path).source.kind == "embedded"


def test_a_catalogue_model_at_a_revision_falls_back_to_the_catalogue() -> None:
    facts = resolve("Qwen/Qwen3-0.6B@v1")
    assert (facts.source.repo, facts.source.revision) == ("Qwen/Qwen3-0.6B", "v1")
    assert facts.head_dim == 128 and "could not be reached" in facts.note
    with pytest.raises(InputError, match="could not be reached"):
        resolve("someone/else")


@pytest.mark.parametrize(
    ("ref", "near"), [("Qwen3-0.6", "Qwen3-0.6B"), ("gpt-oss", "gpt-oss-20b"), ("poket", "pocket"), ("GPT3", "gpt2")]
)
def test_an_unknown_name_is_answered_with_the_nearest(ref: str, near: str) -> None:
    with pytest.raises(InputError, match=f"Did you mean {near!r}"):
        resolve(ref)
    with pytest.raises(InputError, match=f"Did you mean {near!r}"):
        resolve(f"random:{ref}")


HOSTILE = [
    "", " ", "\x00", "a\x00b", "x" * 5_000, "x/" * 400, "/" + "x" * 900, "a\nb", "org/na\nme", "../..", "..", ".", "/",
    "../../etc/passwd", "/etc/passwd", "/dev/zero", "/proc/self/mem", "~nobodyatall/x", "~", "org/../name", "org//name",
    "org/name@../../x", "org/name@", "org/name/more", "https://huggingface.co/gpt2", "file:///etc/passwd",
    "org/name.git", "-org/name", "org/-name", "org/na me", "org/näme", "org/name?x=1", "org/name#x", "org\\name",
    "C:\\models", "missing.gguf", "/missing.gguf", "./missing", "random:", "random:random:pocket", "random:/etc",
    "random:/dev/zero", "random:../x", "random:org/name", "random:\x00", "${HOME}", "$(reboot)", "a@b", "\u202egpt2",
]  # fmt: skip


@pytest.mark.parametrize("ref", HOSTILE, ids=lambda ref: ascii(ref)[:40])
@pytest.mark.parametrize("local_paths", [True, False], ids=["paths", "no-paths"])
def test_a_hostile_reference_costs_one_sentence(ref: str, local_paths: bool, tmp_path: Path) -> None:
    began = time.process_time()
    with pytest.raises(InputError) as error:
        resolve(ref, tmp_path, local_paths=local_paths)
    said = str(error.value)
    assert time.process_time() - began < 0.5
    assert said.endswith(".") and len(said) < 2_500 and said.isprintable()


def test_without_local_paths_nothing_outside_the_models_folder_is_opened(folder: Path) -> None:
    outside = folder.parent / "models"
    outside.mkdir()
    for ref in (str(folder), "../tiny", f"./{folder.name}", f"random:{folder}", "random:../tiny"):
        with pytest.raises(InputError, match="Local paths are not allowed here"):
            resolve(ref, outside, local_paths=False)


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    os.mkfifo(tmp_path / "model.gguf")
    with pytest.raises(InputError, match=r"has no config\.json"):
        resolve(str(tmp_path))
    with pytest.raises(InputError, match="There is no folder or GGUF file"):
        resolve(str(tmp_path / "model.gguf"))


@pytest.mark.parametrize(
    "line",
    [
        "from tokendyno.backend.models import *; from tokendyno.backend.predict import memory, roofline",
        "from tokendyno.backend.models import resolve; resolve('pocket'); resolve('random:gpt-oss-120b')",
    ],
)
def test_neither_torch_nor_transformers_is_imported(line: str) -> None:
    code = f"{line}\nimport sys; sys.exit(int(bool({{'torch', 'transformers', 'numpy'}} & set(sys.modules))))"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
