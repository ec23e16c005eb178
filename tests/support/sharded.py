"""What transformers' own sharding leaves to the first of several ranks: models on the meta device, in a group whose
other members do not exist."""

import contextlib
from collections.abc import Iterator
from typing import Any, NamedTuple


class Rank(NamedTuple):
    """Bytes of the first rank's parameters and buffers; the KV heads that `generate` gives it."""

    weights: int
    kv_heads: int


@contextlib.contextmanager
def ranks(count: int) -> Iterator[Any]:
    """A mesh of so many ranks on tensors without memory."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=count, store=FakeStore())
    try:
        yield init_device_mesh("cpu", (count,), mesh_dim_names=("tp",))
    finally:
        dist.destroy_process_group()


def split(model: Any, mesh: Any, experts: bool = False) -> Any:
    """Split a model on the meta device as `from_pretrained` does."""
    from transformers.distributed.tensor_parallel import apply_tensor_parallelism, resolve_parallel_plans

    from tokendyno.backend.worker.load.parallel import distributed_config

    asked = distributed_config(model.config.model_type, mesh.size(), mesh.size() if experts else 1)
    for plan in filter(None, resolve_parallel_plans(model, asked)):
        apply_tensor_parallelism(model, mesh, plan)
    model.tie_weights()
    return model


def first(config: dict[str, Any], mesh: Any, experts: bool, dtype: str = "float32") -> Rank:
    """What the first rank has of that model."""
    import torch
    from torch.distributed.tensor import DTensor
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.distributed.tensor_parallel import get_kv_heads_per_rank

    settings = AutoConfig.for_model(**config)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(settings, dtype=getattr(torch, dtype))
    split(model, mesh, experts)
    parameters = sum((p.to_local() if isinstance(p, DTensor) else p).nbytes for p in model.parameters())
    buffers = sum(tensor.nbytes for name, tensor in model.named_buffers() if not name.endswith("embed_scale"))
    heads = settings.get_text_config().num_key_value_heads
    return Rank(parameters + buffers, get_kv_heads_per_rank(model.tp_plan, heads, mesh.size()))


def materialise(model: Any) -> list[Any]:
    """Give a split model tensors of the surrounding mode; returns those that this rank holds."""
    import torch
    from torch.distributed.tensor import DTensor

    held = dict[int, Any]()  # a tied weight stands in two places
    for module in model.modules():
        for store in (module._parameters, module._buffers):
            for name, old in list(store.items()):
                if old is None:
                    continue
                part = isinstance(old, DTensor)
                if id(old) not in held:
                    own = torch.empty((old.to_local() if part else old).shape, dtype=old.dtype)
                    whole = (
                        own
                        if not part
                        else DTensor.from_local(
                            own, old.device_mesh, old.placements, run_check=False, shape=old.shape, stride=old.stride()
                        )
                    )
                    held[id(old)] = (old, own, torch.nn.Parameter(whole) if store is module._parameters else whole)
                store[name] = held[id(old)][2]
    return [own for _, own, _ in held.values()]
