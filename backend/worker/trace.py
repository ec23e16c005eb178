"""A profile of a few more tokens: the operators, kernels and runtime calls that axes look for."""

from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from backend.optimizations.base import Trace


def trace(make_tokens: Callable[[], int], cuda: bool) -> Trace:
    """Run `make_tokens` (returns how many were made) under torch's profiler and sort what it saw by name."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as seen:
        steps = make_tokens()
        if cuda:
            torch.cuda.synchronize()
    ops: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    runtime: Counter[str] = Counter()
    for event in seen.events():
        on_gpu = event.device_type == torch.autograd.DeviceType.CUDA
        (kernels if on_gpu else runtime if event.name.startswith("cu") else ops)[event.name] += 1
    return Trace(ops, kernels, runtime, steps)
