"""No proof is satisfied by nothing."""

import pytest
from transformers import DynamicCache

from tests.support.tiny_models import tiny
from tokendyno.backend.evidence import Evidence
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import Optimization, all_axes
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find_all


@pytest.mark.parametrize("axis", all_axes(), ids=lambda axis: axis.name)
def test_no_proof_is_satisfied_where_nothing_ran(axis: Optimization) -> None:
    """A tiny model in float32 that was loaded and never called, an empty trace, and no counts: float32 is told by the
    loaded model alone."""
    observation = Observation(tiny("llama"), DynamicCache(), Plan(LoadPlan(ModelSource("random"))))
    (finding,) = (finding for finding in find_all(observation) if finding.axis == axis.name)
    rows = {choice.name: Evidence(choice.name, choice.name, finding, axis.off) for choice in axis.choices}
    green = {(axis.name, name) for name, row in rows.items() if row.status == "verified"}
    assert green <= {("dtype", "float32")}, finding
