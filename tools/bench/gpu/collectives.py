"""What an exchange between GPUs costs inside a CUDA graph, where nothing has to be launched.

    torchrun --standalone --nproc-per-node 2 -m tools.bench.gpu.collectives

Sizes are those of a decode step of Llama 3 8B: a row of hidden states at batch 1 and 32, and the logits. NCCL's
all-reduce against the one of symmetric memory, where each rank reads the others' buffers (no multicast).
"""

import functools
import os
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

CALLS, REPLAYS = 64, 20
SIZES = {"hidden states, batch 1": 4_096, "hidden states, batch 32": 131_072, "logits, batch 1": 128_256}


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
    for name, size in SIZES.items():
        plain = torch.randn(size, device=device, dtype=torch.bfloat16) * 1e-3
        shared = symmetric.empty(size, device=device, dtype=torch.bfloat16)
        symmetric.rendezvous(shared, group)
        nccl_us = graph_us(functools.partial(dist.all_reduce, plain))
        direct_us = graph_us(functools.partial(torch.ops.symm_mem.one_shot_all_reduce, shared, "sum", group))
        if dist.get_rank() == 0:
            print(f"{name}, {2 * size:,} bytes: NCCL {nccl_us:.1f} us, symmetric memory {direct_us:.1f} us")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
