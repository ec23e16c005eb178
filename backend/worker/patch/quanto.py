"""Unpacks optimum-quanto's tensors with torch's own operators."""

from typing import Any

import torch


def unpack_with_torch() -> None:
    """Let optimum-quanto unpack its tensors with torch's operators.

    Its own extension is compiled on first use: a minute with a C++ compiler, many minutes with nvcc on a GPU, which
    also builds kernels that a cache never calls. On a CPU that extension calls the same operators. The low bits of a
    byte belong to the first rows, the bits above to the rows that follow.
    """
    from optimum.quanto.tensor.packed import PackedTensor

    def unpack(packed: Any) -> torch.Tensor:
        bits, codes = packed._bits, packed._data
        rows = torch.cat([(codes >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)])
        return rows[: packed.shape[0]]

    PackedTensor.unpack = unpack
