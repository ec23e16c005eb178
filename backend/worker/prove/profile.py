"""Profiles a few extra tokens: the operators, kernels and runtime calls that axes look for."""

import bisect
import ctypes
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
import torch._dynamo.utils as dynamo
from torch.profiler import ProfilerActivity, profile, record_function

from tokendyno.backend.counts import StepTime
from tokendyno.backend.worker.prove.step_time import DIVIDED, INDUCTOR_CALL, Shape, Span, Spans, step_time

ShapedCall = tuple[str, tuple[Shape, ...]]
"""An operator, and the shapes of its first inputs; () for one that is not a tensor."""

SHAPED = frozenset({"aten::softmax", "aten::scaled_dot_product_attention", "aten::index"})
"""Operators whose calls are told apart by shape."""

DIRECT = "tokendyno_all_"
"""How the names of our kernels begin that exchange between GPUs without NCCL."""


@dataclass(slots=True)
class Trace:
    """A profile of a few extra tokens, generated in the same way as in the measured run.

    runtime  CUDA runtime calls by name, such as "cudaGraphLaunch"; empty on a CPU
    steps    passes through the model, that of the prompt included: the tokens generated, unless drafts were accepted
    decode   those of `ops` that came after the first token, or after an encoder's first pass
    eager    those of `decode` that the host called outside graphs of Inductor
    shapes   calls of the operators in `SHAPED`, by name and the shapes of their first inputs
    collectives  exchanges between ranks by kind ("all_reduce")
    step     where the time of a step went; None with the reason in `no_step`
    launches  of kernels and CUDA graphs by the host in a step after the first, the mean; None on a CPU
    """

    ops: Counter[str]
    kernels: Counter[str]
    runtime: Counter[str]
    steps: int
    decode: Counter[str] = field(default_factory=Counter)
    eager: Counter[str] = field(default_factory=Counter)
    shapes: Counter[ShapedCall] = field(default_factory=Counter)
    collectives: Counter[str] = field(default_factory=Counter)
    step: StepTime | None = None
    no_step: str = ""
    launches: float | None = None

    def matching(self, *parts: str) -> Counter[str]:
        """Operators and kernels whose name contains any of `parts`, ignoring case."""
        both = self.ops + self.kernels
        return Counter({n: k for n, k in both.items() if any(part.lower() in n.lower() for part in parts)})


NO_TRACE = Trace(Counter(), Counter(), Counter(), 0)

REGION = "Torch-Compiled Region: "
"""How the event of each call of a compiled graph begins."""

_UNRECORDED = SimpleNamespace(co_name="", co_filename="")  # stands for a graph that Dynamo has no record of

_LINEAR, _BATCHED = "aten::linear", "aten::bmm"
_STEP_END = "tokendyno: end of a step"
_LAUNCHES = ("cudaLaunchKernel", "cuLaunchKernel", "cudaGraphLaunch")
"""How calls of the CUDA runtime and driver begin that launch a kernel, or a captured graph of them."""

_COLLECTIVES = {False: ("gloo:",), True: ("nccl", DIRECT)}
"""How the events of collectives begin, on the host and on a GPU."""

_KINDS = {"allreduce": "all_reduce", "allgather": "all_gather"}
"""By a part of the event's name, which is "gloo:all_reduce" or "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"."""


def mark_step() -> None:
    """A step ends here: what follows the first of these is no prefill. Costs nothing unless a profiler listens."""
    if torch.autograd.profiler._is_profiler_enabled:
        with record_function(_STEP_END):
            pass


def trace(generate: Callable[[], int], cuda: bool, stacks: Collection[Shape] = ()) -> Trace:
    """Run `generate` (returns its passes) under torch's profiler. `stacks`: shapes of stacks of matrices."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "6")  # else it announces each profile on standard error
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if cuda else [])]
    with profile(activities=activities, record_shapes=True) as profiler:
        steps = generate()
        if cuda:
            torch.cuda.synchronize()
    result = Trace(Counter(), Counter(), Counter(), steps)
    names: dict[str, str] = {}  # the profiler makes a new one for each event
    ends: list[int] = []
    spans = Spans()
    thread = 0  # which makes the steps
    # the raw events: `profiler.events()` makes a Python object of each, 60 MB for four tokens of a tiny model
    events = profiler.profiler.kineto_results.events()
    profiler.profiler = None  # it refers to itself: as much would stay until Python collects the oldest garbage
    for event in events:
        name, on_gpu = event.name(), event.device_type() == torch.autograd.DeviceType.CUDA
        name = names.setdefault(name, name)
        (result.kernels if on_gpu else result.runtime if name.startswith("cu") else result.ops)[name] += 1
        if name.startswith(_COLLECTIVES[on_gpu]) and not name.startswith("nccl:"):  # a range around the kernel
            letters = name.lower().replace("_", "")
            result.collectives[next((kind for word, kind in _KINDS.items() if word in letters), name)] += 1
        if name != _STEP_END and not event.is_async() and not (on_gpu and event.is_user_annotation()):
            spans.add(_span(event, name, on_gpu))
        if on_gpu:
            continue
        if name == _STEP_END:
            ends.append(event.start_ns())
            thread = event.start_thread_id()
        elif name in SHAPED:
            result.shapes[name, tuple(map(_shape, event.shapes()[:3]))] += 1
    del result.ops[_STEP_END]
    inside, first_end = _within(spans, INDUCTOR_CALL), min(ends, default=math.inf)
    launches = 0
    for span in spans:
        if span.on_gpu or span.begin <= first_end:
            continue
        launches += span.name.startswith(_LAUNCHES)
        if span.name.startswith("aten::"):
            result.decode[span.name] += 1
            if not inside(span.begin):
                result.eager[span.name] += 1
    flex = {f"{REGION}{name}" for name in flex_calls(result.ops)}
    result.step, result.no_step = step_time(spans, ends, cuda, stacks, flex, thread)
    if cuda and len(ends) > 1:
        result.launches = launches / (len(ends) - 1)
    return result


def _span(event: Any, name: str, on_gpu: bool) -> Span:
    begin = event.start_ns()
    shapes = tuple(map(_shape, event.shapes()[:2])) if name in DIVIDED else ()
    return Span(
        name,
        begin,
        begin + event.duration_ns(),
        on_gpu,
        shapes,
        event.correlation_id(),
        event.linked_correlation_id(),
        0 if on_gpu else event.start_thread_id(),
    )


def regions(ops: Counter[str], select: Callable[[Any], bool]) -> Counter[str]:
    """Calls of compiled graphs by compile id, of the graphs that `select` selects by Dynamo's record of them."""
    calls = Counter({name.removeprefix(REGION): n for name, n in ops.items() if name.startswith(REGION)})
    records = {str(record.compile_id): record for record in dynamo.get_compilation_metrics()} if calls else {}
    return Counter({name: n for name, n in calls.items() if select(records.get(name, _UNRECORDED))})


def flex_calls(ops: Counter[str]) -> Counter[str]:
    """Those of flex_attention, which compiles itself."""
    return regions(ops, lambda graph: graph.co_name == "flex_attention")


def _within(spans: Iterable[Span], name: str) -> Callable[[int], bool]:
    """Whether a time is in a span whose name begins so, which may be nested: whether more have begun than ended."""
    times = [(span.begin, span.end) for span in spans if span.name.startswith(name)]
    begins, ends = sorted(begin for begin, _ in times), sorted(end for _, end in times)
    return lambda moment: bisect.bisect_right(begins, moment) > bisect.bisect_left(ends, moment)


def _shape(recorded: Sequence[Any]) -> Shape:
    """A tensor's shape; () for anything else, such as a list of tensors."""
    return tuple(recorded) if all(isinstance(size, int) for size in recorded) else ()


def detach() -> bool:
    """Detach CUPTI until the next profile, while no other thread calls CUDA. Whether nothing of it is left.

    torch leaves it attached after a profile, and every later launch of a kernel goes through it: the next run of a kept
    worker would be measured slower than it is (lab/measurements.md: overhead of watching a run).
    """
    version = tuple(map(int, (torch.version.cuda or "0").split(".")[:2]))
    if version < (12, 6):  # captured graphs would not survive it: torch has the same limit
        return False
    try:  # only the library that torch has loaded; another one would be another CUPTI
        library = ctypes.CDLL(f"libcupti.so.{version[0]}", mode=os.RTLD_NOW | getattr(os, "RTLD_NOLOAD", 0))
        return int(library.cuptiFinalize()) == 0
    except (OSError, AttributeError):
        return False
