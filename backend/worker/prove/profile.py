"""Profiles a few extra tokens: the operators, kernels and runtime calls that axes look for."""

from collections import Counter
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from backend.optimizations.proof import Trace


def trace(generate: Callable[[], int], cuda: bool) -> Trace:
    """Run `generate` (returns how many tokens it generated) under torch's profiler, and sort its events by kind."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities) as profiler:
        steps = generate()
        if cuda:
            torch.cuda.synchronize()
    ops: Counter[str] = Counter()
    kernels: Counter[str] = Counter()
    runtime: Counter[str] = Counter()
    # the raw events: `profiler.events()` makes a Python object of each, 60 MB for four tokens of a tiny model
    for event in profiler.profiler.kineto_results.events():
        name, on_gpu = event.name(), event.device_type() == torch.autograd.DeviceType.CUDA
        (kernels if on_gpu else runtime if name.startswith("cu") else ops)[name] += 1
    return Trace(ops, kernels, runtime, steps)
