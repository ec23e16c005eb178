"""Where accelerate puts the layers with `device_map="auto"`: the facts of what one GPU then holds, on which every other
prediction works unchanged.

The rules are those of transformers 5.22 (integrations/accelerate.py, `get_balanced_memory`) and accelerate 1.15
(utils/modeling.py, `infer_auto_device_map`), for GPUs with more free memory than their share; tests compare with them.
Blocks are filled in one after the other. Layers count as equally large.
"""

import itertools
from dataclasses import replace
from typing import Literal, NamedTuple

from tokendyno.backend.models import Matrix, ModelFacts
from tokendyno.backend.predict.weights import itemsize, weight_bytes

SLACK = 1.25
"""Of the largest block, by which every GPU but the last may hold more than its share (`get_balanced_memory`)."""

Place = Literal["embedding", "layer", "norm", "head"]


class Block(NamedTuple):
    """What is never divided. The buffers of rotary positions come with the final norm."""

    place: Place
    size_bytes: int


def placed(facts: ModelFacts, dtype: str, devices: int) -> list[list[Block]]:
    """The blocks of each GPU, in the order of the model."""
    blocks = _blocks(facts, dtype)
    most = sum(one.size_bytes for one in blocks) // devices + int(SLACK * max(one.size_bytes for one in blocks))
    found: list[list[Block]] = [[] for _ in range(devices)]
    sizes = [block.size_bytes for block in blocks]
    to_come = [*itertools.accumulate(reversed(sizes[1:]), max, initial=0)][::-1]  # the largest block after each
    at = used = 0
    for block, largest in zip(blocks, to_come, strict=True):
        # the first GPU keeps room for the largest block to come, in case it were offloaded
        if used + block.size_bytes > most - (largest if at == 0 else 0):
            at, used = at + 1, 0  # never past the last: the others hold so much more than their share
        found[at].append(block)
        used += block.size_bytes
    return found


def layers_by_device(facts: ModelFacts, dtype: str, devices: int) -> tuple[int, ...]:
    """How many layers each GPU holds."""
    return tuple(sum(one.place == "layer" for one in blocks) for blocks in placed(facts, dtype, devices))


def share(facts: ModelFacts, dtype: str, devices: int, index: int) -> ModelFacts:
    """The model as that GPU holds it. The vocabulary stays whole: logits go back to the first one."""
    counts = layers_by_device(facts, dtype, devices)
    first, layers = sum(counts[:index]), counts[index]
    places = {one.place for one in placed(facts, dtype, devices)[index]}
    matrices = tuple(_part(matrix, layers, facts.layers, places) for matrix in facts.matrices)
    outside = sum(m.elements for m in facts.matrices if m.kind in ("embedding", "head"))
    inside = (facts.parameters - outside - facts.hidden) // facts.layers
    parameters = layers * inside + sum(m.elements for m in matrices if m.kind in ("embedding", "head"))
    last = "norm" in places
    return replace(
        facts,
        layers=layers,
        layer_kinds=facts.layer_kinds[first : first + layers],
        matrices=matrices,
        parameters=parameters + (facts.hidden if last else 0),
        buffer_bytes=facts.buffer_bytes if last else 0,
        buffer_elements=facts.buffer_elements if last else 0,
        counted_cache=tuple(replace(one, count=one.count * layers // facts.layers) for one in facts.counted_cache),
    )


def _blocks(facts: ModelFacts, dtype: str) -> list[Block]:
    """A tied head is the embedding."""
    size = itemsize(facts, dtype)
    embeddings = [Block("embedding", m.elements * size) for m in facts.matrices if m.kind == "embedding"]
    heads = [Block("head", m.elements * size) for m in facts.matrices if m.kind == "head"]
    norm = Block("norm", facts.hidden * size + facts.buffer_bytes + facts.buffer_elements * size)
    rest = weight_bytes(facts, dtype) - sum(one.size_bytes for one in (*embeddings, *heads, norm))
    return [*embeddings, *[Block("layer", rest // facts.layers)] * facts.layers, norm, *heads]


def _part(matrix: Matrix, layers: int, of_layers: int, places: set[Place]) -> Matrix:
    match matrix.kind:
        case "embedding" | "head":
            return matrix if matrix.kind in places else replace(matrix, count=0)
        case _:
            return replace(matrix, count=matrix.count * layers // of_layers)
