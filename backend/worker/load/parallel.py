"""Splits a model over ranks as transformers does, with our own plans where it has none, or a slow one.

The expert-parallel plans of transformers 5.22 send tokens to the ranks of their experts. Every layer then waits for the
host, and with torch 2.11 the exchange has no CUDA kernel (`_c10d_functional_autograd::all_to_all_single`). So experts
are shared out in the other way that transformers has (see `configuration_qwen3_moe.py`): each rank computes the tokens
of its own experts, and one all-reduce a layer adds up the parts.

gpt-oss has no tensor-parallel plan. The one here splits attention by heads, sinks included, and every expert along its
inner width.
"""

from typing import Any

import torch
from transformers.distributed import DistributedConfig
from transformers.distributed.parallel_utils import ALL_PARALLEL_STYLES
from transformers.distributed.tensor_parallel import TensorParallelLayer

from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.group import own_group
from tokendyno.backend.worker.patch.shards import make_local


class Split(TensorParallelLayer):  # type: ignore[misc]
    """A parameter split along one dimension. Its module's own code computes with the local part."""

    def __init__(self, dim: int) -> None:
        self.dim = dim

    def shard_param(self, module: Any, param: str, mesh: Any) -> None:
        """`module` is on the meta device; the loader reads this rank's part later."""
        from torch.distributed.tensor import Shard, distribute_tensor

        whole = module._parameters[param]
        part = distribute_tensor(whole, mesh, [Shard(self.dim)], src_data_rank=None)
        module._parameters[param] = torch.nn.Parameter(part, requires_grad=whole.requires_grad)


class LocalParameters(TensorParallelLayer):  # type: ignore[misc]
    """A module whose code sees its own parameters as this rank has them."""

    def should_use_local_tensors(self, module: Any) -> bool:
        return True


STYLES = {"local_params": LocalParameters(), **{f"split_{dim}": Split(dim) for dim in range(3)}}
"""By name: `split_1` splits the second dimension."""

ATTENTION = {
    "model.embed_tokens": "embedding_rowwise",
    "model.layers.*.self_attn.q_proj": "colwise",
    "model.layers.*.self_attn.k_proj": "colwise",
    "model.layers.*.self_attn.v_proj": "colwise",
    "model.layers.*.self_attn.o_proj": "rowwise",
    "model.layers.*.self_attn.sinks": "split_0",
    "model.layers.*.self_attn": "local_params",
}
SPLIT_EXPERTS = {  # gate and up alternate along the last dimension, so each part has pairs of both
    "model.layers.*.mlp.experts.gate_up_proj": "split_2",
    "model.layers.*.mlp.experts.gate_up_proj_bias": "split_1",
    "model.layers.*.mlp.experts.down_proj": "split_1",
    "model.layers.*.mlp.experts": "moe_tp_experts",
}


def shared_experts(model_type: str) -> dict[str, str]:
    """Whole experts on each rank, which skips the tokens of other ranks' experts. The rest: transformers' own plan."""
    router = "router" if model_type == "gpt_oss" else "gate"
    return {f"model.layers.*.mlp.{router}": "ep_router", "model.layers.*.mlp.experts": "moe_tp_experts"}


def distributed_config(model_type: str, tensor: int, expert: int) -> Any:
    """A `DistributedConfig` of these sizes, with transformers' own plans but for gpt-oss and for experts."""
    experts = shared_experts(model_type) if expert > 1 else None
    if model_type != "gpt_oss":
        return DistributedConfig(tp_size=tensor, ep_size=expert, ep_plan=experts)
    for name, style in STYLES.items():
        ALL_PARALLEL_STYLES.register(name, style)
    matrices = ATTENTION if experts else ATTENTION | SPLIT_EXPERTS
    return DistributedConfig(tp_size=tensor, ep_size=expert, tp_plan=matrices, ep_plan=experts)


def add_biases_once(model: Any, rank: int) -> None:
    """gpt-oss: where each rank computes a part of each expert, only the first one adds the bias of their sum."""
    if rank and model.config.model_type == "gpt_oss":
        for layer in model.model.layers:
            layer.mlp.experts.down_proj_bias.data.zero_()


def keywords(plan: LoadPlan, model_type: str) -> dict[str, Any]:
    """Keywords of `from_pretrained`; none for a process alone."""
    if plan.parallel.ranks == 1:
        return {}
    return {"distributed_config": distributed_config(model_type, plan.parallel.tensor, plan.parallel.expert)}


def finish(model: Any, plan: LoadPlan) -> None:
    """After the weights are loaded."""
    if plan.parallel.kind == "tensor":
        add_biases_once(model, own_group().rank)
    if plan.parallel.ranks > 1 and (plan.projections == "fused" or plan.kernels == "local"):
        make_local(model)
