"""torch.compile as planned, and the ledger of what it did: graphs, breaks, recompiles, skips, seconds.

The figures are Dynamo's records and counters, which are global to the process: when the settings change, everything
compiled before is reset and counting starts anew.
"""

import contextlib
import gzip
import os
import re
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
import torch._dynamo
from msgspec.structs import replace
from torch._dynamo.callback import CallbackTrigger
from torch._dynamo.callback import callback_handler as _callbacks
from torch._dynamo.utils import (
    CompilationMetrics,
    clear_compilation_metrics,
    counters,
    get_compilation_metrics,
    graph_break_reasons,
    set_compilation_metrics_limit,
)
from torch.compiler._cache import CacheArtifactManager
from transformers import CompileConfig

from tokendyno.backend import paths
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import Compiled, CompiledGraph, GraphCode
from tokendyno.backend.plan import GRAPH_MODES, CompileCacheKind, GeneratePlan, Plan
from tokendyno.backend.worker.channel import Steps
from tokendyno.backend.worker.compiler import artefacts, own_cache
from tokendyno.backend.worker.compiler.graph_break import break_graph
from tokendyno.backend.worker.prove.compile_log import break_places, first_line, guard

_NOTHING = Compiled(0.0, [], {}, {}, 0, 0, 0)
STAGES = ("dynamo", "inductor", "codegen", "autotune")
"""Stages of compiling a graph; see `Compiled`."""

_SETTINGS = attrgetter(
    "compile_mode", "compile_values", "compile_cache", "shapes", "loop", "cuda_graphs", "cache.name", "prefill_compiled"
)
"""What of a plan compiled code was made for."""


def compile_config(plan: GeneratePlan) -> CompileConfig | None:
    """How `generate` compiles its decode step; None: not at all."""
    if plan.compile_mode is None:
        return None
    values = plan.compile_values
    dynamic = True if plan.shapes == "dynamic" else values.dynamic
    config = CompileConfig(values.fullgraph, dynamic, values.backend, plan.compile_mode)
    if values.options:
        config.mode, config.options = None, dict(values.options)  # torch takes only one of the two
    config._compile_all_devices = True  # otherwise CPUs are silently skipped
    return config


def _graphs_in_this_thread() -> None:
    """torch 2.11 keeps Inductor's CUDA graphs by thread, and asserts in every thread but the one that imported them."""
    from torch._inductor import cudagraph_trees

    local = cudagraph_trees.local
    if not hasattr(local, "tree_manager_containers"):
        local.tree_manager_containers = {}
        local.tree_manager_locks = defaultdict(threading.Lock)


# --- generated code -------------------------------------------------------------------------------

MOST_BYTES = 2 << 20
"""Limit for an arm's code as text (packed it is about a twentieth). Graphs beyond it are listed without their code."""

_PATH = re.compile(r"(?<![\w./:])/(?:[\w.+-]+/)+(?=[\w.+-]+)")


class Generated:
    """The code that Inductor generated for each graph of one loaded model since its compile settings last changed. It
    is read where torch takes a graph into use, while the options apply, whether it was compiled or came from a cache.

    graphs, with_options  how many there were, and for how many of them every option was in effect
    """

    def __init__(self) -> None:
        self._code: dict[str, tuple[str, str]] = {}  # key in the cache -> compile id, code
        self.graphs = self.with_options = 0

    @contextlib.contextmanager
    def noting(self, options: Sequence[tuple[str, bool]]) -> Iterator[None]:
        """Around whatever may compile."""
        from torch._guards import CompileContext
        from torch._inductor import config
        from torch._inductor.output_code import CompiledFxGraph

        original = CompiledFxGraph.post_compile

        def post_compile(graph: Any, *args: Any, **kwargs: Any) -> Any:
            self.graphs += 1
            self.with_options += all(getattr(config, name) == on for name, on in options)
            compile_id = str(CompileContext.current_compile_id() or "")
            self._code.setdefault(str(graph.cache_key), (compile_id, graph.source_code or ""))
            return original(graph, *args, **kwargs)

        with mock.patch.object(CompiledFxGraph, "post_compile", post_compile):
            yield

    def code(self) -> list[GraphCode]:
        """The code of each graph, in the order of compiling, without names of this machine's folders."""
        graphs, left = [], MOST_BYTES
        for compile_id, code in self._code.values():
            code = _PATH.sub("", code)
            fits = len(code) <= left
            left -= len(code) * fits
            graphs.append(GraphCode(compile_id, len(code), gzip.compress(code.encode(), mtime=0) if fits else b""))
        return graphs


class Compiling:
    """torch.compile for one loaded model. Totals of the ledger go into `counts`, for the axes.

    cache_s    seconds spent on filling this process's compile cache
    settings   of the latest compiled run; other ones reset everything that was compiled and warmed up
    generated  the code of the graphs
    """

    def __init__(self, model: Any, counts: RunCounts) -> None:
        self._model, self._counts = model, counts
        self.cache_s = 0.0
        self.settings: Any = None
        self.generated = Generated()
        self._graph_break: Any = None  # the handle of one on purpose
        self._options: tuple[tuple[str, bool], ...] | None = None  # of Inductor; None where it compiles nothing
        self._key = ""  # of the artefacts; "" without
        self._new = _NOTHING  # since the settings last changed
        self._start = _Start()
        self._cache: CompileCacheKind | None = None  # what this process's compile cache was filled with
        self._published: tuple[_Start, CompileCacheKind] | None = None
        self._whole: Any = None  # the compiled call of the whole model

    def begin(self, plan: Plan, batch_size: int, length: int) -> list[str]:
        """Before the warm-up of a run. Returns remarks for the user. `length`: slots of a static cache."""
        generate = plan.generate
        if self._graph_break is not None:
            self._graph_break.remove()
        how = generate.compile_values.graph_break if generate.compile_mode else ""
        self._graph_break = break_graph(self._model, how) if how else None
        inductor = generate.compile_mode is not None and generate.compile_values.backend == "inductor"
        self._options = generate.compile_values.options if inductor else None
        if generate.compile_mode in GRAPH_MODES and plan.load.device == "cuda":
            _graphs_in_this_thread()
        if generate.compile_mode is None:
            self._start, self._key = _Start.now(), ""
            if plan.load.attention == "flex_attention" and self._cache is None:  # it compiles itself
                self._use_cache("torch")
            return []
        self._start = _Start()
        self._key = artefacts.key_of(plan, batch_size, length) if generate.compile_cache == "artefacts" else ""
        settings = (*_SETTINGS(generate), self._key)
        if settings == self.settings:
            return []
        self._forget()
        self.settings = settings
        self._use_cache(generate.compile_cache)
        taken = artefacts.take(self._key) if self._key else artefacts.Taken()
        self._new = replace(self._new, loaded_bytes=taken.loaded_bytes, cold_before_s=taken.cold_before_s)
        return [taken.note] if taken.note else []

    def _use_cache(self, kind: CompileCacheKind) -> None:
        begin_s = time.perf_counter()
        files = own_cache.use(kind)
        self.cache_s += time.perf_counter() - begin_s
        self._cache, self._published = kind, None
        self._count(cache_files_before=files, cache_files_published=0)

    def publish(self) -> None:
        """Share what was compiled with other workers, while nothing compiles."""
        now = _Start.now()
        if self._cache is None or self._published == (now, self._cache):
            return
        self._count(cache_files_published=own_cache.publish(self._cache))
        self._published = now, self._cache

    def _count(self, **totals: float | None) -> None:
        self._counts.compilation = replace(self._counts.compilation, **totals)

    def _forget(self) -> None:
        torch._dynamo.reset()
        self._model.__dict__.pop("_compiled_call", None)
        self._whole = None
        counters.clear()
        set_compilation_metrics_limit(4096)
        clear_compilation_metrics()
        CacheArtifactManager.clear()  # do not save artefacts of what was compiled so far
        self.generated = Generated()
        self._new = _NOTHING

    @contextlib.contextmanager
    def whole_model(self, plan: GeneratePlan) -> Iterator[None]:
        """Around `generate` with a growing cache, where it compiles nothing itself: compile all its calls of the model,
        the prefill included, as by `model.compile()`."""
        config = None if plan.cache.fixed else compile_config(plan)
        if config is None:
            yield
            return
        if self._whole is None:
            self._model.compile(**config.to_dict())
            self._whole, self._model._compiled_call_impl = self._model._compiled_call_impl, None
        with mock.patch.object(self._model, "_compiled_call_impl", self._whole):
            yield

    def noting(self) -> contextlib.AbstractContextManager[None]:
        """Around whatever may compile: keep the generated code."""
        return contextlib.nullcontext() if self._options is None else self.generated.noting(self._options)

    @contextlib.contextmanager
    def watched(self, steps: Steps, cold: bool) -> Iterator[None]:
        """Around a phase of the warm-up: each new graph is progress. `cold`: its seconds count as cold_s."""
        begun: Counter[str] = Counter()

        def report(args: Any) -> None:
            kind = "CUDA graph" if is_recording(args) else "graph"
            begun[kind] += 1
            steps.step(None, f"{kind} {begun[kind]}")

        begin_s = time.perf_counter()
        try:
            with watching(report, lambda args: None), self.noting():
                yield
        except BaseException:
            self.settings = self._cache = None  # the next run starts a new cache: a file of this one may be torn
            raise
        cold_s = self._new.cold_s + (time.perf_counter() - begin_s if cold else 0.0)
        self._new = replace(self._new, cold_s=cold_s, records=self._new.records + begun["CUDA graph"])

    def warmed_up(self) -> None:
        """After the warm-up: publish what was compiled, and save artefacts if the plan says so."""
        self.publish()
        if self._key and not self._new.saved_bytes and _Start.now().cache["miss"]:
            cold_s = self._new.cold_before_s or self._new.cold_s
            self._new = replace(self._new, saved_bytes=artefacts.save(self._key, cold_s))

    def ledger(self) -> Compiled | None:
        """What was compiled so far, also written into `counts`; None if nothing was."""
        now = _Start.now()
        metrics = get_compilation_metrics()[self._start.records :]
        failed = Counter(f"not compiled: {first_line(r.fail_reason or '')}" for r in metrics if r.fail_type)
        records = [r for r in metrics if not r.is_runtime and not r.fail_type]
        skips = Counter(first_line(r.cudagraph_skip_reason) for r in records if r.cudagraph_skip_reason)
        skips["torch gave no reason"] += now.skips - self._start.skips - skips.total()
        cache = now.cache - self._start.cache
        graphs, places = graphs_of(metrics), break_places(graph_break_reasons)
        breaks = (now.breaks - self._start.breaks).items()
        compiled = replace(
            self._new if self._start == _Start() else _NOTHING,
            graphs=graphs,
            breaks={f"{reason} at {places[reason]}" if reason in places else reason: n for reason, n in breaks}
            | failed,
            skips=dict(+skips),
            hits=cache["hit"],
            misses=cache["miss"],
            stages_s={stage: sum(graph.stages_s[stage] for graph in graphs) for stage in STAGES},
        )
        tuned, own_files = _loaded_code()
        self._count(
            compile_cold_s=compiled.cold_s,
            graphs=len(compiled.graphs),
            graph_breaks=sum(compiled.breaks.values()),
            recompiles=sum(1 for graph in compiled.graphs if graph.guard),
            cudagraph_skips=sum(compiled.skips.values()),
            fx_cache_hits=compiled.hits,
            fx_cache_misses=compiled.misses,
            artefacts_loaded_bytes=compiled.loaded_bytes,
            artefacts_saved_bytes=compiled.saved_bytes,
            artefacts_cold_s=compiled.cold_before_s,
            tuned_kernels=tuned,
            own_code_files=own_files,
            inductor_graphs=self.generated.graphs,
            option_graphs=self.generated.with_options,
        )
        return compiled if compiled.graphs else None


class _Start(NamedTuple):
    """The process's counters at some moment."""

    records: int = 0
    skips: int = 0
    breaks: Counter[str] = Counter()
    cache: Counter[str] = Counter()

    @staticmethod
    def now() -> "_Start":
        inductor = counters["inductor"]
        breaks: Counter[str] = Counter(map(first_line, counters["graph_break"].elements()))
        missed = inductor["fxgraph_cache_miss"] + inductor["fxgraph_cache_bypass"]  # absent, or cannot be cached
        cache = Counter(hit=inductor["fxgraph_cache_hit"], miss=missed)
        return _Start(len(get_compilation_metrics()), inductor["cudagraph_skips"], breaks, cache)


def graphs_of(records: Sequence[CompilationMetrics]) -> list[CompiledGraph]:
    """The graphs that were compiled. Autotuning at the first call has a record of its own, and counts for its graph."""
    tuned_us: Counter[str] = Counter()
    for record in filter(attrgetter("is_runtime"), records):
        tuned_us[str(record.compile_id)] += record.runtime_triton_autotune_time_us or 0
    graphs = []
    for record in records:
        if record.is_runtime or record.fail_type:
            continue
        whole_s = record.entire_frame_compile_time_s or 0.0
        backend_s, codegen_s = record.backend_compile_time_s or 0.0, record.code_gen_time_s or 0.0
        autotune_s = (record.compile_time_autotune_time_us or 0) / 1e6
        stages_s = {
            "dynamo": max(0.0, whole_s - backend_s),
            "inductor": max(0.0, backend_s - codegen_s),
            "codegen": max(0.0, codegen_s - autotune_s),
            "autotune": autotune_s + tuned_us.pop(str(record.compile_id), 0) / 1e6,
        }
        graphs.append(CompiledGraph(whole_s, guard(record.recompile_reason), str(record.compile_id or ""), stages_s))
    return graphs


def _loaded_code() -> tuple[int, int]:
    """(tuned Triton kernels, files in this process's own folder) of the generated code that it has loaded."""
    codecache = sys.modules.get("torch._inductor.codecache")  # not loaded where nothing was compiled
    if codecache is None:
        return 0, 0
    scratch_folder = str(paths.scratch_folder(os.getpid()))
    tuned = own_files = 0
    for module in codecache.PyCodeCache.modules:
        path = str(module.__file__)
        own_files += path.startswith(scratch_folder)
        with contextlib.suppress(OSError):
            tuned += Path(path).read_text(encoding="utf-8").count("'max_autotune': True")
    return tuned, own_files


def is_recording(args: Any) -> bool:
    """Whether a callback is about recording a CUDA graph, not about compiling."""
    return bool(args.callback_trigger == CallbackTrigger.CUDAGRAPH_RECORDING)


@contextlib.contextmanager
def watching(begin: Callable[[Any], None], end: Callable[[Any], None]) -> Iterator[None]:
    """Call these when Dynamo begins and ends a compilation, or Inductor begins and ends recording a CUDA graph."""
    _callbacks.register_start_callback(begin)
    _callbacks.register_end_callback(end)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # removed by `torch._dynamo.reset`
            _callbacks.remove_start_callback(begin)
            _callbacks.remove_end_callback(end)
