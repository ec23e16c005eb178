"""Told by the products of the run's own steps: one for each group of matrices that share an input."""

from collections import Counter
from typing import Any

from torch.nn import Embedding, Linear

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.projections import shared_inputs, text_modules
from tokendyno.backend.worker.prove.observation import Observation, coverage, hidden_by, prompt_passes, traced_passes
from tokendyno.backend.worker.prove.profile import weight_of
from tokendyno.backend.worker.prove.tensor_bytes import local_part


def find(observation: Observation) -> Finding:
    """Counts the groups of matrices in the model, and in the trace the products with a fused one."""
    fused = [module.whole for module in observation.model.modules() if type(module).__name__ == "Fused"]
    groups = len(fused) + shared_inputs(observation.model, Linear)
    if not groups and observation.plan.load.projections == "fused":
        reason = "the model has no matrices with an input in common that are named like those of Llama or BERT"
        return Finding("projections", "fused", reason, outcome="not_applicable")
    if not fused:
        return Finding("projections", "separate", f"{groups} groups of matrices share an input; none is fused")
    seen = products(observation, fused)
    packed = any(type(matrix.weight).__name__ != "Parameter" for matrix in fused)
    unseen = packed and not seen
    reached, expected = (len(fused), groups) if unseen else coverage(observation, seen, groups)
    proof = f"{len(fused)} of {groups} groups of matrices are one matrix each; "
    proof += f"{seen} products with such a matrix in {observation.trace().steps} passes"
    if unseen:
        proof += "; packed matrices are multiplied by operators that do not show their shapes"
    if hidden := hidden_by(observation):
        proof += f"; decode steps ran {hidden}"
    return Finding("projections", "fused", proof, reached, expected)


def products(observation: Observation, matrices: list[Any]) -> int:
    """Products in the trace with these fused matrices: by rows and columns, without products with other matrices of the
    same size."""
    trace = observation.trace()
    fused_ids = {id(matrix) for matrix in matrices}
    sizes = {_size(matrix) for matrix in matrices}
    others = [module for _, module in text_modules(observation.model)]
    if observation.model.can_generate():
        others.append(observation.model.get_output_embeddings())
    passes = traced_passes(observation)
    visible = prompt_passes(observation) if hidden_by(observation) else passes  # but kernels replace no routers
    equal = sum(
        visible if isinstance(module, Linear) else passes
        for module in others
        if getattr(getattr(module, "weight", None), "ndim", 0) == 2
        and not isinstance(module, Embedding)
        and id(module) not in fused_ids
        and _size(module) in sizes
    )
    by_operator: Counter[str] = Counter()
    for (name, shapes), n in trace.shapes.items():
        weight = weight_of(name, shapes)
        if (weight if name == "aten::linear" else weight[::-1]) in sizes:  # a product takes it transposed
            by_operator[name] += n
    return max(0, max(by_operator.values(), default=0) - equal)


def _size(matrix: Any) -> tuple[int, ...]:
    """(rows, columns): of a linear layer by its attributes, since packed weights have other shapes."""
    if hasattr(matrix, "in_features"):
        return matrix.out_features, matrix.in_features
    return tuple(local_part(matrix.weight).shape)
