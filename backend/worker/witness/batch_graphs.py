"""Told by the steps that replayed a graph in which every layer had written into pages."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """A step of a new size is run and captured first."""
    counts = observation.counts.pages
    steps, replays, captures = counts.paged_steps, counts.paged_replays, counts.paged_captures
    proof = f"{replays:,} of {steps:,} steps replayed a CUDA graph; {captures:,} were captured during the run"
    if not replays and not captures:
        return Finding("batch_graphs", "off", proof)
    return Finding("batch_graphs", "on", proof, replays, steps)
