"""The plan: what a worker shall do, as a torch-free value.

Axes edit it, the worker executes it, and its `load_key` decides whether a loaded model can be used again.
It speaks the vocabulary of `transformers`, so that it can be read aloud as the script a user would write.
"""

import hashlib
from typing import Literal

import msgspec

SourceKind = Literal["embedded", "folder", "hub", "gguf", "random"]
CacheKind = Literal[
    "dynamic", "unwindowed", "static", "offloaded", "offloaded_static",
    "quantized-fp8", "quantized-hqq4", "quantized-quanto4",
]  # fmt: skip
LoadingKind = Literal["device_map", "no-warmup", "plain"]
KernelsKind = Literal["off", "hub", "local"]
GraphsKind = Literal["auto", "off", "compile", "manual"]
LoopKind = Literal["generate", "own"]
ShapesKind = Literal["exact", "padded", "buckets", "dynamic"]
CompileCacheKind = Literal["torch", "fresh", "artefacts"]
ProjectionsKind = Literal["separate", "fused"]

ONE_THREAD_BELOW_BYTES = 32 << 20
"""On a CPU a model with fewer bytes of weights runs on one thread: see `backend/worker/loader.py`."""

RANDOM_SEED = 0
"""Random weights are drawn with this seed."""


class ModelSource(msgspec.Struct, frozen=True):
    """Where the weights come from.

    kind     embedded and folder: `path` is a directory; gguf: `path` is the file; hub: `repo` and
             `revision`; random: `config_json` holds the architecture and nothing is fetched
    """

    kind: SourceKind
    path: str = ""
    repo: str = ""
    revision: str = ""
    config_json: str = ""


class LoadPlan(msgspec.Struct, frozen=True):
    """How the model is brought into memory.

    dtype         name of a torch dtype, or "auto": the dtype the checkpoint was saved in
    attention     value of `attn_implementation`, or None: transformers chooses
    device        "cpu" or "cuda"
    quantization  a choice of the axis; "none" leaves the weights as the checkpoint holds them
    kernels       off: the model's own code; hub: `use_kernels=True`; local: layers of a kernel folder
    kernels_path  that folder
    kernels_compiled  only kernels that torch.compile can trace (Mode.TORCH_COMPILE)
    experts       value of `set_experts_implementation`, or None: transformers chooses
    loading       device_map: weights go to the device as they are read, after the allocator was warmed up;
                  no-warmup: the same without that; plain: to host memory, then moved as a whole
    projections   separate: q, k, v and gate, up each a matrix of its own; fused: one matrix for each group
    """

    source: ModelSource
    dtype: str = "auto"
    attention: str | None = None
    device: str = "cpu"
    quantization: str = "none"
    kernels: KernelsKind = "off"
    kernels_path: str = ""
    kernels_compiled: bool = False
    experts: str | None = None
    loading: LoadingKind = "device_map"
    projections: ProjectionsKind = "separate"


class GeneratePlan(msgspec.Struct, frozen=True):
    """How tokens are made.

    cache          dynamic: `DynamicCache(config)`, which keeps window - 1 tokens in sliding layers;
                   unwindowed: `DynamicCache()`, which keeps every token in every layer;
                   static: `StaticCache`, allocated once; the others as transformers names them
    compile_mode   mode of torch.compile for the decode step, or None: not compiled
    compile_cache  torch: torch's own cache on disk as it is; fresh: an empty one for each worker, so that
                   cold seconds are cold; artefacts: saved after and loaded before, in a folder of the bench
    cuda_graphs    auto: as the compile mode says; off; compile: by a compile mode; manual: the whole decode
                   step, sampling included, captured once in `torch.cuda.CUDAGraph` and replayed
    loop           generate: the decode loop of transformers; own: that of `backend/worker/own.py`
    shapes         exact; padded: prompts are padded to the longest; buckets: to the next of a few lengths;
                   dynamic: compiled with symbolic sizes
    prompt_lookup  tokens to guess from the prompt at a time (`prompt_lookup_num_tokens`), 0: none
    """

    cache: CacheKind = "dynamic"
    compile_mode: str | None = None
    compile_cache: CompileCacheKind = "torch"
    cuda_graphs: GraphsKind = "auto"
    loop: LoopKind = "generate"
    shapes: ShapesKind = "exact"
    prompt_lookup: int = 0


class Plan(msgspec.Struct, frozen=True):
    """load -> generate, complete."""

    load: LoadPlan
    generate: GeneratePlan = GeneratePlan()

    @property
    def load_key(self) -> str:
        """Equal keys mean that an already loaded model serves this plan too."""
        return hashlib.sha256(msgspec.json.encode(self.load)).hexdigest()[:16]
