"""Told by the products of the run's own steps: one for each group of matrices that share an input."""

from collections import Counter
from typing import Any

from torch.nn import Embedding, Linear

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.projections import GROUPS, shared_inputs, text_modules
from tokendyno.backend.worker.prove.observation import Observation, coverage, hidden_by, prompt_passes, traced_passes
from tokendyno.backend.worker.prove.profile import weight_of
from tokendyno.backend.worker.prove.tensor_bytes import local_part


def find(observation: Observation) -> Finding:
    """Counts the groups of matrices in the model, and in the trace the products with a fused one."""
    fused = [module.whole for module in observation.model.modules() if type(module).__name__ == "Fused"]
    groups = len(fused) + shared_inputs(observation.model, Linear)
    if not groups and observation.plan.load.projections == "fused":
        none = "the model has no matrices with an input in common that are named like those of Llama or BERT"
        return Finding("projections", "fused", none, outcome="not_applicable")
    if not fused:
        return Finding("projections", "separate", f"{groups} groups of matrices share an input; none is fused")
    seen = products(observation, fused)
    packed = any(type(matrix.weight).__name__ != "Parameter" for matrix in fused)
    unseen = packed and not seen
    reached, expected = (len(fused), groups) if unseen else coverage(observation, seen, groups)
    proof = f"{len(fused)} of {groups} groups of matrices are one matrix each; "
    proof += f"{seen} products with such a matrix in {observation.trace().steps} passes"
    if apart := products(observation, fused, parts=True):  # what was multiplied in both ways proves neither
        expected = expected or groups
        reached = max(0, min(reached or 0, expected - -(-apart // max(map(len, GROUPS)))))
        proof += f", {apart} with a part of one"
    if unseen:
        proof += "; packed matrices are multiplied by operators that do not show their shapes"
    if hidden := hidden_by(observation):
        proof += f"; decode steps ran {hidden}"
    return Finding("projections", "fused", proof, reached, expected)


def products(observation: Observation, matrices: list[Any], parts: bool = False) -> int:
    """Products with these matrices in the trace, or with the `parts` that were joined in each, told by rows and
    columns; those of equal matrices beside them are taken off. Of parts that are as large as an expert's matrix nothing
    is told: how many products a pass makes with experts depends on the text."""
    trace = observation.trace()
    ours = {id(matrix) for matrix in matrices}
    sizes = {_size(matrix) for matrix in matrices}
    if parts:
        joined = [module for module in observation.model.modules() if type(module).__name__ == "Fused"]
        apart: set[tuple[int, ...]] = {(rows, one.whole.in_features) for one in joined for rows in one.sizes}
        sizes = apart - sizes - _experts(observation)
    beside = [module for _, module in text_modules(observation.model)]
    if observation.model.can_generate():
        beside.append(observation.model.get_output_embeddings())
    passes = traced_passes(observation)
    shown = (
        prompt_passes(observation) if hidden_by(observation) else passes
    )  # kernels replace linear layers, no routers
    equal = sum(
        shown if isinstance(module, Linear) else passes
        for module in beside
        if getattr(getattr(module, "weight", None), "ndim", 0) == 2
        and not isinstance(module, Embedding)
        and id(module) not in ours
        and _size(module) in sizes
    )
    by_operator: Counter[str] = Counter()
    for (name, shapes), n in trace.shapes.items():
        weight = weight_of(name, shapes)
        if (weight if name == "aten::linear" else weight[::-1]) in sizes:  # a product takes it transposed
            by_operator[name] += n
    return max(0, max(by_operator.values(), default=0) - equal)


def _experts(observation: Observation) -> set[tuple[int, ...]]:
    """Rows and columns of experts' matrices, which lie in stacks, either way round."""
    stacked = {tuple(one.shape[1:]) for one in observation.model.parameters() if one.ndim == 3}
    return stacked | {shape[::-1] for shape in stacked}


def _size(matrix: Any) -> tuple[int, ...]:
    """Rows and columns, which a weight of packed numbers does not tell; a router of experts has nothing else."""
    if hasattr(matrix, "in_features"):
        return matrix.out_features, matrix.in_features
    return tuple(local_part(matrix.weight).shape)
