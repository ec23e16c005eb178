"""Told by bytes: reserved by the allocator's warm-up, and moved from host memory."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.prove.tensor_bytes import total_bytes

SEGMENT_BYTES = 20 << 20
"""What torch's allocator reserves at once for tensors of 1 to 10 MiB (CUDACachingAllocator.cpp, kLargeBuffer)."""


def find(observation: Observation) -> Finding:
    """Where the choice makes no difference, the planned one is reported and the proof says so."""
    load, counts = observation.plan.load, observation.counts.load
    planned = load.loading
    random = load.source.kind == "random"
    if random or load.device == "cpu":
        why = "random weights are created on the device" if random else "nothing was moved to a device"
        return Finding("loading", planned, f"{why}: all choices are the same", outcome="not_applicable")
    warmed, moved = counts.load_warmup_bytes, counts.load_moved_bytes
    proof = f"the allocator's warm-up reserved {warmed:,} bytes; {moved:,} bytes were moved from host memory"
    size = total_bytes(observation.model.parameters())
    if planned == "device_map" and not warmed and not moved and 0 < size < SEGMENT_BYTES:
        reason = f"{proof}: the allocator had as much reserved already"
        return Finding("loading", planned, reason, outcome="not_applicable")
    piecemeal = planned == "device_map" and not warmed and not load.reserves
    if piecemeal:
        proof += ", since of one block nothing could be given back once matrices are fused"
    return Finding("loading", "plain" if moved else "device_map" if warmed or piecemeal else "no-warmup", proof)
