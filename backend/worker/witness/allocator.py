"""Told by the segments that torch's CUDA allocator holds."""

import torch

from tokendyno.backend.evidence import Finding
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """By bytes: a segment of fixed size beside expandable ones can have gaps. PYTORCH_ALLOC_CONF may ask for what the
    arm does not."""
    if observation.plan.load.device != "cuda":
        same = "nothing is on a GPU: all choices are the same"
        return Finding("allocator", observation.plan.load.allocator, same, outcome="not_applicable")
    segments = torch.cuda.memory_snapshot()
    total = sum(int(segment["total_size"]) for segment in segments)
    expandable = sum(int(segment["total_size"]) for segment in segments if segment["is_expandable"])
    proof = f"{plural(len(segments), 'segment')} of {total:,} bytes, of which {expandable:,} can grow"
    if not expandable:
        return Finding("allocator", "fixed", proof)
    return Finding("allocator", "expandable", proof, expandable, total)
