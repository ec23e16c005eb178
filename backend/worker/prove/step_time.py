"""Where the time of a step went: the events of a trace, divided among attention, products with weights and the rest.

On a CPU each moment of the thread that runs the model belongs to the operator that is running, else to the host. On a
GPU each moment of the stream belongs to the kernel that is running; while none is, it is a gap if the next one was
already launched, and the host's if the GPU waited for its launch. The parts add up to the time from the end of the
prefill (of an encoder's first pass) to the end of the last step.
"""

import functools
import re
import sys
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tokendyno.backend.counts import StepPart, StepTime

Shape = tuple[int, ...]
Shapes = Sequence[Shape]

_COLLECTIVE = re.compile(r"nccl|gloo|c10d|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all", re.IGNORECASE)
_ATTENTION = re.compile(
    r"scaled_dot_product|attention|flash|fmha|flex_|sdpa"
    r"|tokendyno_(convolution|delta_rule|state_space|absorb|latents)",
    re.IGNORECASE,
)
_PRODUCT = re.compile(
    r"gemm|gemv|gemvx|cutlass|nvjet|xmma|splitk|matmul|matvec|linear|marlin|machete|_product|int[48]pack"
    r"|tokendyno_(experts|router)"
    r"|(?<![a-z])(add|b|badd?b|scaled_|grouped_|int_)?mm(?![a-z])",
    re.IGNORECASE,
)
_BATCHED = frozenset({"aten::bmm", "aten::baddbmm", "aten::matmul"})
"""Products of stacks of matrices: of attention, unless the second stack are weights."""
DIVIDED = _BATCHED | {"aten::softmax", "aten::index"}
"""Operators whose part depends on the shapes of their inputs."""
INDUCTOR_CALL = "## Call CompiledFxGraph"
"""Inductor's own range around each call of a graph: what runs in it outside of operators are fused loops and kernels.
Dynamo's range is around a whole frame, and so around what runs eagerly at a graph break, too."""


class Span(NamedTuple):
    """An event of a trace, in nanoseconds.

    id      correlation id: a kernel and the call that launched it share it
    link    of a kernel: the id of the operator that launched it, 0 for none
    """

    name: str
    begin: int
    end: int
    on_gpu: bool = False
    shapes: Shapes = ()
    id: int = 0
    link: int = 0
    thread: int = 0


class Spans:
    """Many spans, stored in columns: as objects those of four tokens of a small model take 8 MB, which Python does not
    give back, so that the next run in the process would count it as its own."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._names: list[str] = []
        self._shapes: dict[int, Shapes] = {}
        self._numbers = array("q")
        for span in spans:
            self.add(span)

    def add(self, span: Span) -> None:
        if span.shapes:
            self._shapes[len(self._names)] = span.shapes
        self._names.append(sys.intern(span.name))
        self._numbers.extend((span.begin, span.end, span.on_gpu, span.id, span.link, span.thread))

    def __iter__(self) -> Iterator[Span]:
        return map(self._at, range(len(self._names)))

    def of_thread(self, thread: int) -> Iterator[Span]:
        """Those of a thread of the host, in the order of their begins; of two that begin together the longer first."""
        begin, end, on_gpu, _, _, threads = np.array(self._numbers, np.int64).reshape(-1, 6).T
        order = np.lexsort((-end, begin))
        on_thread = (on_gpu == 0) & (threads == thread)
        return (self._at(int(index)) for index in order[on_thread[order]])

    def _at(self, index: int) -> Span:
        begin, end, on_gpu, id, link, thread = self._numbers[6 * index : 6 * index + 6]
        return Span(self._names[index], begin, end, bool(on_gpu), self._shapes.get(index, ()), id, link, thread)


def step_time(
    spans: Spans,
    ends: Sequence[int],
    cuda: bool,
    stacks: Collection[Shape],
    flex: Collection[str] = (),
    thread: int = 0,
) -> tuple[StepTime | None, str]:
    """(the parts of a mean step, "") or (None, why there are none).

    ends    when each step ended on `thread` of the host; the first is the prefill's
    stacks  shapes of the weights that are stacks of matrices (experts); any other weight has two dimensions
    flex    names of ranges in which compiled code of flex_attention runs
    """
    ends = sorted(ends)
    if len(ends) < 2:
        return None, "no step after the first was traced: the run has a single token"
    classified = _Classified(stacks, flex, {} if cuda else None)
    classified.divide(spans.of_thread(thread), ends[0], ends[-1])
    divided: _Divided = classified
    seconds = ends[-1] - ends[0]
    if cuda:
        kernels = [span for span in spans if span.on_gpu]
        launches = {span.id: span for span in spans if _is_launch(span)}
        divided, seconds = _on_gpu(kernels, launches, classified.part_of_operator or {}, (ends[0], ends[-1]))
        if not seconds:
            return None, "the profiler saw no kernel on the GPU after the first step"
    steps = len(ends) - 1
    named = {name: ns / steps / 1e9 for name, ns in divided.other_ns.most_common(5)}
    # every step has attention and products: where none is seen, compiled code has fused them with something else
    seen = {part: ns for part, ns in divided.parts.items() if ns or part not in ("attention", "products")}
    parts: dict[StepPart, float] = {part: ns / steps / 1e9 for part, ns in seen.items()}
    return StepTime(steps, seconds / steps / 1e9, cuda, parts, named), ""


class _Divided:
    """Nanoseconds by part; `other_ns`: those of the part "other" by name of the event."""

    def __init__(self, parts: Iterable[StepPart]) -> None:
        self.parts: dict[StepPart, int] = dict.fromkeys(parts, 0)
        self.other_ns: Counter[str] = Counter()

    def add(self, part: StepPart, name: str, ns: int) -> None:
        self.parts[part] = self.parts.get(part, 0) + ns
        if part == "other":
            self.other_ns[name] += ns


class _Classified(_Divided):
    """The host's thread, divided among what runs in it. `part_of_operator`: is given the part of each, by its id."""

    def __init__(
        self, stacks: Collection[Shape], flex: Collection[str], part_of_operator: dict[int, StepPart] | None
    ) -> None:
        super().__init__(("attention", "products", "other", "collectives", "host"))
        self._stacks, self._flex = frozenset(stacks), frozenset(flex)
        self._matrices = {pair for *_, rows, columns in stacks for pair in ((rows, columns), (columns, rows))}
        self.part_of_operator = part_of_operator

    def divide(self, spans: Iterable[Span], begin: int, end: int) -> None:
        """`spans`: as `Spans.of_thread` sorts them. One inside another counts as that one's part, if that has one."""
        open_spans: list[tuple[int, StepPart, str]] = [(end, "host", "")]
        at = begin
        for span in spans:
            while len(open_spans) > 1 and open_spans[-1][0] <= span.begin:
                at = self._until(open_spans.pop(), at)
            limit, outer, name = open_spans[-1]
            part = self._part(span, outer)
            if self.part_of_operator is not None and not _is_launch(span):
                self.part_of_operator[span.id] = part
            if span.end <= begin or span.begin >= end:
                continue
            if span.begin > at:
                self.add(outer, name, span.begin - at)
                at = span.begin
            label = name
            if part == "other" and outer != "other":
                label = "fused loops of compiled code" if span.name.startswith(INDUCTOR_CALL) else span.name
            open_spans.append((min(span.end, limit), part, label))
        while open_spans:
            at = self._until(open_spans.pop(), at)

    def _until(self, closed: tuple[int, StepPart, str], at: int) -> int:
        end, part, name = closed
        if end > at:
            self.add(part, name, end - at)
        return max(at, end)

    def _part(self, span: Span, outer: StepPart) -> StepPart:
        if outer in ("attention", "products", "collectives"):
            return outer
        name = span.name
        if name in self._flex:
            return "attention"
        if name in _BATCHED and len(span.shapes) > 1:
            return self._batched(span.shapes)
        if name == "aten::softmax" and span.shapes and len(span.shapes[0]) == 4:
            return "attention"
        if name == "aten::index" and span.shapes and tuple(span.shapes[0]) in self._stacks:
            return "products"  # the weights of the chosen experts, copied for their product
        if "::" in name:
            return part_of_name(name)
        return "other" if name.startswith(INDUCTOR_CALL) else outer

    def _batched(self, shapes: Shapes) -> StepPart:
        first, second = shapes[:2]
        if len(second) == 2 or tuple(second[-2:]) in self._matrices:
            return "products"
        if len(first) < 3 or len(second) < 3:
            return "other"
        return "other" if first[-1] == 1 else "attention"  # an outer product: angles of the rotary embedding


def _is_launch(span: Span) -> bool:
    """A call of the CUDA runtime or driver. Its id is another number than those of operators."""
    return not span.on_gpu and span.name.startswith("cu") and bool(span.id)


@functools.lru_cache(maxsize=4096)  # a model has few names, and a trace of it tens of thousands of events
def part_of_name(name: str) -> StepPart:
    if _COLLECTIVE.search(name):
        return "collectives"
    if _ATTENTION.search(name):
        return "attention"
    return "products" if _PRODUCT.search(name) else "other"


def _on_gpu(
    kernels: Sequence[Span],
    launches: Mapping[int, Span],
    part_of_operator: Mapping[int, StepPart],
    window: tuple[int, int],
) -> tuple[_Divided, int]:
    """(time divided, nanoseconds): from the end of what was launched before the window to the end of what was in it."""
    divided = _Divided(("attention", "products", "other", "collectives", "gaps", "host"))
    launched = [(launches.get(kernel.id, kernel), kernel) for kernel in kernels]
    before = [kernel.end for launch, kernel in launched if launch.begin < window[0]]
    inside = ((launch, kernel) for launch, kernel in launched if window[0] <= launch.begin < window[1])
    ordered = sorted((kernel.begin, kernel.end, launch, kernel) for launch, kernel in inside)
    if not ordered:
        return divided, 0
    start = at = max(before, default=ordered[0][0])
    for begin, end, launch, kernel in ordered:
        if begin > at:
            waited = max(0, min(begin, launch.end) - at) if launch is not kernel and launch.begin >= at else 0
            divided.add("host", "", waited)
            divided.add("gaps", "", begin - at - waited)
            at = begin
        if end > at:
            part = part_of_operator.get(kernel.link, "other") if kernel.link else "other"
            if part not in ("attention", "products", "collectives"):  # as in a replayed graph
                part = part_of_name(kernel.name)
            divided.add(part, kernel.name, end - at)
            at = end
    return divided, at - start
