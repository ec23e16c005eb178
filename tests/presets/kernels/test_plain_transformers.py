"""The README's way to use a kernel in transformers without tokendyno."""

import re
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.paths import ROOT

EXAMPLES = re.findall(r"```python\n(.*?)```", (kernel_packages.BUNDLED / "README.md").read_text("utf-8"), re.DOTALL)
POCKET = kernel_packages.BUNDLED.parent / "models" / "pocket"


def model_of(example: str) -> Any:
    names: dict[str, Any] = {}
    exec(compile(example, "README.md", "exec"), names)
    return names["model"]


def kernels_in(model: Any) -> set[tuple[str, str]]:
    """(class of a module, package of the kernel that computes it)."""
    found = {(type(one).__name__, one.forward.__func__.__module__.partition(".")[0]) for one in model.modules()}
    return {(layer, package) for layer, package in found if package.startswith("tokendyno")}


def error(model: Any) -> float:
    """Of the scores after one token, relative to those of transformers alone."""
    plain = AutoModelForCausalLM.from_pretrained(POCKET).to(model.device)
    with torch.no_grad():
        found, wanted = (one(torch.tensor([[7]], device=model.device)).logits.double() for one in (model, plain))
    return float((found - wanted).norm() / wanted.norm())


@pytest.mark.skipif(torch.version.cuda is not None, reason="`kernels` takes the build for CUDA wherever torch has it")
def test_the_norm_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    model = model_of(EXAMPLES[0])
    assert kernels_in(model) == {("GptOssRMSNorm", "tokendyno_rmsnorm_cpu_1")}
    assert error(model) < 0.02
