"""Several GPUs: the facts of what one of them holds, on which every other prediction works unchanged.

Of tensor and expert parallelism the plans are those of transformers 5.22 (`distributed/`, `base_model_tp_plan`), and
for gpt-oss and for experts that are shared out our own (`backend/worker/load/parallel.py`). A plan splits the matrices
(and the biases of those split by rows) and the embedding along the vocabulary, also where it is tied to the head;
norms, routers and rotary frequencies are replicated. Where a dimension does not divide evenly, torch gives the first
ranks the larger shards, so rank 0 is the one that is predicted. Tested against transformers' own sharding and against
processes on a CPU that load, generate and count; on two H200s weights and caches were as predicted.
"""

import itertools
from dataclasses import replace
from typing import Literal, NamedTuple

from tokendyno.backend.errors import InputError
from tokendyno.backend.models import Matrix, ModelFacts
from tokendyno.backend.models.families import FAMILIES, Parallel
from tokendyno.backend.plan import Exchanges
from tokendyno.backend.predict.quantized import library_of
from tokendyno.backend.predict.weights import effective_quantization, itemsize, weight_bytes
from tokendyno.backend.units import plural

MXFP4_BLOCK = 32
"""Numbers of a row that share a scale in MXFP4: no rank has a part of them."""

MAX_GPUS = 64
"""More than one host has; a larger number is taken for a typing error."""

SIZES = (2, 4, 8)
"""Numbers of devices that an arm can have: those that hosts have."""

NO_CHOICE = "An arm can have 2, 4 or 8 GPUs."
"""What is said where another number of GPUs could share a model."""

ACROSS_RANKS = ("none", "mxfp4", "mxfp4-dequantized")
"""Quantizations with which an arm runs across ranks."""

UNTRIED = "Quantized weights across ranks are untried here."

OWN_PLANS = ("gpt_oss",)
"""Architectures that are split by a plan of our own: by heads, each expert in parts or shared out whole."""


def plan_of(facts: ModelFacts) -> Parallel:
    """How this architecture is split; "none" also for one that is not in the table."""
    if facts.architecture in OWN_PLANS:
        return "heads"
    family = FAMILIES.get(facts.architecture)
    return family.parallel if family else "none"


def group_sizes(facts: ModelFacts, gpus: int) -> tuple[int, int]:
    """(tensor_parallel, expert_parallel) for that many GPUs; packed experts of gpt-oss are shared out whole."""
    return gpus, gpus if facts.architecture in OWN_PLANS else 1


def choice_of(facts: ModelFacts, gpus: int) -> str:
    """The choice of the axis `parallel` that shares this model out over so many GPUs; "" where it has none."""
    kind = "expert" if group_sizes(facts, gpus)[1] > 1 else "tensor"
    return f"{kind}-{gpus}" if gpus in SIZES else ""


def is_modeled(facts: ModelFacts) -> bool:
    """Whether it is known here how this architecture is split; else transformers alone knows."""
    return facts.architecture in FAMILIES


def check_number(gpus: int) -> None:
    """InputError for a number of GPUs that no host has."""
    if not 1 <= gpus <= MAX_GPUS:
        raise InputError(f"The number of GPUs is {gpus:,}; give a whole number from 1 to {MAX_GPUS}.")


def check_sizes(facts: ModelFacts, tensor: int, expert: int = 1) -> None:
    """InputError for sizes that transformers refuses or gets wrong, with the numbers of GPUs that work."""
    check_number(tensor)
    check_number(expert)
    problem = unsplittable(facts, tensor, expert)
    if problem:
        sizes = [n for n in range(1, MAX_GPUS + 1) if not unsplittable(facts, n, 1 if expert == 1 else n)]
        advice = f"one of {', '.join(map(str, sizes))}" if sizes != [1] else "one GPU"
        raise InputError(f"{facts.label} cannot be split over {max(tensor, expert)} GPUs: {problem} Take {advice}.")


def unsplittable(facts: ModelFacts, tensor: int, expert: int) -> str:
    """Why these sizes do not work, in a sentence; "" if they do."""
    plan = plan_of(facts)
    if tensor == expert == 1:
        return ""
    if plan == "none":
        if not is_modeled(facts):
            return f"how transformers splits {facts.architecture} is not modeled here."
        return f"transformers has no parallel plan for {facts.architecture}."
    if plan == "heads" and facts.kv_heads % tensor:
        return f"its {plural(facts.kv_heads, 'key/value head')} cannot be split evenly."
    if facts.architecture in OWN_PLANS and expert == 1 and facts.intermediate % tensor:
        return f"its experts' width of {facts.intermediate:,} cannot be split evenly."
    if expert > 1 and not facts.experts:
        return "it has no experts."
    if facts.experts % expert:
        return f"its {facts.experts} experts cannot be split evenly."
    if expert not in (1, tensor):
        return "expert parallelism is only predicted for the same number of GPUs as tensor parallelism."
    return ""


def refusal(facts: ModelFacts, quantization: str, tensor: int, expert: int = 1) -> str:
    """Why weights in this quantization cannot be split, in a sentence; "" if they can, or if it is untried."""
    if tensor == 1:
        return ""
    stored = effective_quantization(facts, quantization)
    if stored == "mxfp4":
        blocks, rest = divmod(facts.intermediate, MXFP4_BLOCK)
        if expert == 1 and (rest or blocks % tensor):
            return (
                f"The experts' width of {facts.intermediate:,} is {blocks} blocks of MXFP4, which cannot be split "
                f"evenly over {tensor} ranks: whole experts can be shared out, parts cannot."
            )
        return ""
    if expert == 1 and "mxfp4" in (facts.quantization, stored.removesuffix("-dequantized")):
        # its conversion knows whole experts only
        return "An MXFP4 checkpoint is dequantized expert by expert: whole experts can be shared out, parts cannot."
    if stored == "none" and facts.quantization:
        return f"How a checkpoint in {facts.quantization} is split is not known here."
    if library_of(stored) == "bitsandbytes":  # a shard lacks `quant_state` and `CB`
        return "Weights quantized with bitsandbytes fail at the first token when they are split over GPUs."
    return ""


def unrunnable(facts: ModelFacts, quantization: str, tensor: int, expert: int) -> str:
    """Why no arm runs in this quantization over so many ranks: it cannot be split, or is untried; "" if one does."""
    untried = UNTRIED if tensor > 1 and quantization not in ACROSS_RANKS else ""
    return refusal(facts, quantization, tensor, expert) or untried


def shard(facts: ModelFacts, tensor: int = 1, expert: int = 1) -> ModelFacts:
    """The model as rank 0 holds it; `facts` itself for one GPU. `experts` stays the total."""
    check_sizes(facts, tensor, expert)
    if tensor == 1:
        return facts
    plan = plan_of(facts)
    local = tuple(_shard(matrix, tensor, expert) for matrix in facts.matrices)
    heads = tensor if plan == "heads" else 1
    sinks = facts.layers * (facts.heads - facts.heads // heads) if facts.sinks else 0
    full_width = expert > 1 or FAMILIES[facts.architecture].joined
    return replace(
        facts,
        heads=facts.heads // heads,
        kv_heads=facts.kv_heads // heads,
        intermediate=_chunk(facts.intermediate, 1 if full_width else tensor),
        matrices=local,
        parameters=facts.parameters - sum(map(_elements, facts.matrices)) + sum(map(_elements, local)) - sinks,
    )


def sharded(facts: ModelFacts, tensor: int, expert: int) -> int:
    """How many of the model's matrices are split or shared out; an expert's count one by one."""
    check_sizes(facts, tensor, expert)
    return sum(matrix.count for matrix in facts.matrices if _shard(matrix, tensor, expert) != matrix)


def exchanges(facts: ModelFacts, tensor: int) -> Exchanges:
    """Exchanges between the ranks in a pass: the embedding and the parts of each layer's attention and feed-forward are
    added up, the logits are put together.

    Where heads do not stay split, each projection of attention is put together (three, or one where they are joined,
    and then so are gate and up). Whether experts are split or shared out makes no difference. Counted in processes by
    tests/backend/predict.
    """
    if tensor == 1:
        return Exchanges()
    gathered = 0
    if plan_of(facts) == "gathered":
        gathered = facts.layers * (2 if FAMILIES[facts.architecture].joined else 3)
    return Exchanges(2 * facts.layers + 1, gathered + 1)


def _shard(matrix: Matrix, tensor: int, expert: int) -> Matrix:
    """Rank 0's shard of these matrices."""
    if matrix.kind == "expert" and expert > 1:
        return replace(matrix, count=matrix.count // expert)
    if matrix.side == "columns":
        return replace(matrix, columns=_chunk(matrix.columns, tensor))
    halves = 2 if matrix.kind == "expert" else 1  # gate and up are stacked, and each is split
    return replace(matrix, rows=halves * _chunk(matrix.rows // halves, tensor))


def _chunk(size: int, ranks: int) -> int:
    """Rank 0's share: torch's chunks are equal, except for smaller last ones."""
    return -(-size // ranks)


def _elements(matrix: Matrix) -> int:
    """Elements with biases; those of matrices split by columns are replicated."""
    return matrix.elements + matrix.count * matrix.rows * matrix.bias


# --- where accelerate puts the layers with `device_map="auto"` ------------------------------------------

# The rules are those of transformers 5.22 (integrations/accelerate.py, `get_balanced_memory`) and accelerate 1.15
# (utils/modeling.py, `infer_auto_device_map`), for GPUs with more free memory than their share; tests compare with
# them. Blocks are filled in one after the other. Layers count as equally large.

SLACK = 1.25
"""By how many times the largest block every GPU but the last may hold more than its share (`get_balanced_memory`)."""

Place = Literal["embedding", "layer", "norm", "head"]


class Block(NamedTuple):
    """What is never divided. The buffers of rotary positions come with the final norm."""

    place: Place
    size_bytes: int


def placed(facts: ModelFacts, dtype: str, devices: int) -> list[list[Block]]:
    """The blocks of each GPU, in the order of the model."""
    blocks = _blocks(facts, dtype)
    sizes = [block.size_bytes for block in blocks]
    most = sum(sizes) // devices + int(SLACK * max(sizes))
    shares: list[list[Block]] = [[] for _ in range(devices)]
    to_come = [*itertools.accumulate(reversed(sizes[1:]), max, initial=0)][::-1]  # the largest block after each
    at = used = 0
    for block, largest in zip(blocks, to_come, strict=True):
        # the first GPU keeps room for the largest block to come, in case it were offloaded
        if used + block.size_bytes > most - (largest if at == 0 else 0):
            at, used = at + 1, 0  # never past the last: the GPUs before it hold so much more than their share
        shares[at].append(block)
        used += block.size_bytes
    return shares


def layers_by_device(facts: ModelFacts, dtype: str, devices: int) -> tuple[int, ...]:
    """How many layers each GPU holds."""
    return tuple(sum(block.place == "layer" for block in blocks) for blocks in placed(facts, dtype, devices))


def spread(facts: ModelFacts, dtype: str, devices: int) -> list[ModelFacts]:
    """The model as each GPU holds it. The vocabulary stays whole: logits go back to the first one."""
    counts = layers_by_device(facts, dtype, devices)
    return [
        _on_one(facts, sum(counts[:at]), counts[at], {block.place for block in blocks})
        for at, blocks in enumerate(placed(facts, dtype, devices))
    ]


def _on_one(facts: ModelFacts, first: int, layers: int, places: set[Place]) -> ModelFacts:
    """The model with `layers` layers from the `first` one on, and what else is in these places."""
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
        counted_cache=tuple(replace(kind, count=kind.count * layers // facts.layers) for kind in facts.counted_cache),
    )


def _blocks(facts: ModelFacts, dtype: str) -> list[Block]:
    """The model's blocks in their order; a tied head is the embedding."""
    size = itemsize(facts, dtype)
    embeddings = [Block("embedding", m.elements * size) for m in facts.matrices if m.kind == "embedding"]
    heads = [Block("head", m.elements * size) for m in facts.matrices if m.kind == "head"]
    norm = Block("norm", facts.hidden * size + facts.buffer_bytes + facts.buffer_elements * size)
    rest = weight_bytes(facts, dtype) - sum(block.size_bytes for block in (*embeddings, *heads, norm))
    return [*embeddings, *[Block("layer", rest // facts.layers)] * facts.layers, norm, *heads]


def _part(matrix: Matrix, layers: int, of_layers: int, places: set[Place]) -> Matrix:
    if matrix.kind in ("embedding", "head"):
        return matrix if matrix.kind in places else replace(matrix, count=0)
    return replace(matrix, count=matrix.count * layers // of_layers)
