"""Predicts peak memory of a run from the config alone: weights, KV cache, temporary tensors and the runtime.

Two peaks are predicted, because two are measured: that of torch's allocator (`MemoryEstimate.tensors`) and that of the
process (`total`: what NVML counts on a GPU, or resident memory on a CPU). Where several ranks share the model, all
bytes are those of one GPU; where the layers of one process lie on several, peaks are those of the first
(`parallel.py`).
"""

from dataclasses import dataclass, replace

from tokendyno.backend.plan import DYNAMIC, UNWINDOWED
from tokendyno.backend.predict.kv import KvBytes
from tokendyno.backend.predict.parallel import shard, spread
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import Pass, Shape
from tokendyno.backend.predict.weights import mapped_bytes, quantization_on, scratch_bytes, weight_bytes
from tokendyno.backend.predict.workspace import decode_bytes, prefill_bytes

MIB = 1 << 20

CPU_MARGIN = 0.15
"""By how much a process on a CPU may differ from its prediction: what the C library's heap keeps of freed blocks, and
what packages take, is not predicted, and runs of one arm differ by up to a fifth (lab/measurements.md)."""

CPU_RUNTIME_BYTES = 405 * MIB
"""Resident memory without any model, after generating: 366 (float32) to 390 MiB (bfloat16), two models, two cores, the
CPU build of torch 2.13 and transformers 5.22 (lab/measurements); and 20 MiB, since all that is within the margin only
adds to it."""

CUDA_BUILD_BYTES = 368 * MIB
"""What the CUDA build of torch takes more on a CPU: 362 to 374 MiB in the four of eight shapes without eager attention,
torch 2.11.0+cu130 with its GPU hidden against the CPU build of 2.13 (lab/measurements.md)."""

COMPILER_BYTES = 65 * MIB
COMPILED_LAYER_BYTES = round(2.7 * MIB)
"""What torch.compile takes on a CPU: the compiler, and of each graph what it holds for a layer. Four shapes of 4 to 16
layers, to which this was fitted, took 81 to 123 MiB, SmolLM2's 30 layers 146; with the code in torch's cache a third
less (lab/measurements.md)."""

CONTEXT_BYTES = 748 * MIB
"""CUDA context, cuBLAS, loaded kernels and torch's stream pool (tokens are read on a stream of their own), on one H200
with driver 580: what NVML counted beyond the allocator's memory, equal to the MiB in six arms without any of the terms
below (lab/measurements.md)."""

RANK_BYTES = 784 * MIB
"""NCCL's communicator and buffers, and our kernels' inboxes: what NVML counted beyond the above and the allocator's
memory in each of two ranks on H200s with NVLink (lab/measurements.md)."""

CUDNN_BYTES = 8 * MIB
PLAN_BYTES = 96 << 10
"""On Hopper, sdpa in half precision loads cuDNN, which caches an execution plan per sequence length: 28 MiB for 300
tokens of a growing cache on one H200 (lab/measurements.md)."""

BNB_INT8_BYTES = 64 * MIB
"""cuBLASLt handle and workspace that bitsandbytes allocates at its first int8 matrix product, on one H200."""

RESERVED_SHARE = 0.01
RESERVED_BYTES = 20 * MIB
"""What the allocator reserves beyond what it hands out: partly filled segments of 2 and 20 MiB."""

UNSPLIT_BYTES = round(0.8 * MIB)
"""The allocator does not split a block of more than 1 MiB if less than 1 MiB would remain
(c10/cuda/CUDACachingAllocator.cpp, `should_split`). Measured: 0.84 MiB per tensor of a growing cache."""

CPU_KERNEL_BYTES = round(1.3 * MIB)
CPU_KERNELS_BYTES = 920 * MIB
"""With a growing cache, eager attention in half precision multiplies matrices of a new shape at every token, and oneDNN
caches kernels for each shape until its cache is full: 528 MiB after 400 tokens and 919 MiB after 2,100 on two cores.
sdpa does not (lab/measurements.md)."""


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Predicted bytes on the device; the parts add up to `total`.

    kv             the cache at the end of the run (a growing cache may hold more after a long prompt: see `workspace`)
    kv_elsewhere   the part of `kv` that an offloaded cache keeps in host memory, or that other devices hold
    fullest        peak of the process on the device that holds most, where there are several; else 0
    runtime_bytes  the process without its tensors: interpreter and libraries, or the CUDA context
    heap           the freed block that torch's allocator keeps of eager attention on a GPU
    margin         share of `total` by which a process on a CPU may differ; 0 on a GPU, where none is stated
    mapped         pages of files that stay in a CPU process's memory until others need it: part of the peak that
                   is measured, not of what is needed
    """

    weights: int
    kv: int
    workspace: int
    runtime_bytes: int
    kv_elsewhere: int = 0
    weights_elsewhere: int = 0
    fullest: int = 0
    heap: int = 0
    mapped: int = 0
    margin: float = 0.0

    @property
    def tensors(self) -> int:
        """Peak of torch's allocator."""
        return self.weights - self.weights_elsewhere + self.kv - self.kv_elsewhere + self.workspace

    @property
    def total(self) -> int:
        """Peak of what the process needs."""
        return self.tensors + self.runtime_bytes + self.heap

    def by_part(self) -> dict[str, int]:
        """Bytes by part, as stored with a run, whose peak holds what is mapped too."""
        peak = self.total + self.mapped
        optional = {"heap": self.heap, "mapped": self.mapped, "margin": round(self.margin * peak)}
        return {
            "weights": self.weights,
            "kv": self.kv,
            "workspace": self.workspace,
            "runtime": self.runtime_bytes,
            "tensors": self.tensors,
            "total": peak,
            **{part: size for part, size in optional.items() if size},
        }


def peak_bytes(shape: Shape) -> MemoryEstimate:
    """Peak memory of a run; of an encoder, of a pass. InputError if the GPUs of its setup cannot share the model."""
    setup = shape.setup
    if setup.devices > 1:
        return _on_several(shape)
    shape = replace(shape, facts=shard(shape.facts, setup.tensor_parallel, setup.expert_parallel))
    facts, kv, passes = shape.facts, shape.kv(shape.last, min(shape.prompt, shape.last)), shape.passes()
    at_end = _on_device(shape, kv)
    prompt = max(_on_device(shape, read.kv) + prefill_bytes(read) for read in passes)
    if setup.cache.backend == "rows":  # every slot of a layer is dequantized for the model's attention
        prompt += 2 * shape.layer_bytes(shape.slots)
    step = 0 if shape.encoder else _step(shape)
    peak = prompt + step if setup.prompt_graph else max(prompt, at_end + step)
    weights = weight_bytes(facts, setup.dtype, quantization_on(facts, setup))
    workspace = peak - at_end + scratch_bytes(facts, setup)
    if setup.cuda:
        workspace += cublas_workspace_bytes(setup) * (3 if setup.graphs == "manual" else 1)
    return MemoryEstimate(
        weights=weights,
        kv=kv.total,
        workspace=workspace,
        runtime_bytes=_runtime(shape, weights + at_end + workspace),
        kv_elsewhere=kv.total - at_end,
        heap=max(map(_heap, passes)),
        mapped=mapped_bytes(facts, setup),
        margin=0.0 if setup.cuda else CPU_MARGIN,
    )


def by_device(shape: Shape) -> list[MemoryEstimate]:
    """`peak_bytes` of every device over which `device_map="auto"` spreads the layers."""
    setup = shape.setup
    shares = spread(shape.facts, setup.dtype, setup.devices)
    return [peak_bytes(replace(shape, facts=share, setup=replace(setup, devices=1))) for share in shares]


def _on_several(shape: Shape) -> MemoryEstimate:
    first, *rest = by_device(shape)
    weights, kv = sum(memory.weights for memory in rest), sum(memory.kv for memory in rest)
    return replace(
        first,
        weights=first.weights + weights,
        kv=first.kv + kv,
        weights_elsewhere=weights,
        kv_elsewhere=first.kv_elsewhere + kv,
        fullest=max(memory.total for memory in (first, *rest)),
    )


def _on_device(shape: Shape, kv: KvBytes) -> int:
    """Bytes of a cache on the device: two layers of an offloaded one, and where it is static its windows too."""
    facts, setup = shape.facts, shape.setup
    if not setup.cuda or not setup.cache.offloaded:
        return kv.total
    if setup.cache.grows:
        return min(kv.total, 2 * kv.total // facts.layers)
    rest = kv.unwindowed - kv.fixed
    return kv.sliding + (min(rest, 2 * rest // facts.full_layers) if facts.full_layers else 0)


def _heap(read: Pass) -> int:
    """Bytes of the one freed block that torch's allocator keeps of a prefill's scores in float32.

    Smaller tensors that outlive a layer, keys and values above all, are cut out of the largest freed block, so that the
    next layer's scores need a new one. Where scores stay in a half precision, or become float32 within their softmax,
    no block was kept. Nine arms of six shapes on one H100 were within 6% (lab/measurements.md)."""
    shape, facts = read.shape, read.shape.facts
    if shape.attention != "eager" or not shape.setup.cuda:
        return 0
    if facts.sinks or shape.float16 or facts.architecture in ("gpt2", "bert"):
        return 0
    return shape.batch * facts.heads * read.tokens * read.keys * 4


def _step(shape: Shape) -> int:
    """Temporary tensors of the last decode step, and the unsplit blocks of a growing cache."""
    setup, layer = shape.setup, shape.layer_bytes(shape.last)
    size = decode_bytes(shape)
    if setup.cache.quantized:
        size += 2 * layer  # dequantized, and concatenated with the newest tokens
    if setup.cuda and layer // 2 > MIB and setup.cache in (DYNAMIC, UNWINDOWED):
        size += 2 * shape.facts.layers * UNSPLIT_BYTES
    return size


def cublas_workspace_bytes(setup: Setup) -> int:
    """Workspace that cuBLAS allocates at its first matrix product, per stream: 32 MiB from Hopper on, 8,320 KiB before
    (aten/src/ATen/cuda/CublasHandlePool.cpp, `parseChosenWorkspaceSize`). Manual graph capture uses two more streams,
    one to warm up and one to capture, however many graphs there are."""
    return 32 * MIB if setup.capability >= (9, 0) else 8_320 << 10


def _runtime(shape: Shape, tensors: int) -> int:
    """Memory of the process without its tensors."""
    facts, setup, half = shape.facts, shape.setup, shape.size < 4 and not shape.encoder
    lengths = shape.new if setup.cache.grows and half else 0
    if setup.cache == DYNAMIC and facts.window and not facts.full_layers:
        lengths = min(lengths, facts.window)
    if not setup.cuda:
        kernels = lengths * CPU_KERNEL_BYTES if shape.attention == "eager" else 0
        libraries = CUDA_BUILD_BYTES if setup.cuda_build else 0
        compiler = COMPILER_BYTES * bool(setup.compiled) + setup.compiled * facts.layers * COMPILED_LAYER_BYTES
        return CPU_RUNTIME_BYTES + libraries + min(kernels, CPU_KERNELS_BYTES) + compiler
    size = CONTEXT_BYTES + RESERVED_BYTES + round(RESERVED_SHARE * tensors)
    size += RANK_BYTES if setup.tensor_parallel > 1 else 0
    if half and shape.attention == "sdpa" and setup.capability >= (9, 0):
        size += CUDNN_BYTES + lengths * PLAN_BYTES
    if setup.quantization == "bnb-int8":
        size += BNB_INT8_BYTES
    if setup.graphs == "compile":
        size += 2 * cublas_workspace_bytes(setup)  # as for manual capture, but freed afterwards, so only reserved
    return size
