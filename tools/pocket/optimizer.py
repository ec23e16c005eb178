# mypy: disable-error-code="misc, untyped-decorator"
"""Muon for the matrices and AdamW for the rest, because orthogonal steps need fewer tokens at this size.

Muon (Jordan et al., 2024, https://kellerjordan.github.io/posts/muon/) replaces a matrix's momentum by the nearest
orthogonal matrix, found by a quintic Newton-Schulz iteration; experts are a batch of matrices.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonal(matrix: Tensor, steps: int = 5) -> Tensor:
    """Give roughly the nearest orthogonal matrices of (..., rows, columns)."""
    a, b, c = QUINTIC
    x = matrix.bfloat16()
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if tall else x


class Muon(torch.optim.Optimizer):
    """Momentum, made orthogonal; same-shaped matrices go through together."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, momentum: float = 0.95, decay: float = 0.01) -> None:
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Take one step."""
        for group in self.param_groups:
            shapes: dict[tuple[int, ...], list[nn.Parameter]] = {}
            for param in group["params"]:
                shapes.setdefault(tuple(param.shape), []).append(param)
            for params in shapes.values():
                self._step(params, group["lr"], group["momentum"], group["decay"])

    def _step(self, params: list[nn.Parameter], lr: float, momentum: float, decay: float) -> None:
        """Step all matrices of one shape; a linear layer is (out, in), an expert (in, out)."""
        grads = [param.grad for param in params if param.grad is not None]
        pasts = [self.state[param].setdefault("past", torch.zeros_like(param)) for param in params]
        torch._foreach_lerp_(pasts, grads, 1 - momentum)
        ahead = torch._foreach_lerp(grads, pasts, momentum)
        out, into = params[0].shape[-2:] if params[0].ndim == 2 else params[0].shape[:-3:-1]
        updates = orthogonal(torch.stack(ahead)) * max(1.0, out / into) ** 0.5
        torch._foreach_mul_(params, 1 - lr * decay)
        torch._foreach_add_(params, [update.to(params[0].dtype) for update in updates.unbind()], alpha=-lr)


def build(model: nn.Module, lr: float, muon_lr: float) -> list[torch.optim.Optimizer]:
    """Share the parameters out: AdamW alone where muon_lr is 0."""
    matrices, dense, plain = [], [], []
    for name, param in model.named_parameters():
        if param.ndim < 2 or "bias" in name:
            plain.append(param)
        elif muon_lr and "embed" not in name and "router" not in name:
            matrices.append(param)
        else:
            dense.append(param)
    groups = [{"params": dense, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.97), fused=dense[0].is_cuda)
    return [adam, Muon(matrices, muon_lr)] if muon_lr else [adam]
