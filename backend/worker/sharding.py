"""Splits a model without memory as a run would: `python -m tokendyno.backend.worker.sharding` reads a `ShardRequest` as
JSON from standard input and writes `ShardRow`s to standard output. torch's fake process group has one rank, the first,
and answers for the others."""

import os
import re
import sys

import msgspec

from tokendyno.backend.fit.sharding import ShardRequest, ShardRow
from tokendyno.backend.worker.process import keep_events_apart


def rows(request: ShardRequest) -> list[ShardRow]:
    """The parameters of the first rank, those that differ only in the number of their layer together."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism, resolve_parallel_plans

    from tokendyno.backend.worker.load.parallel import distributed_config
    from tokendyno.backend.worker.load.random_weights import empty_model
    from tokendyno.backend.worker.prove.tensor_bytes import local_part

    model = empty_model(request.config_json, request.dtype, None)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    config = distributed_config(model.config.model_type, request.tensor, request.expert)
    plans = [plan for plan in resolve_parallel_plans(model, config) if plan]
    if not plans:
        raise ValueError(f"it has no parallel plan for {model.config.model_type}.")
    dist.init_process_group("fake", rank=0, world_size=request.tensor, store=FakeStore())
    mesh = init_device_mesh("cpu", (request.tensor,), mesh_dim_names=("tp",))
    for plan in plans:
        apply_tensor_parallelism(model, mesh, plan)
    model.tie_weights()
    groups: dict[tuple[str, str, tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for name, parameter in model.named_parameters():
        local, shape = local_part(parameter), shapes[name]
        part = tuple(local.shape)
        key = re.sub(r"\.\d+\.", ".*.", name), _how(name, part, shape), shape, part
        groups.setdefault(key, []).append(int(local.nbytes))
    return [
        ShardRow(name, len(sizes), how, shape, part, sum(sizes)) for (name, how, shape, part), sizes in groups.items()
    ]


def _how(name: str, part: tuple[int, ...], whole: tuple[int, ...]) -> str:
    """Which part of a parameter a rank has, by the dimension that is smaller in it. Takes both shapes."""
    smaller = [dim for dim, (size, whole_size) in enumerate(zip(part, whole, strict=True)) if size < whole_size]
    if not smaller:
        return "replicated"
    (dim,) = smaller
    if re.search(r"\bexperts\b", name):
        return "whole experts" if len(whole) > 1 and dim == 0 else "part of each expert"
    if "embed" in name or name.startswith("lm_head"):
        return "part of the vocabulary"
    if len(whole) == 1:
        return "with the rows of its matrix" if name.endswith("bias") else "by heads"
    return "column-parallel: some outputs" if dim == 0 else "row-parallel: some inputs"


def main() -> None:
    answers = keep_events_apart()
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=ShardRequest)
    with os.fdopen(answers, "wb") as out:
        out.write(msgspec.json.encode(rows(request)))


if __name__ == "__main__":
    main()
