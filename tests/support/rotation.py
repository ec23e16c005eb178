"""The rotary embedding of a head, of all its dimensions or of some, in plain torch."""

from typing import Any


def rotated(x: Any, cos: Any, sin: Any, count: int | None = None, pairs: bool = False) -> Any:
    """x (..., size), its first `count` dimensions (None: all) rotated by angles (..., count), or half as many: each
    with the one half of them away, or (`pairs`) with its neighbour."""
    import torch

    count = x.shape[-1] if count is None else count
    if not count:
        return x
    order = torch.arange(count, device=x.device)
    across, leads = (order ^ 1, order % 2 == 0) if pairs else ((order + count // 2) % count, order < count // 2)
    angles = (order // 2 if pairs else order) % cos.shape[-1]
    here, rest = x[..., :count], x[..., count:]
    other = torch.where(leads, -here[..., across], here[..., across])
    return torch.cat([here * cos[..., angles] + other * sin[..., angles], rest], -1)
