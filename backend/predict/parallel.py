"""What one of several GPUs holds: the model as its rank sees it, so that every other prediction works on it unchanged.

The plans are those of transformers 5.22 (`distributed/`, `base_model_tp_plan`, `base_model_ep_plan`). A plan splits the
matrices, with the biases of those that are split by rows, and the embedding by words, also where it is the head; norms,
routers and rotary frequencies are on every GPU. Where a side does not divide, torch gives the first ranks the larger
parts: the first GPU is the one that is foretold. Held against transformers' own sharding, and against processes on a
CPU that load, generate and count; unrun on several GPUs. What NCCL keeps for itself is not counted.
"""

from dataclasses import replace

from backend.errors import InputError
from backend.models import Matrix, ModelFacts
from backend.models.families import FAMILIES, Parallel
from backend.predict.weights import as_held

MAX_GPUS = 64
"""More than the GPUs of one host; a number beyond is a slip."""


def plan_of(facts: ModelFacts) -> Parallel:
    """How transformers shares this architecture; "none" too for one that is not in the table."""
    family = FAMILIES.get(facts.architecture)
    return family.parallel if family else "none"


def sizes(facts: ModelFacts, gpus: int) -> tuple[int, int]:
    """(tensor_parallel, expert_parallel) to use so many GPUs with. gpt-oss is shared by its experts too: tensor
    parallelism alone would copy nearly all of it to each GPU."""
    return gpus, gpus if plan_of(facts) == "experts" else 1


def check_sizes(facts: ModelFacts, tensor: int, expert: int = 1) -> None:
    """InputError for what transformers refuses or gets wrong, with the numbers of GPUs that would work."""
    for size in (tensor, expert):
        if not 1 <= size <= MAX_GPUS:
            raise InputError(f"The number of GPUs is {size:,}; give a whole number from 1 to {MAX_GPUS}.")
    problem = _problem(facts, tensor, expert)
    if problem:
        alone = expert == 1
        works = [n for n in range(1, MAX_GPUS + 1) if not _problem(facts, n, 1 if alone else n)]
        others = f"one of {', '.join(map(str, works))}" if works != [1] else "one GPU"
        raise InputError(f"{facts.label} cannot be split over {max(tensor, expert)} GPUs: {problem} Take {others}.")


def _problem(facts: ModelFacts, tensor: int, expert: int) -> str:
    """Why not, in a sentence; "" where it works."""
    plan = plan_of(facts)
    if tensor == expert == 1:
        return ""
    if plan == "none":
        return f"transformers has no parallel plan for {facts.architecture}."
    if plan == "heads" and facts.kv_heads % tensor:
        return f"its {facts.kv_heads} key/value head{'s' * (facts.kv_heads > 1)} cannot be shared evenly."
    if expert > 1 and not facts.experts:
        return "it has no experts to share out."
    if expert > 1 and facts.experts % expert:
        return f"its {facts.experts} experts cannot be shared evenly."
    if expert not in (1, tensor):
        return "expert parallelism is foretold only over as many GPUs as tensor parallelism."
    return ""


def refusal(facts: ModelFacts, quantization: str, tensor: int) -> str:
    """Why weights that are packed like this cannot be shared; "" where they can, or where nobody has tried."""
    if tensor == 1:
        return ""
    held = as_held(facts, quantization)
    if held == "mxfp4":  # `Mxfp4GptOssMLP` calls its experts with arguments that `EpDispatchExpertsParallel` has not
        return "Packed MXFP4 experts fail at the first token when they are shared out."
    if held == "none" and facts.quantization:
        return f"How a checkpoint in {facts.quantization} is split is not known here."
    if held.startswith("bnb") and plan_of(facts) != "experts":  # a part has no `quant_state`, no `CB`
        return "Weights packed by bitsandbytes fail at the first token when they are split."
    return ""


def share(facts: ModelFacts, tensor: int = 1, expert: int = 1) -> ModelFacts:
    """The model as the first of these GPUs holds it and works on it; `facts` itself for one.

    Counts of experts stay whole, for they say how likely one is at work; `matrices` has those that lie here.
    """
    check_sizes(facts, tensor, expert)
    if tensor == 1:
        return facts
    plan = plan_of(facts)
    mine = tuple(_share(plan, matrix, tensor, expert) for matrix in facts.matrices)
    heads = tensor if plan == "heads" else 1
    whole_inside = plan == "experts" or expert > 1 or FAMILIES[facts.architecture].joined
    return replace(
        facts, heads=facts.heads // heads, kv_heads=facts.kv_heads // heads,
        intermediate=_part(facts.intermediate, 1 if whole_inside else tensor), matrices=mine,
        parameters=facts.parameters - sum(map(_numbers, facts.matrices)) + sum(map(_numbers, mine)),
    )  # fmt: skip


def _share(plan: Parallel, matrix: Matrix, tensor: int, expert: int) -> Matrix:
    """The first rank's part of these matrices."""
    if matrix.kind == "expert" and expert > 1:
        return replace(matrix, count=matrix.count // expert)
    if plan == "experts" and matrix.kind != "head":
        return matrix
    if matrix.side == "columns":
        return replace(matrix, columns=_part(matrix.columns, tensor))
    halves = 2 if matrix.kind == "expert" else 1  # gate and up lie below each other, and each is split
    return replace(matrix, rows=halves * _part(matrix.rows // halves, tensor))


def _part(size: int, ranks: int) -> int:
    """The first rank's: torch's chunks are as large as the first, but for the last ones."""
    return -(-size // ranks)


def _numbers(matrix: Matrix) -> int:
    """With biases: those of matrices that are split by columns are whole on every rank."""
    return matrix.numbers + matrix.count * matrix.rows * matrix.bias
