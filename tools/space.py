"""Writes the requirements of a Hugging Face Space: `python -m tools.space cpu|zerogpu|gpu [--to FILE]`.

A Space reads `requirements.txt`, not `pyproject.toml`; the file of this repository is that of a CPU Space. On a CPU
torch comes from PyTorch's own index, without several GB of CUDA packages; on ZeroGPU it is the newest that the platform
supports, with the package that lends the GPU.
"""

import argparse
import tomllib
from pathlib import Path

from backend.paths import ROOT

CPU_INDEX = "--extra-index-url https://download.pytorch.org/whl/cpu"
SPACES = "spaces>=0.51,<0.52"
ZERO_GPU_TORCH = "torch>=2.11,<2.12"
"""Of those that ZeroGPU supports, 2.8 to 2.11 (its documentation of August 2026), what tokendyno runs with."""

KINDS = ("cpu", "zerogpu", "gpu")


def requirements(kind: str) -> list[str]:
    """The lines for one kind of hardware, from the dependencies in pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    packages: list[str] = project["dependencies"]
    head = f"# For a Hugging Face Space ({kind}), written by python -m tools.space {kind}"
    match kind:
        case "cpu":
            return [head, CPU_INDEX, *packages]
        case "zerogpu":
            return [head, ZERO_GPU_TORCH, *(one for one in packages if not one.startswith("torch>")), SPACES]
        case _:
            return [head, *packages]


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(prog="python -m tools.space", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--to", type=Path, default=ROOT / "requirements.txt", metavar="FILE")
    given = parser.parse_args()
    given.to.write_text("\n".join(requirements(given.kind)) + "\n", encoding="utf-8")
    print(f"{given.to}: {given.kind}")


if __name__ == "__main__":
    main()
