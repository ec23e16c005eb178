"""The end of a greedy step is a module that a kernel folder may replace, and the ledger says so."""

from pathlib import Path

import torch

from tests.backend.worker.patch.test_kernels import calm as calm
from tests.backend.worker.patch.test_kernels import kernels_finding, package, plan
from tests.support.decode_loop import greedy, own, prompt
from tests.support.tiny_models import build, tiny
from tokendyno.backend.worker.load.loader import apply_patches
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.loop.step import STEP_END, StepEnd

ENDING = """
import torch
import torch.nn as nn
class StepEnd(nn.Module):
    has_backward = False
    can_torch_compile = True
    def forward(self, logits, step):
        step.pad = step.pad + 1
        type(self).forward(self, -logits, step)
"""


def test_a_folders_step_end_ends_the_steps_and_is_named(tmp_path: Path) -> None:
    model, start = build("qwen3"), prompt(5)
    expected = greedy(model, start)
    apply_patches(model, plan("local", package(tmp_path / "ending", "ending", ENDING)))
    assert kernels_finding(model).proof.startswith("1 x StepEnd by ending")
    worst = own(model, start)
    assert torch.equal(worst[:, :6], expected[:, :6]), "the loop itself chooses the first token"
    assert not torch.equal(worst[:, 6:], expected[:, 6:])
    warm = Sampling(1.5, 20, 0.9)
    assert torch.equal(own(model, start, sampling=warm), own(tiny("qwen3"), start, sampling=warm))


def test_another_folder_leaves_it_plain(tmp_path: Path) -> None:
    from tokendyno.backend.hardware import kernel_packages

    model = build("qwen3")
    apply_patches(model, plan("local", package(tmp_path / "ending", "ending", ENDING)))
    apply_patches(model, plan("local", kernel_packages.BUNDLED))
    assert "StepEnd" not in kernels_finding(model).proof
    assert torch.equal(own(model, prompt(5)), greedy(model, prompt(5)))


def test_it_has_no_weights_and_a_model_needs_none() -> None:
    model = tiny("llama")
    assert not hasattr(model, STEP_END)
    assert not StepEnd().state_dict()
