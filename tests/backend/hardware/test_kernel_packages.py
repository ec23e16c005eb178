"""Kernel packages found on a machine, from folders alone."""

from pathlib import Path

import pytest

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.hardware.kernel_packages import BUNDLED, layers, local_folder, local_overrides, offline_repos


def package(folder: Path, variant: str, code: str = "class RMSNorm: ...\n", name: str = "layers.py") -> Path:
    """A kernel package with one variant."""
    inside = folder / "build" / variant
    (inside / name).parent.mkdir(parents=True, exist_ok=True)
    (inside / "metadata.json").write_text("{}")
    (inside / name).write_text(code)
    return folder


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_our_own_folder_has_an_rms_norm_for_both_devices(device: str) -> None:
    assert layers(BUNDLED, device)["RMSNorm"] == BUNDLED / "rmsnorm"
    assert local_folder(device, {}) == str(BUNDLED)


@pytest.mark.parametrize(
    ("variant", "device", "found"),
    [
        ("torch-cpu", "cpu", True),
        ("torch-cpu", "cuda", False),
        ("torch-cuda", "cuda", True),
        ("torch-cuda", "cpu", False),
        ("torch211-cxx11-cu130-x86_64-linux", "cuda", True),
        ("torch213-cxx11-cpu-x86_64-linux", "cpu", True),
        ("torch-rocm", "cuda", False),
        ("sources", "cpu", False),
    ],
)
def test_a_build_counts_for_its_own_device(variant: str, device: str, found: bool, tmp_path: Path) -> None:
    package(tmp_path / "norm", variant)
    assert bool(layers(tmp_path, device)) is found
    assert bool(local_folder(device, {"TOKENDYNO_KERNELS": str(tmp_path)})) is found


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("class A: ...\nclass B: ...\n", {"A", "B"}),
        ("class _Hidden: ...\n", set()),
        ("from .deeper import A, B as C\n", {"A", "C"}),
        ("from torch import nn\nfrom . import ops\nimport os\n", set()),
        ("raise SystemExit('never run')\nclass A: ...\n", {"A"}),
        ("class A:", set()),
        ("", set()),
    ],
)
def test_layers_are_read_without_running_them(code: str, names: set[str], tmp_path: Path) -> None:
    assert set(layers(package(tmp_path, "torch-cpu", code), "cpu")) == names
    assert set(layers(package(tmp_path / "deep", "torch-cpu", code, "layers/__init__.py"), "cpu")) == names


def test_a_folder_may_be_one_package_or_many(tmp_path: Path) -> None:
    norm = package(tmp_path / "norm", "torch-cpu")
    linear = package(tmp_path / "linear", "torch-cpu", "class Linear: ...\n")
    assert layers(norm, "cpu") == {"RMSNorm": norm}
    assert layers(tmp_path, "cpu") == {"RMSNorm": norm, "Linear": linear}
    assert layers(tmp_path / "nowhere", "cpu") == {}


@pytest.mark.parametrize(
    ("text", "repositories"),
    [
        ("org/a={0}", {"org/a"}),
        ("org/a={0}:org/b={0}", {"org/a", "org/b"}),
        ("org/a=/no/such/folder", set()),
        ("org/a", set()),
        ("", set()),
    ],
)
def test_local_kernels_names_folders_that_are_there(text: str, repositories: set[str], tmp_path: Path) -> None:
    env = {"LOCAL_KERNELS": text.format(tmp_path), "HF_HUB_CACHE": str(tmp_path / "empty")}
    assert set(local_overrides(env)) == set(offline_repos(env)) == repositories


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "KERNELS_CACHE"])
def test_what_is_in_the_cache_is_at_hand(variable: str, tmp_path: Path) -> None:
    for name in ("kernels--kernels-community--flash-attn2", "kernels--someone--x", "models--kernels-community--y"):
        (tmp_path / name / "snapshots" / "abc").mkdir(parents=True)
    (tmp_path / "kernels--kernels-community--begun").mkdir()
    assert offline_repos({variable: str(tmp_path)}) == ("kernels-community/flash-attn2", "someone/x")


def test_the_cache_is_where_kernels_and_the_hub_put_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The default location, compared with huggingface_hub's and the kernels library's."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    folder = tmp_path / "hub" / repo_folder_name(repo_id="kernels-community/flash-attn2", repo_type="kernel")
    (folder / "snapshots" / "abc").mkdir(parents=True)
    assert kernel_packages.offline_repos({"HF_HOME": str(tmp_path)}) == ("kernels-community/flash-attn2",)
    assert Path(constants.HF_HUB_CACHE).name == "hub"
