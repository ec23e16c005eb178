"""Told by the positions that the model has seen, by the slots of its cache, and by the guards of its graphs."""

from typing import Any

from tokendyno.backend.evidence import Finding
from tokendyno.backend.predict.lengths import rounded
from tokendyno.backend.worker.prove.observation import Observation, symbolic_graphs


def find(observation: Observation) -> Finding:
    """Where several choices give the same lengths (a prompt as long as a bucket), the planned one is reported."""
    positions, padding = observation.counts.prompt.positions, observation.counts.prompt.padding
    slots = _static_slots(observation.cache)
    proof = f"the model has seen {positions - padding:,} tokens and {padding:,} padding tokens of the prompt"
    if slots:
        proof += f", and a static cache of {slots:,} slots"
    fitting = [kind for kind in ("exact", "padded", "buckets") if _fits(observation, kind, positions, padding, slots)]
    compiled = observation.counts.graphs.compiled_matrices
    symbolic, graphs = symbolic_graphs(observation.trace()) if compiled else ([], 0)
    if symbolic:
        proof += f"; compiled with symbolic shapes: graph {', '.join(symbolic)}"
    planned = observation.plan.generate.shapes
    if planned == "dynamic" and symbolic and not padding:
        return Finding("shapes", "dynamic", proof, len(symbolic), graphs)
    if len(fitting) > 1 and planned in fitting:
        proof += f" ({', '.join(fitting[:-1])} and {fitting[-1]} are the same here)"
    return Finding("shapes", planned if planned in fitting else next(iter(fitting), "unknown"), proof)


def _fits(observation: Observation, kind: Any, positions: int, padding: int, slots: int) -> bool:
    expected = rounded(kind, positions - padding) if positions else 0
    if observation.cache is None:  # an encoder: limited by its positions
        expected = min(expected, int(getattr(observation.model.config, "max_position_embeddings", expected)))
    return positions == expected and (not slots or rounded(kind, slots) == slots)


def _static_slots(cache: Any) -> int:
    """Slots of a static cache's full-attention layers, 0 where there are none: windows are not rounded."""
    kinds = [(type(layer).__name__, layer) for layer in (cache.layers if cache is not None else ())]
    full = [layer for name, layer in kinds if name.startswith("Static") and "Sliding" not in name]
    return max((int(layer.keys.shape[2]) for layer in full if layer.keys is not None), default=0)
