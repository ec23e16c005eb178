"""Detaches torch's profiler from the process once the proofs have read their traces.

torch profiles a GPU through CUPTI, which stays attached after the last profile: every later launch of a kernel goes
through it. A model of 28 layers launches hundreds of kernels for a token, so that the next run of a kept worker would
be measured slower than it is (lab/measurements.md: overhead of watching a run). torch 2.11 detaches CUPTI itself only
where TEARDOWN_CUPTI is set, and then at some later call of CUDA, which may be one of the next profile.
"""

import ctypes
import os

import torch

GRAPHS_SURVIVE = (12, 6)
"""CUDA's version from which captured graphs work on after CUPTI was detached, as torch itself judges it."""


def detach() -> bool:
    """Detach CUPTI until the next profile, while no other thread calls CUDA. Whether nothing of it is left."""
    version = tuple(map(int, (torch.version.cuda or "0").split(".")[:2]))
    if version < GRAPHS_SURVIVE:
        return False
    try:  # only the library that torch has loaded; another one would be another CUPTI
        library = ctypes.CDLL(f"libcupti.so.{version[0]}", mode=os.RTLD_NOW | getattr(os, "RTLD_NOLOAD", 0))
        return int(library.cuptiFinalize()) == 0
    except (OSError, AttributeError):
        return False
