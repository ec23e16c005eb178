"""How weights reach the device, each stage of it measured."""

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import psutil
import torch
from transformers import modeling_utils

from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.prove.tensor_bytes import weight_tensors


@dataclass(slots=True)
class Observed:
    """Measurements of one load.

    stages_s      seconds of each stage: context (CUDA), tokenizer, read (with a device map also the copies to the
                  device), warm_up (of the allocator), quantize, move, fill (random weights)
    peak_bytes    peak memory: host (resident) and, on GPUs, device (reserved by the allocator, of all devices together)
    cached_share  share of the weight files that was in the page cache before they were read; None where unknown
    """

    stages_s: dict[str, float] = field(default_factory=dict)
    peak_bytes: dict[str, int] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    note: str = ""
    cached_share: float | None = None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time the body as that stage; its seconds do not count for an enclosing stage."""
        begin_s, earlier_s = time.perf_counter(), sum(self.stages_s.values())
        try:
            yield
        finally:
            inner_s = sum(self.stages_s.values()) - earlier_s
            took_s = time.perf_counter() - begin_s - inner_s
            self.stages_s[name] = self.stages_s.get(name, 0.0) + took_s


_expandable = False
"""What this process asked torch's allocator for last; PYTORCH_ALLOC_CONF is left alone as long as no arm asks."""


def make_context(plan: LoadPlan, observed: Observed) -> None:
    """Choose the allocator's segments, and create the CUDA context as a stage of its own, before anything is loaded."""
    global _expandable
    if plan.device != "cpu":
        if _expandable != (expandable := plan.allocator == "expandable"):
            torch._C._accelerator_setAllocatorSettings(allocator_settings(expandable))
            _expandable = expandable
        with observed.stage("context"):
            torch.zeros(1, device=plan.device)
            torch.cuda.synchronize()


def allocator_settings(expandable: bool) -> str:
    """What torch's allocator is set to: all settings of the environment, as it forgets what a call leaves out."""
    chosen = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    others = [one for one in re.split(r",(?![^\[]*\])", chosen) if one and "expandable_segments" not in one]
    return ",".join([*others, f"expandable_segments:{expandable}"])


GAPS = 0.05
"""Share of a model's bytes that the allocator may hold unused between them."""


def close_gaps(model: Any, observed: Observed) -> None:
    """Lay out a model's tensors on one GPU without the gaps that joined matrices leave, which the allocator cannot give
    back (half of Qwen3-0.6B's bytes: lab/measurements.md), by way of host memory, if it has room for them."""
    torch.cuda.empty_cache()
    used = int(torch.cuda.memory_allocated())
    if torch.cuda.memory_reserved() - used <= GAPS * used or psutil.virtual_memory().available < 1.25 * used:
        return
    with observed.stage("move"):
        lay_anew(tensor for tensor in weight_tensors(model) if tensor.is_cuda)


def lay_anew(tensors: Iterable[Any]) -> None:
    """Free the memory of these tensors and allocate it anew, the largest first. Contents and sharing stay."""
    storages = {storage.data_ptr(): storage for storage in (tensor.untyped_storage() for tensor in tensors)}
    ordered = sorted(storages.values(), key=lambda storage: -int(storage.nbytes()))
    copies = [torch.UntypedStorage(storage.nbytes()) for storage in ordered]
    for copy, storage in zip(copies, ordered, strict=True):
        copy.copy_(storage)
        storage.resize_(0)
    torch.cuda.empty_cache()
    for storage, copy in zip(ordered, copies, strict=True):
        storage.resize_(copy.nbytes())
        storage.copy_(copy)


def device_keywords(plan: LoadPlan) -> dict[str, Any]:
    """Keywords of `from_pretrained` that place the weights."""
    if plan.parallel.devices > 1:
        free = {index: int(torch.cuda.mem_get_info(index)[0]) for index in range(plan.parallel.devices)}
        return {"device_map": "auto", "max_memory": free}
    placed = plan.device == "cpu" or plan.loading == "plain" or plan.parallel.ranks > 1  # each rank on its own device
    return {} if placed else {"device_map": plan.device}


def cuda_devices(plan: LoadPlan) -> Sequence[int | None]:
    """The GPUs that hold this process's model, by index; None is the current one."""
    return range(plan.parallel.devices) if plan.parallel.devices > 1 else [None]


def _reserved_bytes(plan: LoadPlan) -> int:
    return sum(int(torch.cuda.memory_reserved(index)) for index in cuda_devices(plan))


@contextlib.contextmanager
def observing(plan: LoadPlan, observed: Observed) -> Iterator[None]:
    """Around `from_pretrained`: skip the allocator's warm-up where the plan says so, else measure it."""
    observed.counts |= {"load_warmup_bytes": 0.0, "load_moved_bytes": 0.0}
    stage, warm_up = "fill" if plan.source.kind == "random" else "read", modeling_utils.caching_allocator_warmup

    def observed_warm_up(*args: Any, **kwargs: Any) -> None:
        if plan.device == "cpu" or not plan.reserves:
            return
        before = _reserved_bytes(plan)
        with observed.stage("warm_up"):
            warm_up(*args, **kwargs)
        observed.counts["load_warmup_bytes"] += _reserved_bytes(plan) - before

    with mock.patch.object(modeling_utils, "caching_allocator_warmup", observed_warm_up), observed.stage(stage):
        yield


def moved(model: Any, plan: LoadPlan, observed: Observed) -> Any:
    """The model on the plan's device. Tensors that are still in host memory are counted, then moved."""
    on_host = [t for t in (*model.parameters(), *model.buffers()) if t.device.type == "cpu"]
    if plan.device == "cpu" or plan.loading != "plain" or not on_host:
        return model
    observed.counts["load_moved_bytes"] += sum(t.nbytes for t in on_host)
    with observed.stage("move"):
        model = model.to(plan.device)
        torch.cuda.synchronize()
    return model
