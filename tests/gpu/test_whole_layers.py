"""Decoder layers of every architecture that has a description: logits, ledger, and what happens where it is wrong.

Their text in float32 is compared in test_matvec.py.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.gpu.test_matvec import build, whole_layers, with_kernels
from tests.gpu.test_own import Maker, prompt
from tests.support.ledger import unsound
from tests.support.whole_layers import MODELS
from tokendyno.backend.engine.bench import Bench
from tools.bench.gpu.every import WORK, perform, settled

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore")]

DENSE = sorted(MODELS.keys() - {"gpt_oss"})


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("architecture", DENSE)
def test_logits_are_those_of_float32_within_the_formats_rounding(architecture: str, dtype: str) -> None:
    """No further from them than twice what the model's own code in this format is, with the same tokens given."""
    import torch

    from tests.support.decode_loop import GREEDY, Told, greedy

    asked = prompt(11)
    text = greedy(build(architecture), asked)[0, asked.ids.shape[1] :].tolist()

    def logits(model: Any) -> Any:
        made = Maker(model, 60)
        with torch.inference_mode():
            made.loop.generate(asked.ids, asked.mask, made.cache, len(text), Told(), GREEDY, 0, True, text)
        return made.loop.given_logits().float()

    model = with_kernels(build(architecture, dtype))
    exact, own, mine = (logits(one) for one in (build(architecture), build(architecture, dtype), model))
    assert len(whole_layers(model)) == 4
    apart, usual = (float((one - exact).norm() / exact.norm()) for one in (mine, own))
    assert apart < 2 * usual + torch.finfo(getattr(torch, dtype)).eps, (apart, usual)


def test_a_layer_that_gives_something_else_than_the_models_own_keeps_that() -> None:
    """Here a product that is doubled, which no description reads. The ledger's row counts the layer."""
    import torch

    from tests.support.decode_loop import greedy
    from tokendyno.backend.worker.witness.kernels import layers

    model, plain = with_kernels(build("granite")), build("granite")
    for one in (model, plain):
        down = one.model.layers[1].mlp.down_proj
        down.forward = lambda x, down=down: 2 * torch.nn.functional.linear(x, down.weight)
    assert torch.equal(Maker(model, 60)(prompt(9)), greedy(plain, prompt(9)))
    kept = [one.kernel for one in layers(model) if one.layer == "DecoderLayer"]
    assert len(kept) == 4 and kept.count("") == 1


@pytest.mark.parametrize("architecture", DENSE)
def test_the_ledger_is_green(bench: Bench, tmp_path: Path, architecture: str) -> None:
    from transformers import AutoConfig

    AutoConfig.for_model(architecture, **MODELS[architecture] | {"vocab_size": 512}).save_pretrained(tmp_path)
    projections = "separate" if architecture in ("gpt2", "phi3") else "fused"
    arm = f"cache=static,loop=own,cuda_graphs=manual,projections={projections},kernels=local,dtype=bfloat16"
    choices, why = settled(bench, f"random:{tmp_path}", arm)
    assert not why
    run, document = perform(bench, f"random:{tmp_path}", choices, WORK)
    assert run.status == "done", run.message
    (only,) = document["arms"]
    assert not unsound(only["evidence"])
    (row,) = (row for row in only["evidence"] if row["axis"] == "kernels")
    assert row["status"] == "verified" and "4 x DecoderLayer" in row["proof"], row
