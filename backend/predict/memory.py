"""What a run needs at its peak, from the config alone: weights, KV cache, what lies beside them, and the runtime.

Two peaks are foretold, because two are measured: the allocator's (`MemoryEstimate.tensors`: what torch hands out) and
the process's (`total`: what NVML counts on a GPU, or resident memory on a CPU). Where several GPUs share the model, all
numbers are those of one GPU (`parallel.py`).
"""

from dataclasses import dataclass

from backend.models import ModelFacts
from backend.plan import CacheKind
from backend.predict.kv import KvBytes, kv_bytes
from backend.predict.parallel import share
from backend.predict.weights import itemsize, weight_bytes
from backend.predict.workspace import Work, decode_bytes, prefill_bytes

MIB = 1 << 20

CPU_RUNTIME_BYTES = 385 * MIB
"""Resident before any model, once tokens were made: 366 (float32) to 390 MiB (bfloat16) with two models on two cores,
torch 2.13 and transformers 5.22 (MEASUREMENTS.md)."""

CONTEXT_BYTES = 748 * MIB
"""CUDA context, cuBLAS, loaded kernels and torch's pool of streams, which the bench needs for reading tokens, on one
H200, driver 580: what NVML counted beside the allocator's memory, the same to the MiB in six arms without any of what
follows (MEASUREMENTS.md)."""

CUDNN_BYTES = 8 * MIB
PLAN_BYTES = 96 << 10
"""sdpa in half precision on Hopper loads cuDNN, which keeps a plan for each length that it meets: 28 MiB for 300 tokens
of a growing cache on one H200 (MEASUREMENTS.md)."""

BNB_INT8_BYTES = 64 * MIB
"""Handle and workspace of cuBLASLt that bitsandbytes makes for itself at its first product of int8, on one H200."""

RESERVED_SHARE = 0.01
RESERVED_BYTES = 20 * MIB
"""What the allocator holds beyond what it hands out: segments of 2 and 20 MiB that are not filled."""

UNSPLIT_BYTES = round(0.8 * MIB)
"""A block of more than 1 MiB is used whole where less than 1 MiB would be left over
(c10/cuda/CUDACachingAllocator.cpp, `should_split`). 0.84 MiB for each tensor of a growing cache, measured."""

CPU_KERNEL_BYTES = round(1.3 * MIB)
CPU_KERNELS_BYTES = 920 * MIB
"""Eager attention in half precision multiplies matrices of a new shape at each length of a growing cache, and oneDNN
keeps the kernels of each, until its own cache is full: 528 MiB after 400 tokens and 919 MiB after 2,100 on two cores;
sdpa does not (MEASUREMENTS.md)."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes on the device; the parts add up to `total`.

    weights        exact for known architectures
    kv             the cache at the end of the run (a growing cache may have held more after a long prompt: `workspace`)
    kv_elsewhere   the part of it that an offloaded cache holds in host memory, beside the GPU
    workspace      what the larger of two moments, prompt and last token, needs beyond those
    runtime_bytes  what a process takes beside its tensors: interpreter and libraries, or the CUDA context
    """

    weights: int
    kv: int
    workspace: int
    runtime_bytes: int
    kv_elsewhere: int = 0

    @property
    def tensors(self) -> int:
        """The allocator's peak."""
        return self.weights + self.kv - self.kv_elsewhere + self.workspace

    @property
    def total(self) -> int:
        """All of it."""
        return self.tensors + self.runtime_bytes

    def by_part(self) -> dict[str, int]:
        """Bytes by name, as runs keep them."""
        return {
            "weights": self.weights, "kv": self.kv, "workspace": self.workspace, "runtime": self.runtime_bytes,
            "tensors": self.tensors, "total": self.total,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setup:
    """How a run is done, as far as its memory goes.

    dtype         "auto": the checkpoint's own
    attention     None: what transformers chooses; experts: None likewise
    capability    of the GPU, (0, 0) where it is not known
    max_places    places of a static cache; None: as many as are needed
    padded        a prompt with padding needs a mask
    graphs        whose CUDA graphs are replayed, "compile" or "manual"; "" for none
    tensor_parallel, expert_parallel  GPUs that share the model, `tp_size` and `ep_size` of transformers
    """

    dtype: str = "auto"
    quantization: str = "none"
    cache: CacheKind = "dynamic"
    attention: str | None = None
    experts: str | None = None
    device: str = "cpu"
    capability: tuple[int, int] = (0, 0)
    max_places: int | None = None
    padded: bool = False
    graphs: str = ""
    tensor_parallel: int = 1
    expert_parallel: int = 1

    @property
    def cuda(self) -> bool:
        return self.device.startswith("cuda")

    @property
    def grows(self) -> bool:
        """Whether the cache's tensors are made anew for each token."""
        return "static" not in self.cache


def peak_bytes(
    facts: ModelFacts, setup: Setup, prompt_length: int = 1, new_tokens: int = 1, batch: int = 1
) -> MemoryEstimate:
    """The peak of making `new_tokens` after a prompt of `prompt_length`, in each of `batch` sequences.

    An encoder makes none: its passes over the prompt are the prompt's. InputError where GPUs cannot share the model.
    """
    facts = share(facts, setup.tensor_parallel, setup.expert_parallel)
    size = itemsize(facts, setup.dtype)
    encoder = facts.kind == "encoder"
    last = prompt_length if encoder else prompt_length + new_tokens - 1  # the newest token is never cached
    places = setup.max_places if setup.max_places is not None else prompt_length + new_tokens
    last = min(last, places)
    kv = kv_bytes(facts, setup.cache, last, batch, size, places, min(prompt_length, last))
    at_prompt = kv
    if setup.cache in ("dynamic", "offloaded"):  # after a long prompt its tensors are views of the whole prompt
        at_prompt = kv_bytes(facts, "unwindowed", prompt_length, batch, size)
    elif setup.grows:
        at_prompt = kv_bytes(facts, setup.cache, prompt_length, batch, size, places, prompt_length)
    prompt = _on_device(facts, setup, at_prompt) + _prefill(facts, setup, batch, prompt_length, size)
    at_end = _on_device(facts, setup, kv)
    step = 0 if encoder else at_end + _step(facts, setup, batch, last, places, size)
    beside = max(prompt, step) - at_end + _packed_scratch(facts, setup, size)
    if setup.cuda:
        beside += workspace_of_blas(setup) * (3 if setup.graphs == "manual" else 1)
    weights = weight_bytes(facts, setup.dtype, setup.quantization)
    runtime = _runtime(facts, setup, size, new_tokens, weights + at_end + beside)
    return MemoryEstimate(weights, kv.total, beside, runtime, kv.total - at_end)


def _on_device(facts: ModelFacts, setup: Setup, kv: KvBytes) -> int:
    """Bytes of a cache beside the weights: of an offloaded one the layer at work and the next, and of a static
    offloaded one all layers with a window (cache_utils.py, `offload_only_non_sliding`)."""
    if not setup.cuda or not setup.cache.startswith("offloaded"):
        return kv.total
    if setup.cache == "offloaded":
        return min(kv.total, 2 * kv.total // facts.layers)
    return kv.sliding + (min(kv.full, 2 * kv.full // facts.full_layers) if facts.full_layers else 0)


def _prefill(facts: ModelFacts, setup: Setup, batch: int, length: int, size: int) -> int:
    """Temporaries of the prompt's pass."""
    windowed = facts.window is not None and length > facts.window and "sliding" in facts.layer_kinds
    masked = setup.padded or windowed
    experts = setup.experts or "grouped_mm"
    shared = (setup.tensor_parallel, setup.expert_parallel)
    return prefill_bytes(facts, Work(batch, length, size, attention_of(facts, setup), experts, masked, *shared))


def _step(facts: ModelFacts, setup: Setup, batch: int, length: int, places: int, size: int) -> int:
    """Temporaries of the last step. On a GPU `generate` swaps grouped_mm for batched_mm there (generation/utils.py)."""
    experts = setup.experts or "grouped_mm"
    packed = setup.quantization == "mxfp4" or (setup.quantization == "none" and facts.quantization == "mxfp4")
    if setup.cuda and experts == "grouped_mm" and not packed:
        experts = "batched_mm"
    seen = length if setup.grows else places
    masked = setup.padded or not setup.grows
    layer = kv_bytes(facts, "unwindowed", length, batch, size).total // facts.layers
    shared = (setup.tensor_parallel, setup.expert_parallel)
    work = Work(batch, seen, size, attention_of(facts, setup), experts, masked, *shared)
    found = decode_bytes(facts, work, layer, setup.grows)
    if setup.cache.startswith("quantized"):
        found += 2 * layer  # unpacked, and joined with the newest tokens
    if setup.cuda and setup.grows and layer // 2 > MIB and setup.cache in ("dynamic", "unwindowed"):
        found += 2 * facts.layers * UNSPLIT_BYTES
    return found


def attention_of(facts: ModelFacts, setup: Setup) -> str:
    """What transformers takes by itself: sdpa, but eager for sinks and for capped scores (gemma 2)."""
    if setup.attention is not None:
        return setup.attention
    return "eager" if facts.sinks or facts.architecture == "gemma2" else "sdpa"


def workspace_of_blas(setup: Setup) -> int:
    """What cuBLAS gets from the allocator at its first product: 32 MiB from Hopper on, 8,320 KiB before
    (aten/src/ATen/cuda/CublasHandlePool.cpp, `parseChosenWorkspaceSize`). It gets as much for each stream: a step that
    is captured runs on two more, first to warm up."""
    return 32 * MIB if setup.capability >= (9, 0) else 8_320 << 10


SCRATCH = {"bnb-int8": 1, "torchao-int8": 1, "torchao-fp8": 1, "quanto-int8": 1, "quanto-int4": 1}
"""Dense copies of its largest matrix that a packing makes to multiply with it; 4-bit bitsandbytes makes one where more
than one row is multiplied (bitsandbytes/autograd/_functions.py)."""


def _packed_scratch(facts: ModelFacts, setup: Setup, size: int) -> int:
    copies = 1 if setup.quantization.startswith("bnb") else SCRATCH.get(setup.quantization, 0)
    linear = [matrix.rows * matrix.columns for matrix in facts.matrices if matrix.kind in ("linear", "conv1d")]
    return copies * max(linear, default=0) * size


def _runtime(facts: ModelFacts, setup: Setup, size: int, new_tokens: int, tensors: int) -> int:
    """What the process takes beside its tensors."""
    lengths = new_tokens if setup.grows and size < 4 and facts.kind == "decoder" else 0
    if setup.cache == "dynamic" and facts.window and not facts.full_layers:
        lengths = min(lengths, facts.window)
    if not setup.cuda:
        kernels = lengths * CPU_KERNEL_BYTES if attention_of(facts, setup) == "eager" else 0
        return CPU_RUNTIME_BYTES + min(kernels, CPU_KERNELS_BYTES)
    found = CONTEXT_BYTES + RESERVED_BYTES + round(RESERVED_SHARE * tensors)
    if facts.kind == "decoder" and size < 4 and attention_of(facts, setup) == "sdpa" and setup.capability >= (9, 0):
        found += CUDNN_BYTES + lengths * PLAN_BYTES
    if setup.quantization == "bnb-int8":
        found += BNB_INT8_BYTES
    if setup.graphs == "compile":
        found += 2 * workspace_of_blas(setup)  # as for graphs by hand, but let go of again, and so only reserved
    return found
