"""How many bytes of tensors are alive while code runs on tensors without memory."""

import time
import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Live(TorchDispatchMode):  # type: ignore[misc]
    """Counts storages that operators make while it is entered, from when they are made to when the last tensor on them
    is gone: `now`, and at most `peak`. block: bytes that an allocator rounds up to; seconds: of a processor, after
    which TimeoutError ends it."""

    def __init__(self, block: int = 1, seconds: float = float("inf")) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._seen: dict[int, int] = {}
        self._block, self._until_s = block, time.process_time() + seconds

    def track(self, tensor: Any) -> None:
        """Count a tensor that was made before."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._seen:
            self._seen[key] = -(-storage.nbytes() // self._block) * self._block
            self.now += self._seen[key]
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key)

    def _drop(self, key: int) -> None:
        self.now -= self._seen.pop(key, 0)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.process_time() > self._until_s:
            raise TimeoutError("counting live tensors took too long")
        if func is torch.ops.aten.dropout.default and not args[2]:  # a fake tensor would be cloned
            return args[0]
        if func is torch.ops.aten.softmax.int:  # inference mode hands it over whole: its float32 copy would go unseen
            with self:
                return func.decompose(*args, **(kwargs or {}))
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.track(leaf)
        return out
