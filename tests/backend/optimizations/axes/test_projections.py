"""projections: told apart by the products of a pass; what is refused has nothing to fuse or cannot be."""

import functools
from collections import Counter
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
from tokendyno.backend.worker.prove.profile import ShapedCall, Trace, trace
from tokendyno.backend.worker.witness import find
from tools.tiny_config import tiny_config

AXIS = next(axis for axis in all_axes() if axis.name == "projections")
PLAN = Plan(LoadPlan(ModelSource("random")))


def claims(model: Any) -> set[str]:
    return claimed(AXIS, Observation(model, None, PLAN))


def traced(model: Any) -> Finding:
    """The finding after a pass of this model, as a run is profiled."""

    def make() -> int:
        with torch.inference_mode():
            model(torch.tensor([[5, 6, 7]]))
        return 1

    once = functools.cache(lambda: trace(make, False))
    return find("projections", Observation(model, None, PLAN, once))


@pytest.mark.parametrize("architecture", CONFIGS)
def test_every_group_is_counted(architecture: str) -> None:
    model = build(architecture)
    assert traced(model).effective == "separate"
    fuse(model)
    finding = traced(model)
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
    finding = traced(model)
    assert (finding.effective, finding.reached, finding.expected) == ("fused", 7, 8)


def test_a_matrix_of_the_same_size_beside_them_does_not_stand_in_for_one() -> None:
    """The output matrix has as many rows here as q, k and v together."""
    model = build("llama")
    fuse(model)
    rows = model.model.layers[0].self_attn.q_proj.whole.out_features
    model.lm_head = torch.nn.Linear(32, rows, bias=False)
    assert traced(model).reached == 8
    model.model.layers[1].self_attn.q_proj.forward = lambda x: apart(model.model.layers[1].self_attn.q_proj, x)
    assert traced(model).reached == 7


def test_one_of_the_same_size_whose_steps_are_hidden_is_seen_with_the_prompt_alone() -> None:
    """As in Gemma 3n, whose projection for all layers' inputs has as many rows here as q, k and v together."""
    model = build("gemma3n_text")
    groups = fuse(model)
    with torch.inference_mode():
        read = trace(lambda: int(model(torch.tensor([[5, 6, 7]])) is not None), False)
    run = replace(read, steps=4, ops=read.ops + Counter({"tokendyno_matvec::linear": 9}))
    finding = find("projections", Observation(model, None, PLAN, lambda: run))
    assert (finding.reached, finding.expected) == (groups, groups), finding.proof


def test_a_router_of_the_same_size_as_a_part_is_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in gpt-oss-120b over four GPUs, which have 128 rows of keys each: as many as there are experts."""
    monkeypatch.setitem(CONFIGS, "gpt_oss", CONFIGS["gpt_oss"] | {"num_local_experts": 2 * 8})
    model = build("gpt_oss")
    fuse(model)
    finding = traced(model)
    assert (finding.effective, finding.reached, finding.expected) == ("fused", 4, 4)


def apart(fused: Any, x: Any) -> Any:
    """What a fused matrix computes, in a product for each part."""
    whole = fused.whole.weight
    whole = whole if type(whole) is torch.nn.Parameter else whole.dequantize()
    first, *rest = (torch.nn.functional.linear(x, part) for part in whole.split(fused.sizes))
    fused.later[:] = [(x, part) for part in reversed(rest)]
    return first


def test_fused_text_is_the_separate_one(workers: dict[str, Any]) -> None:  # noqa: F811
    texts = []
    for choice in ("separate", "fused"):
        _, worker = run(workers, "pocket", length=40, projections=choice)
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


def test_a_fused_matrix_that_no_pass_multiplied_with_was_not_reached() -> None:
    model = build("llama")
    fuse(model)
    silent = Trace(Counter({"aten::mm": 99}), Counter(), Counter(), 3)
    finding = find("projections", Observation(model, None, PLAN, lambda: silent))
    assert (finding.effective, finding.reached, finding.expected) == ("fused", 0, 8 * 3)
    assert "packed" not in finding.proof


class PackedParameter(torch.nn.Parameter):  # type: ignore[misc]
    """Of another class, as packed weights are."""


def pack(model: Any) -> int:
    fused = [module.whole for module in model.modules() if type(module).__name__ == "Fused"]
    for whole in fused:
        whole.weight = PackedParameter(whole.weight.detach())
    return len(fused)


def test_packed_matrices_whose_products_show_no_shape_are_counted_in_the_model() -> None:
    model = build("llama")
    fuse(model)
    assert pack(model) == 8
    silent = Trace(Counter({"aten::mm": 99}), Counter(), Counter(), 3)
    finding = find("projections", Observation(model, None, PLAN, lambda: silent))
    assert (finding.reached, finding.expected) == (8, 8) and "do not show their shapes" in finding.proof
    shown = traced(model)
    assert (shown.reached, shown.expected) == (8, 8) and "do not show their shapes" not in shown.proof


@pytest.mark.parametrize(("products", "reached"), [(0, None), (8, 8), (5, 5)])
def test_where_steps_are_hidden_the_products_of_the_prompt_count(products: int, reached: int | None) -> None:
    model = build("llama")
    fuse(model)
    rows = model.model.layers[0].self_attn.q_proj.whole.out_features
    calls: Counter[ShapedCall] = Counter({("aten::mm", ((5, 32), (32, rows))): products} if products else {})
    hidden = Trace(Counter(), Counter(), Counter({"cudaGraphLaunch": 3}), 1, shapes=calls)
    finding = find("projections", Observation(model, None, PLAN, lambda: hidden))
    assert (finding.effective, finding.reached, finding.expected) == ("fused", reached, None if reached is None else 8)
    assert finding.proof.endswith("; decode steps ran in replayed CUDA graphs")
