"""Kernel packages on this machine: which Hub kernels need no download, and which layers a local folder replaces.

A kernel package has the layout of the `kernels` library: `build/<variant>/` with `metadata.json`, `__init__.py` and
`layers.py`, whose classes replace layers of a model. Nothing is imported or run here.
"""

import ast
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from tokendyno.backend.paths import PRESETS
from tokendyno.backend.script.source import parse

BUNDLED = PRESETS / "kernels"
"""The kernels that come with tokendyno."""

ROUTED = BUNDLED / "matvec"
"""The one that computes routed experts."""

PUBLISHER = "kernels-community"
"""The only organization on the Hub whose compiled kernels are downloaded without the user naming them."""


def local_overrides(env: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """Hub repository -> existing local folder, from `LOCAL_KERNELS` (org/name=/folder:org/name=/folder)."""
    pairs = (entry.partition("=") for entry in env.get("LOCAL_KERNELS", "").split(":"))
    return {repo: Path(folder) for repo, _, folder in pairs if folder and Path(folder).is_dir()}


def offline_repos(env: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Hub repositories that need no download: those with a local folder, and those in the Hub's cache."""
    home = Path(env.get("HF_HOME") or Path.home() / ".cache" / "huggingface").expanduser()
    cache = Path(env.get("KERNELS_CACHE") or env.get("HF_HUB_CACHE") or home / "hub").expanduser()
    cached = (entry.name.split("--") for entry in cache.glob("kernels--*--*") if any(entry.glob("snapshots/*")))
    return tuple(sorted({*local_overrides(env), *(f"{parts[1]}/{'--'.join(parts[2:])}" for parts in cached)}))


def local_folder(device: str, env: Mapping[str, str] = os.environ) -> str:
    """The folder of `kernels=local`: TOKENDYNO_KERNELS, else the bundled one; "" if it has none for this device."""
    named = env.get("TOKENDYNO_KERNELS")
    folder = Path(named).expanduser().resolve() if named else BUNDLED
    return str(folder) if layers(folder, device) else ""


def layers(folder: Path, device: str) -> dict[str, Path]:
    """Layer class -> the kernel package that has it for this device. `folder`: one package, or a folder of them."""
    if not folder.is_dir():
        return {}
    packages = [folder] if any(_variants(folder, "")) else sorted(child for child in folder.iterdir() if child.is_dir())
    classes: dict[str, Path] = {}
    for package in packages:
        for variant in _variants(package, device):
            for name in _names(variant):
                classes.setdefault(name, package)
    return classes


def _variants(package: Path, device: str) -> Iterator[Path]:
    """Builds for a device ("" for any): "torch-cuda", or with versions "torch211-cxx11-cu130-x86_64-linux"."""
    part = {"cuda": "-cu", "": ""}.get(device, f"-{device}")
    for base in (package / "build", package):
        for metadata in sorted(base.glob("torch*/metadata.json")):
            if part in metadata.parent.name:
                yield metadata.parent


def _names(variant: Path) -> list[str]:
    """Classes that its `layers` module defines or imports from its own package, found by parsing it."""
    source = next((f for f in (variant / "layers.py", variant / "layers" / "__init__.py") if f.is_file()), None)
    if source is None:
        return []
    try:
        body = parse(source.read_text(encoding="utf-8")).body
    except (SyntaxError, ValueError, OSError):
        return []
    names = [node.name for node in body if isinstance(node, ast.ClassDef)]
    imports = (node for node in body if isinstance(node, ast.ImportFrom) and node.level and node.module)
    names += [alias.asname or alias.name for node in imports for alias in node.names]
    return [name for name in names if name[:1].isalpha()]
