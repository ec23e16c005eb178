"""projections: told apart by the matrices of the model; what is refused has nothing to fuse or cannot be."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.backend.worker.witness.test_findings import found, run, workers  # noqa: F401
from tests.support.machines import H200, facts, settled
from tests.support.proof import claimed
from tests.support.scripts import preamble
from tests.support.tiny_models import CONFIGS, build
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Finished
from tokendyno.backend.models.facts import Matrix
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.optimizations.axes.projections import shared_inputs
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.worker.patch.projections import fuse
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find
from tools.tiny_config import tiny_config

AXIS = next(axis for axis in all_axes() if axis.name == "projections")
PLAN = Plan(LoadPlan(ModelSource("random")))


def claims(model: Any) -> set[str]:
    return claimed(AXIS, Observation(model, None, PLAN))


def told(model: Any) -> Finding:
    return find("projections", Observation(model, None, PLAN))


@pytest.mark.parametrize("architecture", CONFIGS)
def test_every_group_is_counted(architecture: str) -> None:
    model = build(architecture)
    assert told(model).effective == "separate"
    fuse(model)
    finding = told(model)
    if architecture == "gpt2":
        assert finding.effective == "separate"
        plan = Plan(LoadPlan(ModelSource("random"), projections="fused"))
        row = find("projections", Observation(model, None, plan))
        assert (row.effective, row.outcome) == ("fused", "not_applicable") and "named like those of Llama" in row.proof
        return
    groups = 4 if architecture == "gpt_oss" else 8  # of 4 layers; gpt-oss has experts in the place of gate and up
    assert (finding.effective, finding.reached, finding.expected) == ("fused", groups, groups)


def test_a_half_fused_model_is_counted_as_half() -> None:
    model = build("llama")
    attention = model.model.layers[0].self_attn
    model.model.layers[0].self_attn = None
    fuse(model)
    model.model.layers[0].self_attn = attention
    finding = told(model)
    assert (finding.effective, finding.reached, finding.expected) == ("fused", 7, 8)


def test_fused_text_is_the_separate_one(workers: dict[str, Any]) -> None:  # noqa: F811
    texts = []
    for choice in ("separate", "fused"):
        _, worker = run(workers, "pocket", projections=choice)
        assert found(worker)["projections"].effective == choice
        finished = next(e for e in worker.events if isinstance(e, Finished))
        texts.append(finished.text)
    assert texts[0] == texts[1]


def test_a_script_fuses_with_the_workers_own_function() -> None:
    script = Script()
    AXIS.write(script, Plan(LoadPlan(ModelSource("random"), projections="fused")))
    assert script.definitions == [("worker/patch/projections.py", "fuse")]
    model = build("llama")
    exec("\n".join([preamble(script), *script.patch]), {"model": model})
    assert claims(model) == {"fused"}


@pytest.mark.parametrize(
    ("architecture", "groups"),
    [
        ("git", 4),  # beside those of a tower for images
        ("phi4_multimodal", 0),  # in towers alone
        ("mllama", 4),  # beside two in layers for images alone
        ("moshi", 0),  # modules with these names that hold a linear layer
    ],
)
def test_what_no_text_passes_through_is_not_fused(architecture: str, groups: int) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.for_model(**tiny_config(architecture)))
    assert shared_inputs(model, torch.nn.Linear) == groups
    assert fuse(model) == groups
    finding = find("projections", Observation(model, None, Plan(LoadPlan(ModelSource("random"), projections="fused"))))
    assert finding.expected == groups if groups else finding.outcome == "not_applicable"
    counted = replace(facts("random:gpt2"), architecture=architecture, shared_inputs=groups)
    assert AXIS.matters(counted) is bool(groups)
    assert bool(settled(counted, {"projections": "fused"}, H200).blocked) is not bool(groups)


@pytest.mark.parametrize(
    ("quantization", "rows", "columns", "fits"),
    [
        ("bnb-nf4", 3, 64, True),
        ("bnb-nf4", 64, 96, False),
        ("bnb-fp4", 3, 64, True),
        ("bnb-fp4", 64, 96, False),
        ("bnb-nf4-double", 256, 64, True),
        ("bnb-nf4-double", 3, 64, False),
        ("bnb-fp4-double", 256, 64, True),
        ("bnb-fp4-double", 3, 64, False),
    ],
)
def test_blocks_of_four_bits_must_end_with_their_row_or_their_matrix(
    quantization: str, rows: int, columns: int, fits: bool
) -> None:
    model = replace(facts("random:Qwen3-0.6B"), matrices=(Matrix("linear", 2, rows, columns),))
    refused = settled(model, {"projections": "fused", "quantization": quantization}, H200).blocked
    assert any("has numbers of two rows" in verdict.reason for verdict in refused) is not fits
