"""Brings the ranks of a group together: gloo between processes on CPUs, NCCL between GPUs."""

import os

import torch
import torch.distributed as dist


def meet(rank: int, size: int) -> None:
    """Returns once all ranks are there. On GPUs each rank takes the one of its local rank, and NCCL is started now and
    not within a captured step (rccl#2022); objects still go through gloo. On CPUs the ranks of a machine share its
    cores out."""
    if not torch.cuda.is_available():
        torch.set_num_threads(max(1, torch.get_num_threads() // int(os.environ["LOCAL_WORLD_SIZE"])))
        dist.init_process_group("gloo", rank=rank, world_size=size)
        return
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("cpu:gloo,cuda:nccl", rank=rank, world_size=size, device_id=device)
