"""GPU-busy time of one decode step: a low share of the step's latency means launch-bound."""

from collections.abc import Callable, Iterable

import torch
from torch.profiler import ProfilerActivity, profile

FEW_STEPS, MORE_STEPS = 2, 10


def step_busy_s(generate: Callable[[int], object], most: int) -> float | None:
    """Seconds in which kernels or copies ran, for one step after the first.

    `generate` runs that many steps. Two profiles of different lengths are subtracted, so that the prefill, which is in
    both, counts in neither. None if fewer than `FEW_STEPS` + 2 steps are allowed: the difference would be noise.
    """
    more = min(MORE_STEPS, most)
    if more < FEW_STEPS + 2:
        return None
    short_s, long_s = (_busy_s(generate, steps) for steps in (FEW_STEPS, more))
    return (long_s - short_s) / (more - FEW_STEPS) if long_s > short_s else None


def _busy_s(generate: Callable[[int], object], steps: int) -> float:
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        generate(steps)
        torch.cuda.synchronize()
    on_gpu = [event.time_range for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
    return covered((span.start, span.end) for span in on_gpu) / 1e6


def covered(spans: Iterable[tuple[float, float]]) -> float:
    """Length of the union of spans (begin, end): overlapping kernels keep the GPU busy once."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
