"""What an exchange between GPUs costs inside a CUDA graph, where nothing has to be launched.

    torchrun --standalone --nproc-per-node 2 -m tools.bench.gpu.collectives

Sizes are those of a decode step of Llama 3 8B: a row of hidden states at batch 1 and 32, and a rank's logits. NCCL's
all-reduce against the one of symmetric memory, where each rank reads the others' buffers (no multicast), and against
our kernel, whose sums are compared with NCCL's.
"""

import functools
import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric
from kernels import get_local_kernel

from backend.hardware import kernel_packages

CALLS, REPLAYS = 64, 20
SIZES = {"hidden states, batch 1": 4_096, "hidden states, batch 32": 131_072, "logits, batch 1": 64_128}


def graph_us(call: Callable[[], object]) -> float:
    """Microseconds of one of `CALLS` calls in a captured graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for _ in range(CALLS):
            call()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    begin_s = time.perf_counter()
    for _ in range(REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin_s) / REPLAYS / CALLS * 1e6


def main() -> None:
    """One line for each size."""
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    group = dist.group.WORLD.group_name
    ours = get_local_kernel(kernel_packages.BUNDLED / "matvec").exchange
    for name, size in SIZES.items():
        plain = torch.randn(size, device=device, dtype=torch.bfloat16) * 1e-3
        shared = symmetric.empty(size, device=device, dtype=torch.bfloat16)
        symmetric.rendezvous(shared, group)
        expected, found = plain.clone(), plain.clone()
        dist.all_reduce(expected)
        assert ours.direct(found), "the GPUs do not reach each other's memory"
        assert torch.equal(ours.add_up(found), expected), "our kernel's sum is not NCCL's"
        nccl_us = graph_us(functools.partial(dist.all_reduce, plain))
        shot_us = graph_us(functools.partial(torch.ops.symm_mem.one_shot_all_reduce, shared, "sum", group))
        own_us = graph_us(functools.partial(ours.add_up, found))
        if dist.get_rank() == 0:
            print(
                f"{name}, {2 * size:,} bytes: NCCL {nccl_us:.1f} us, symmetric memory {shot_us:.1f} us, "
                f"our kernel {own_us:.1f} us"
            )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
