"""Lays out a Hugging Face Space: `python -m tools.space cpu|zerogpu|gpu [--folder FOLDER]`.

Writes `requirements.txt` here, or into a new folder with what else a Space needs. A Space reads that file,
not `pyproject.toml`; the one of this repository is that of a CPU Space. On a CPU torch comes from PyTorch's own index,
without several GB of CUDA packages; on ZeroGPU it is the newest that the platform supports, with the package that lends
the GPU.
"""

import argparse
import shutil
import tomllib
from pathlib import Path

from tokendyno.backend.paths import ROOT

CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"
SPACES = "spaces>=0.51,<0.52"
ZERO_GPU_TORCH = "torch>=2.11,<2.12"
"""Of those that ZeroGPU supports, 2.8 to 2.11 (its documentation of August 2026), what tokendyno runs with."""

KINDS = ("cpu", "zerogpu", "gpu")
FILES = ("app.py", "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "LICENSE")
FOLDERS = ("tokendyno", "backend", "ui", "presets", "docs")


def requirements(kind: str) -> list[str]:
    """The lines for one kind of hardware, from the dependencies in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages: list[str] = project["dependencies"]
    head = f"# For a Hugging Face Space ({kind}), written by python -m tools.space {kind}"
    match kind:
        case "cpu":
            return [head, CPU_INDEX, *packages]
        case "zerogpu":
            return [head, ZERO_GPU_TORCH, *(line for line in packages if not line.startswith("torch>")), SPACES]
        case _:
            return [head, *packages]


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.space", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--folder", type=Path, help="a new folder for all that the Space needs")
    options = parser.parse_args()
    target = options.folder or ROOT
    if options.folder:
        target.mkdir(parents=True)
        for name in FILES:
            shutil.copy2(ROOT / name, target / name)
        for name in FOLDERS:
            ignored = shutil.ignore_patterns("__pycache__", "*.pyi")
            shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=ignored)
    (target / "requirements.txt").write_text("\n".join(requirements(options.kind)) + "\n", encoding="utf-8")
    print(f"{target}: {options.kind}")


if __name__ == "__main__":
    main()
