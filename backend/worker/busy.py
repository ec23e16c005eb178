"""How long the GPU works on one step, whatever the host does meanwhile: the measure of being launch-bound."""

from collections.abc import Callable, Iterable

import torch
from torch.profiler import ProfilerActivity, profile

FEW_STEPS, MORE_STEPS = 2, 10


def step_busy_s(make: Callable[[int], object], most: int) -> dict[str, float]:
    """`step_busy_s` for `Finished.extra`: seconds in which kernels or copies ran, for one step after the first.

    `make` makes so many steps. Two profiles of unlike length are subtracted, so that the prefill, which both hold,
    counts in neither. Nothing (n/a) if fewer than `FEW_STEPS` + 2 steps are allowed: the difference would be noise.
    """
    more = min(MORE_STEPS, most)
    if more < FEW_STEPS + 2:
        return {}
    short_s, long_s = (_busy_s(make, steps) for steps in (FEW_STEPS, more))
    return {"step_busy_s": (long_s - short_s) / (more - FEW_STEPS)} if long_s > short_s else {}


def _busy_s(make: Callable[[int], object], steps: int) -> float:
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        make(steps)
        torch.cuda.synchronize()
    on_gpu = [event.time_range for event in seen.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return covered((span.start, span.end) for span in on_gpu) / 1e6


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of spans (begin, end): two kernels at once keep the GPU busy once."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
