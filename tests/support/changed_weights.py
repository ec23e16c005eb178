"""Copies of a model's folder in which some weights are changed."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.command_line import POCKET


def changed_copy(target: Path, changes: Mapping[str, Callable[[Any], object]], of: Path = POCKET) -> Path:
    """A copy of `of` at `target`; each change gets the tensor of that name, and changes it in place."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(of, target)
    tensors = load_file(target / "model.safetensors")
    for name, change in changes.items():
        change(tensors[name])
    save_file(tensors, target / "model.safetensors", {"format": "pt"})
    return target
