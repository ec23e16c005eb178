"""Puts plain tensors into a split model's decoder layers, for fused projections and kernels.

transformers keeps the parts of a matrix as DTensors, and swaps each for its local tensor around every product. Here the
local tensors stay in the layers. The matrices after which the ranks add up their parts become `SummedLinear`.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.tensor import DTensor, Shard


class SummedLinear(nn.Linear):  # type: ignore[misc]
    """A linear layer of which each rank has some columns."""

    def forward(self, x: Any) -> Any:
        """(..., this rank's columns) -> (..., rows), the same on every rank."""
        out = self.add_up(nn.functional.linear(x, self.weight))
        return out if self.bias is None else out + self.bias

    def add_up(self, part: Any) -> Any:
        """The sum of all ranks' parts, in place."""
        dist.all_reduce(part)
        return part

    @property
    def first(self) -> bool:
        """Whether this rank's kernels add what the sum is to contain once, such as the residual."""
        return bool(dist.get_rank() == 0)


class SummedEmbedding(nn.Embedding):  # type: ignore[misc]
    """The embedding, of which each rank has an equal number of rows."""

    def forward(self, input: Any) -> Any:
        """Ids of any shape -> (..., columns), the same on every rank."""
        rows = self.weight.shape[0]
        row = input - dist.get_rank() * rows
        own = (row >= 0) & (row < rows)
        part = nn.functional.embedding(row.where(own, 0), self.weight) * own[..., None]
        dist.all_reduce(part)
        return part


class GatheredLinear(nn.Module):  # type: ignore[misc]
    """The output head, of which each rank has some rows. `part`: this rank's, which a kernel may replace."""

    def __init__(self, part: nn.Linear) -> None:
        super().__init__()
        self.part = part
        self.out_features = part.out_features * dist.get_world_size()

    @property
    def weight(self) -> Any:
        return self.part.weight

    def forward(self, x: Any) -> Any:
        """(..., columns) -> (..., all rows)."""
        return self.gathered(self.part(x).contiguous()).movedim(0, -2).flatten(-2)

    def gathered(self, own: Any) -> Any:
        """The tensors of all ranks: (ranks, *shape of own)."""
        ranks = dist.get_world_size()
        out = torch.empty(ranks * own.shape[0], *own.shape[1:], dtype=own.dtype, device=own.device)
        dist.all_gather_into_tensor(out, own)
        return out.view(ranks, *own.shape)


def make_local(model: Any) -> None:
    """Put plain tensors into the layers of a split decoder, and into its head and embedding if they divide evenly."""
    for layer in model.model.layers:
        for module in layer.modules():
            if isinstance(module, nn.Linear) and isinstance(module.weight, DTensor):
                _localize(module)
            elif isinstance(getattr(module, "sinks", None), DTensor):
                module.sinks = nn.Parameter(module.sinks.to_local(), requires_grad=False)
                vars(module).pop("forward", None)
    head, embedding = model.lm_head, model.model.embed_tokens
    if isinstance(head.weight, DTensor) and head.weight.shape[0] % dist.get_world_size() == 0:
        tied = head.weight is embedding.weight
        _localize(head)
        model.lm_head = GatheredLinear(head)
        if isinstance(embedding.weight, DTensor) and tuple(embedding.weight.placements) == (Shard(0),):
            _localize(embedding)
            embedding.__class__ = SummedEmbedding
        if tied:
            head.weight = embedding.weight


def _localize(module: Any) -> None:
    (placement,) = module.weight.placements
    for name in ("weight", "bias"):
        if isinstance(module._parameters.get(name), DTensor):
            local = module._parameters[name].to_local()
            module._parameters[name] = nn.Parameter(local, requires_grad=False)
    if isinstance(module, nn.Linear):
        module.out_features, module.in_features = module.weight.shape
    vars(module).pop("forward", None)  # transformers' wrapper, which swaps tensors
    if placement == Shard(1):
        module.__class__ = SummedLinear
