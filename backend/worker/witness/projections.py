"""Told by the matrices of the loaded model: a fused one stands in the place of those that share its input."""

from torch.nn import Linear

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.projections import shared_inputs
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Counts the groups of matrices in the model, and those that are one, which the model's code cannot pass by."""
    fused = sum(type(module).__name__ == "Fused" for module in observation.model.modules())
    groups = fused + shared_inputs(observation.model, Linear)
    if not groups and observation.plan.load.projections == "fused":
        reason = "the model has no matrices with an input in common that are named like those of Llama or BERT"
        return Finding("projections", "fused", reason, outcome="not_applicable")
    if not fused:
        return Finding("projections", "separate", f"{groups} groups of matrices share an input; none is fused")
    return Finding("projections", "fused", f"{fused} of {groups} groups of matrices are one matrix each", fused, groups)
