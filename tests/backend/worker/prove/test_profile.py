"""A trace is read, and its events are let go of."""

import gc

import torch

from tokendyno.backend.worker.prove.profile import trace


def test_events_of_a_trace_are_freed_without_a_collection_of_garbage() -> None:
    gc.collect()
    gc.disable()
    try:
        trace(lambda: torch.ones(4).add(1).dim(), cuda=False)
        kept = [kind for kind in map(type, gc.get_objects()) if kind is torch.autograd.profiler.profile]
    finally:
        gc.enable()
    assert not kept
