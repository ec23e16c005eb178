"""Whether what the ranks of a split model hand on is made of each one's own part.

One pass over a few tokens: after a matrix of which each rank has some columns, and after experts, comes the sum of all
parts; a split head is put together of them, and an embedding finds each id with the rank that has its row. The parts
are computed anew from what each of these modules got, and told to all ranks by another way than torch's exchanges.
Files say what numbers the parts are.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import torch
from torch import nn
from torch.distributed.tensor import DTensor, Shard
from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

from backend.counts import RunCounts
from backend.optimizations.tensor_bytes import local_part
from backend.worker.group import Group
from backend.worker.prove.file_numbers import of_the_same_name, same_numbers
from backend.worker.prove.plain_parts import tolerance

TOKENS, PLACES, ROWS = 12, 48, 6
"""Of the text; numbers that are compared of what a module gives; rows of a rank's part of a matrix."""

Kind = Literal["sum", "experts", "rows", "columns"]
"""What a module gives: the sum of all parts, of a matrix or of experts, or each rank's part of it beside the others',
of a matrix with some of the rows, or looked up in some of the rows or columns."""


class _Told(msgspec.Struct):
    """What a rank tells the others.

    parts   of each sum the numbers at the places that all of them look at
    odd     modules that do not give the part that is this rank's own
    shards  parts of matrices that were held against files; other: those with other numbers
    failed  why there is nothing to tell
    """

    parts: dict[str, list[float]] = {}
    odd: list[str] = []
    shards: int = 0
    other: list[str] = []
    failed: str = ""


class _Seen(NamedTuple):
    kind: Kind
    given: tuple[Any, ...]
    more: dict[str, Any]
    output: Any


def held_on_ranks(model: Any, ids: Sequence[int], folder: Path | None, group: Group) -> tuple[RunCounts, str]:
    """What was counted, and "" or why nothing was: an error of one of the ranks. All ranks of the group must call it.

    ids: a text; folder: the files that the model was loaded from, if there are any."""
    seen: dict[str, _Seen] = {}
    try:
        seen = _passed(model, ids)
        mine = _told(model, seen, folder)
    except Exception as error:  # of a pass that no user asked for: the run that it would end is complete
        mine = _Told(failed=f"{type(error).__name__}: {error}"[:300])
    every = [msgspec.msgpack.decode(one, type=_Told) for one in group.exchange(msgspec.msgpack.encode(mine))]
    if failed := next((f"rank {rank}: {one.failed}" for rank, one in enumerate(every) if one.failed), ""):
        return RunCounts(), failed
    odd = {name for name in mine.parts if not _adds_up(name, seen[name], [one.parts for one in every], model)}
    found = group.exchange(msgspec.msgpack.encode(sorted(odd)))
    odd.update(*(msgspec.msgpack.decode(one, type=list[str]) for one in found), *(one.odd for one in every))
    counts = RunCounts(
        joined_modules=float(len(seen)), odd_joined=float(len(odd)),
        held_shards=float(sum(one.shards for one in every)), other_shards=float(sum(len(one.other) for one in every)),
    )  # fmt: skip
    return counts, ""


def _passed(model: Any, ids: Sequence[int]) -> dict[str, _Seen]:
    kinds = {name: kind for name, module in model.named_modules() if (kind := _kind(name, module)) is not None}
    text = torch.tensor([[ids[place % len(ids)] for place in range(TOKENS)]], device=model.device)
    seen: dict[str, _Seen] = {}
    with torch.inference_mode(), torch.compiler.set_stance("force_eager"), _watched(model, kinds, seen):
        model(input_ids=text, use_cache=False)
    return {name: one for name, one in seen.items() if not _keeps_its_part(model.get_submodule(name), one)}


def _keeps_its_part(module: Any, one: _Seen) -> bool:
    """Whether a matrix with some of the rows hands them to one that takes them as they are."""
    return (
        one.kind == "rows"
        and not isinstance(module, nn.Embedding)
        and len(local_part(module.weight)) == one.output.shape[-1]
    )


def _kind(name: str, module: Any) -> Kind | None:
    known: dict[str, Kind] = {"SummedLinear": "sum", "SummedEmbedding": "rows", "GatheredLinear": "rows"}
    if type(module).__name__ in known:
        return known[type(module).__name__]
    weight = module._parameters.get("weight")
    stacks = [one for one in module._parameters.values() if isinstance(one, DTensor) and one.ndim == 3]
    if stacks and any(isinstance(one, Shard) for stack in stacks for one in stack.placements):
        return "experts" if "expert" in name else None
    if not isinstance(weight, DTensor) or weight.ndim != 2 or not isinstance(weight.placements[-1], Shard):
        return None
    first = weight.placements[-1].dim in (0, -2)
    if isinstance(module, nn.Embedding):
        return "rows" if first else "columns"
    return "rows" if first else "sum"


@contextmanager
def _watched(model: Any, kinds: dict[str, Kind], seen: dict[str, _Seen]) -> Iterator[None]:
    """Notes what these modules get, before what transformers does with it, and give, after that."""
    given: dict[str, tuple[Any, Any]] = {}

    def before(name: str, args: Any, kwargs: Any) -> None:
        given[name] = tuple(map(_copied, args)), {key: _copied(one) for key, one in kwargs.items()}

    def after(name: str, output: Any) -> None:
        output = _copied(output[0] if isinstance(output, tuple) else output)
        seen[name] = _Seen(kinds[name], *given.pop(name), output)

    with ExitStack() as hooks:
        for name in kinds:
            module = model.get_submodule(name)
            hooks.callback(
                module.register_forward_pre_hook(
                    lambda _, args, kwargs, name=name: before(name, args, kwargs), with_kwargs=True
                ).remove
            )
            hooks.callback(module.register_forward_hook(lambda _, args, output, name=name: after(name, output)).remove)
        yield


def _copied(one: Any) -> Any:
    """This rank's part. What is added up is so in place."""
    return local_part(one).clone() if isinstance(one, torch.Tensor) else one


def _told(model: Any, seen: dict[str, _Seen], folder: Path | None) -> _Told:
    told = _Told()
    with torch.inference_mode():
        for name, one in seen.items():
            module = model.get_submodule(name)
            if one.kind in ("sum", "experts"):
                told.parts[name] = _part(name, module, one)
            elif not _gives_its_own(module, one, tolerance(model)):
                told.odd.append(name)
    for name, same in _held_to_files(folder, model) if folder is not None else ():
        told.shards += 1
        if not same:
            told.other.append(name)
    told.other += [name for name in _empty(model) if name not in told.other]
    return told


def _empty(model: Any) -> list[str]:
    """Parts of matrices without a number but zero."""
    parts = {name: local_part(one) for name, one in model.named_parameters() if isinstance(one, DTensor)}
    return [name for name, one in parts.items() if one.ndim > 1 and not name.endswith("bias") and not one.any()]


def _places(name: str, output: Any) -> tuple[list[int], list[int]]:
    """Tokens and numbers of what a module gives (.., N) that are compared, the same on all ranks."""
    chance, numbers = random.Random(name), output.shape[-1]
    tokens = output.numel() // numbers
    return [chance.randrange(tokens) for _ in range(PLACES)], [chance.randrange(numbers) for _ in range(PLACES)]


def _part(name: str, module: Any, one: _Seen) -> list[float]:
    """What this rank adds at these places."""
    tokens, numbers = _places(name, one.output)
    if one.kind == "experts":
        with _local(module):
            out = type(module).forward(module, *one.given, **one.more)
        out = out[0] if isinstance(out, tuple) else out
        part = out.reshape(-1, out.shape[-1])[tokens, numbers].float()
    else:
        x, weight = one.given[0].reshape(-1, one.given[0].shape[-1])[tokens].float(), local_part(module.weight)
        if x.shape[-1] != weight.shape[1]:  # it gets all columns and takes its own
            _, left = _begin(module.weight, weight, x.shape[-1])
            x = x[:, left : left + weight.shape[1]]
        part = (x * weight[numbers].float()).sum(-1)
    return [float(number) for number in part]


@contextmanager
def _local(module: Any) -> Iterator[None]:
    """Its own code sees this rank's parts, and does not add them up."""
    whole = dict(module._parameters)
    for name, one in whole.items():
        if isinstance(one, DTensor):
            module._parameters[name] = nn.Parameter(one.to_local(), requires_grad=False)
    try:
        yield
    finally:
        module._parameters.update(whole)


def _adds_up(name: str, one: _Seen, every: Sequence[dict[str, list[float]]], model: Any) -> bool:
    if any(name not in parts for parts in every):
        return False
    tokens, numbers = _places(name, one.output)
    output = one.output.reshape(-1, one.output.shape[-1])[tokens, numbers].float().cpu()
    bias = model.get_submodule(name)._parameters.get("bias") if one.kind == "sum" else None
    if bias is not None:
        output = output - local_part(bias)[numbers].float().cpu()
    wanted = torch.tensor([parts[name] for parts in every]).sum(0)
    return bool((output - wanted).norm() <= tolerance(model) * wanted.norm())


def _gives_its_own(module: Any, one: _Seen, share: float) -> bool:
    """Whether what it gives has this rank's part in its place."""
    weight = local_part(module.weight)
    if isinstance(module, nn.Embedding):
        ids = one.given[0].reshape(-1)
        output = one.output.reshape(len(ids), -1)
        rows, columns = _begin(module.weight, weight, output.shape[1])
        here = (ids >= rows) & (ids < rows + len(weight))
        wanted = nn.functional.embedding(ids[here] - rows, weight).float() * float(getattr(module, "embed_scale", 1))
        found = output[here, columns : columns + weight.shape[1]].float()
        return bool((found - wanted).norm() <= share * wanted.norm())
    x = one.given[0]
    rows, _ = _begin(module.weight, weight, x.shape[-1])
    wanted = nn.functional.linear(x.float(), weight.float())
    bias = module._parameters.get("bias")
    if bias is not None:
        wanted = wanted + local_part(bias).float()
    found = one.output[..., rows : rows + len(weight)].float()
    return found.shape == wanted.shape and bool((found - wanted).norm() <= share * wanted.norm())


def _begin(parameter: Any, part: Any, columns: int) -> tuple[int, int]:
    """The row and the column of the whole matrix, of as many columns, at which this rank's part begins."""
    if isinstance(parameter, DTensor):
        _, place = compute_local_shape_and_global_offset(parameter.shape, parameter.device_mesh, parameter.placements)
        return place[0], place[1]
    rank = torch.distributed.get_rank()
    return (rank * part.shape[0], 0) if part.shape[1] == columns else (0, rank * part.shape[1])


def _held_to_files(folder: Path, model: Any) -> Iterator[tuple[str, bool]]:
    """Names of tensors that have the same name in files, and whether this rank's part has the same numbers."""
    tensors = dict(model.named_parameters(remove_duplicate=False))
    for name, own, stored in of_the_same_name(folder, model, tensors):
        shape = list(stored.get_shape())
        if not 1 <= len(shape) <= 2:
            continue
        if len(shape) == 2 and name.endswith("bias") and torch.distributed.get_rank():
            continue  # of experts, which the first rank adds alone
        part = local_part(own).detach()
        if part.ndim != len(shape) or not part.is_floating_point() or part.element_size() == 1 or not part.numel():
            continue
        if part.ndim == 1:
            if list(part.shape) == shape:
                yield name, same_numbers(stored[:], part)
            continue
        top, left = (0, 0) if list(part.shape) == shape else _begin(own, part, shape[1])
        chance = random.Random(name)
        rows = [0, len(part) - 1, *(chance.randrange(len(part)) for _ in range(ROWS - 2))]
        yield (
            name,
            all(
                same_numbers(stored[top + row : top + row + 1, left : left + part.shape[1]], part[row : row + 1])
                for row in rows
            ),
        )
