"""Whether each norm computes with its own kernel: a sum over all of them would hide one that does so for another."""

from collections.abc import Iterable, Sequence
from typing import Any

_RANGE = "tokendyno: a norm by itself"
_ROWS = 2
_MODELS_OWN = "aten::rsqrt"
"""What the norms of transformers call, and a kernel does not outside of its own operator."""


def silent_norms(norms: Sequence[Any], names: set[str]) -> int:
    """How many of these modules, called by themselves, leave nothing of such a name in a trace, or compute with the
    model's own code as well.

    Each takes rows as wide as its weight, as the norms of transformers do.
    """
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    if not norms:
        return 0
    cuda = any(norm.weight.is_cuda for norm in norms)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with torch.inference_mode(), profile(activities=activities) as profiler:
        for norm in norms:
            weight = norm.weight
            rows = torch.linspace(-1, 1, _ROWS * len(weight), dtype=weight.dtype, device=weight.device)
            with record_function(_RANGE):
                norm(rows.view(1, _ROWS, -1))
        if cuda:
            torch.cuda.synchronize()
    return len(norms) - _heard(profiler.profiler.kineto_results.events(), names)


def _heard(events: Iterable[Any], names: set[str]) -> int:
    """Ranges of the host in which an operator of such a name ran, or a kernel of such a name was launched, and nothing
    of the model's own beside it."""
    ranges: list[tuple[int, int]] = []
    operators: list[tuple[int, int]] = []
    own_code: list[int] = []
    launches: dict[int, int] = {}
    kernels: list[int] = []
    for event in events:
        own, on_gpu = event.name().startswith(tuple(names)), event.device_type().name != "CPU"
        span = event.start_ns(), event.start_ns() + event.duration_ns()
        if on_gpu:
            kernels += [event.correlation_id()] * own
        elif event.name() == _RANGE:
            ranges.append(span)
        elif own:
            operators.append(span)
        elif event.name() == _MODELS_OWN:
            own_code.append(span[0])
        elif event.name().startswith("cu"):
            launches[event.correlation_id()] = span[0]
    moments = [begin for begin, _ in operators] + [launches[kernel] for kernel in kernels if kernel in launches]
    beside = [at for at in own_code if not any(begin <= at <= end for begin, end in operators)]
    return sum(
        any(begin <= at <= end for at in moments) and not any(begin <= at <= end for at in beside)
        for begin, end in ranges
    )
