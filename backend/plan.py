"""The plan: what a worker does, as a value without torch.

Axes edit it, the worker executes it, and its `load_key` decides whether a loaded model can be reused. It uses the
vocabulary of transformers, so that it reads like the script a user would write.
"""

import hashlib
from typing import Any, Literal

import msgspec

from tokendyno.backend.models.source import ModelSource

LoadingKind = Literal["device_map", "no-warmup", "plain"]
KernelsKind = Literal["off", "hub", "local", "mapping"]
AllocatorKind = Literal["fixed", "expandable"]
GraphsKind = Literal["auto", "off", "compile", "manual"]
LoopKind = Literal["generate", "own"]
ShapesKind = Literal["exact", "padded", "buckets", "dynamic"]
CompileCacheKind = Literal["torch", "fresh", "artefacts"]
ProjectionsKind = Literal["separate", "fused"]
ParallelKind = Literal["off", "tensor", "expert", "device-map"]
BatchingKind = Literal["off", "static", "continuous"]
OrderKind = Literal["arrival", "sorted"]
SchedulerKind = Literal["fifo", "prefill_first"]


class CacheKind(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a KV cache keeps keys and values.

    offloaded  kept in host memory, layers brought to the GPU as they are needed
    windowed   sliding-window layers drop tokens outside their window
    backend    quantizer of transformers' `QuantizedCache` ("fp8", "hqq", "quanto"); "rows" is that of the custom loop,
               float8_e4m3fn with a scale for each token and head; "" keeps the compute dtype
    bits       of a quantized element; 0 keeps the compute dtype
    """

    name: str
    static: bool = False
    offloaded: bool = False
    windowed: bool = False
    backend: str = ""
    bits: int = 0

    @property
    def grows(self) -> bool:
        """Whether its tensors are allocated anew for each token."""
        return not self.static

    @property
    def fixed(self) -> bool:
        """Whether its tensors keep their addresses, which compiled and captured steps hold."""
        return self.static and not self.offloaded

    @property
    def quantized(self) -> bool:
        return bool(self.backend)

    @property
    def grouped(self) -> bool:
        """Whether elements are quantized in groups that share a scale, and the newest tokens stay in full precision."""
        return self.quantized and self.bits < 8


DYNAMIC = CacheKind("dynamic", windowed=True)
UNWINDOWED = CacheKind("unwindowed")
STATIC = CacheKind("static", static=True, windowed=True)
STATIC_FP8 = CacheKind("static-fp8", static=True, backend="rows", bits=8)
OFFLOADED = CacheKind("offloaded", offloaded=True, windowed=True)
OFFLOADED_STATIC = CacheKind("offloaded_static", static=True, offloaded=True, windowed=True)
QUANTIZED_FP8 = CacheKind("quantized-fp8", backend="fp8", bits=8)
QUANTIZED_HQQ4 = CacheKind("quantized-hqq4", backend="hqq", bits=4)
QUANTIZED_QUANTO4 = CacheKind("quantized-quanto4", backend="quanto", bits=4)
CACHES: dict[str, CacheKind] = {
    kind.name: kind
    for kind in (
        DYNAMIC,
        UNWINDOWED,
        STATIC,
        STATIC_FP8,
        OFFLOADED,
        OFFLOADED_STATIC,
        QUANTIZED_FP8,
        QUANTIZED_HQQ4,
        QUANTIZED_QUANTO4,
    )
}
"""Every kind of KV cache, by name."""

GRAPH_MODES = ("reduce-overhead", "max-autotune")
"""Modes of torch.compile that replay compiled code as CUDA graphs."""

CACHE_SIZES = 4
"""With graphs of continuous batching, the cached tokens that a step reads are rounded up to this many sizes: each is a
graph of its own, and padding is read too."""

ONE_THREAD_BELOW_BYTES = 32 << 20
"""On a CPU, a model with fewer weight bytes runs on one thread: see `backend/worker/load/loader.py`."""

RANDOM_SEED = 0
"""Seed of random weights."""


class Exchanges(msgspec.Struct, frozen=True, omit_defaults=True):
    """How often the ranks exchange something in one pass, by kind."""

    all_reduce: int = 0
    all_gather: int = 0

    @property
    def total(self) -> int:
        return self.all_reduce + self.all_gather


class ParallelPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """How several devices share the model.

    kind       tensor: each matrix is split; expert: the same, but experts are shared out whole; device-map: whole
               layers lie on several devices, and one process runs them one after the other
    ranks      processes, each with one device
    sharded    matrices that are split or shared out, by the model's facts: as many must be found
    exchanges  what the ranks exchange in a pass, by the model's facts: as many must be found
    devices    with a device map: GPUs that hold layers
    layers     with a device map: layers of the model, by its facts: as many must be found
    hosts      machines over which the ranks are spread evenly
    """

    kind: ParallelKind = "off"
    ranks: int = 1
    sharded: int = 0
    exchanges: Exchanges = Exchanges()
    devices: int = 1
    layers: int = 0
    hosts: int = 1

    @property
    def tensor(self) -> int:
        """`tp_size` of transformers."""
        return self.ranks

    @property
    def expert(self) -> int:
        """`ep_size` of transformers."""
        return self.ranks if self.kind == "expert" else 1


class LoadPlan(msgspec.Struct, frozen=True):
    """How the model is loaded.

    attention     value of `attn_implementation`, or None: transformers chooses
    quantization  a choice of that axis; "none" leaves the weights as the checkpoint holds them
    packed        matrices that are quantized, by the model's facts: as many must be found
    kernels       off: the model's own code; hub: `use_kernels=True`; local: layers of a kernel folder; mapping: those
                  of `kernels_mapping`, layer by layer, each org/name:Layer of the Hub
    kernels_compiled  only kernels that torch.compile can trace (Mode.TORCH_COMPILE)
    kernels_rows  kernels replace whole layers with one matrix for q, k and v; GPT-2's is first stored by rows
    experts       value of `set_experts_implementation`, or None: transformers chooses
    loading       device_map: weights go to the device as they are read, after an allocator warm-up (but see
                  `reserves`); no-warmup: without the warm-up; plain: to host memory, then moved as a whole
    allocator     expandable: segments of torch's CUDA allocator grow in place (`expandable_segments`)
    projections   separate: q, k, v, gate and up as in the model; fused: one matrix for q, k, v and one for gate, up
    sinks         whether attention keeps the sinks that it was trained with
    """

    source: ModelSource
    dtype: str = "auto"
    attention: str | None = None
    device: str = "cpu"
    quantization: str = "none"
    packed: int = 0
    kernels: KernelsKind = "off"
    kernels_path: str = ""
    kernels_mapping: tuple[tuple[str, str], ...] = ()
    kernels_compiled: bool = False
    kernels_rows: bool = False
    experts: str | None = None
    loading: LoadingKind = "device_map"
    allocator: AllocatorKind = "fixed"
    projections: ProjectionsKind = "separate"
    sinks: bool = True
    parallel: ParallelPlan = ParallelPlan()

    @property
    def any_kernel(self) -> bool:
        """Whether attention is a kernel of the Hub that transformers takes only with `allow_all_kernels`."""
        name = self.attention or ""
        return "/" in name and not name.startswith("kernels-community/")

    @property
    def reserves(self) -> bool:
        """Whether the allocator is warmed up by one block for all weights: fused matrices would leave gaps in it."""
        return self.loading != "no-warmup" and self.projections != "fused"


class BatchPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many requests share the model. Only `kind`, `rows` and `order` concern static batches.

    kind          off: one request after the other; static: rows of a padded batch, which ends with its longest;
                  continuous: transformers' continuous batching, in which a request leaves and another one enters at
                  any step, over a KV cache in pages
    rows          requests in work at once; 0: as many as the run allows
    order         of the requests that static batches are formed from: as they arrive, or by length
    scheduler     fifo: requests that decode come first; prefill_first: prompts that were begun come first
    asynchronous  the next step is prepared while the GPU works on this one
    graphs        steps are captured as CUDA graphs, for rounded sizes
    """

    kind: BatchingKind = "off"
    rows: int = 0
    order: OrderKind = "arrival"
    page_tokens: int = 256
    step_tokens: int = 512
    scheduler: SchedulerKind = "fifo"
    asynchronous: bool = False
    graphs: bool = False

    @property
    def continuous(self) -> bool:
        return self.kind == "continuous"


class CompileValues(msgspec.Struct, frozen=True, omit_defaults=True):
    """Arguments of torch.compile beside its mode. `dynamic`: None leaves symbolic shapes to torch; `options`: of
    Inductor, by name, which torch takes in place of a mode; `graph_break`: "print" or "branch", put into the
    forward pass on purpose, "" for none."""

    fullgraph: bool = False
    backend: str = "inductor"
    dynamic: bool | None = None
    options: tuple[tuple[str, bool], ...] = ()
    graph_break: str = ""


class GeneratePlan(msgspec.Struct, frozen=True):
    """How tokens are generated.

    compile_mode   mode of torch.compile for the decode step, or None: not compiled
    compile_cache  torch: torch's caches, shared by all workers; fresh: an empty one for each worker, so that compile
                   times are cold; artefacts: saved after one run and loaded before the next
    cuda_graphs    auto: as the compile mode implies; off; compile: by a compile mode; manual: the whole decode
                   step, sampling included, or an encoder's pass, captured once in `torch.cuda.CUDAGraph` and replayed
    loop           generate: the decode loop of transformers; own: that of `backend/worker/loop/loop.py`
    shapes         exact; padded: prompts padded to one length; buckets: to one of a few lengths;
                   dynamic: compiled with symbolic shapes
    prefill_chunk  tokens of the prompt in one pass (`prefill_chunk_size`), 0: all of them
    prefill_graphs  the pass over the prompt is captured for each length, and replayed (in the custom loop)
    prefill_compiled  that pass is compiled, in the mode of the step (in the custom loop)
    prompt_lookup  draft tokens per step (`prompt_lookup_num_tokens`), 0: none
    compile_values  further arguments of torch.compile, in `generate`
    compile_module  `generate` is called on what torch.compile(model) returned
    """

    cache: CacheKind = DYNAMIC
    compile_mode: str | None = None
    compile_cache: CompileCacheKind = "torch"
    cuda_graphs: GraphsKind = "auto"
    loop: LoopKind = "generate"
    shapes: ShapesKind = "exact"
    prefill_chunk: int = 0
    prefill_graphs: bool = False
    prefill_compiled: bool = False
    prompt_lookup: int = 0
    compile_module: bool = False
    compile_values: CompileValues = CompileValues()
    batch: BatchPlan = BatchPlan()


class Plan(msgspec.Struct, frozen=True):
    """How to load the model and how to generate.

    routed  experts that each token is routed to, by the model's facts: as many must be found. 0: none, or unknown
    """

    load: LoadPlan
    generate: GeneratePlan = GeneratePlan()
    routed: int = 0

    @property
    def load_key(self) -> str:
        """A loaded model can be reused for any plan with the same key."""
        return hashlib.sha256(msgspec.json.encode(self.load)).hexdigest()[:16]

    def with_load(self, **changes: Any) -> "Plan":
        """This plan with these fields of its `LoadPlan` changed."""
        return msgspec.structs.replace(self, load=msgspec.structs.replace(self.load, **changes))

    def with_generate(self, **changes: Any) -> "Plan":
        return msgspec.structs.replace(self, generate=msgspec.structs.replace(self.generate, **changes))

    def with_batch(self, **changes: Any) -> "Plan":
        return self.with_generate(batch=msgspec.structs.replace(self.generate.batch, **changes))
