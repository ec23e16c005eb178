"""The end of a greedy step is a module that a kernel folder may stand in for, and the ledger says so."""

from pathlib import Path

import torch

from backend.worker.ending import NAME, StepEnd, of
from backend.worker.sampling import Sampling
from backend.worker.stand_ins import put_in
from tests.backend.worker.test_hub import calm as calm
from tests.backend.worker.test_hub import found, package, plan
from tests.backend.worker.test_own import NEW, greedy, own, prompt
from tests.tiny import WINDOW, build, tiny

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
    model, asked = build("qwen3"), prompt(5)
    expected = greedy(model, asked)
    put_in(model, plan("local", package(tmp_path / "ending", "ending", ENDING)))
    assert found(model).proof == "1 x StepEnd by ending"
    worst = own(model, asked)
    assert torch.equal(worst[:, :6], expected[:, :6]), "the prompt's token is chosen by the loop itself"
    assert not torch.equal(worst[:, 6:], expected[:, 6:])
    warm = Sampling(1.5, 20, 0.9)
    assert torch.equal(own(model, asked, sampling=warm), own(tiny("qwen3"), asked, sampling=warm))


def test_another_folder_leaves_it_plain(tmp_path: Path) -> None:
    from backend import kernel_folders

    model = build("qwen3")
    put_in(model, plan("local", package(tmp_path / "ending", "ending", ENDING)))
    put_in(model, plan("local", kernel_folders.OWN))
    assert "StepEnd" not in found(model).proof
    assert torch.equal(own(model, prompt(5)), greedy(model, prompt(5)))


def test_it_has_no_weights_and_a_model_needs_none() -> None:
    model = tiny("llama")
    assert not hasattr(model, NAME)
    assert type(of(model)) is StepEnd and not of(model).state_dict()


def test_places_are_filled_up_to_the_next_token_and_no_further() -> None:
    from backend.worker.own import Step
    from backend.worker.steady import SteadyCache

    model, asked = tiny("olmo3"), prompt(5, 2, padded=2)
    with torch.inference_mode():
        cache = SteadyCache(model.config, 5 + NEW)
        step = Step(model, cache, 2, Sampling(), 0)
        step.begin(asked, 0, [])
        for made in range(1, 4):
            assert cache.full is not None and cache.sliding is not None
            assert cache.full.filled.sum(-1).tolist() == [5 + made, 3 + made]
            assert cache.sliding.filled[0].sum() == min(5 + made, WINDOW)
            step()
