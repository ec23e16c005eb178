"""Told by the replays of each measured step, and by products that the host launched one by one in a profile."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.worker.prove.observation import Observation, products


def find(observation: Observation) -> Finding:
    """How many measured steps were replayed; with compiled graphs, how many matrices in them."""
    counts = observation.counts
    if counts.pages.paged_steps:
        proof = "continuous batching has graphs of its own: see batch_graphs"
        return Finding("cuda_graphs", "off", proof, outcome="not_applicable")
    trace = observation.trace()
    steps, matrices = counts.graphs.counted_steps or 0, counts.graphs.matrices
    manual, replayed = counts.graphs.manual_replays, counts.graphs.replayed_matrices
    if counts.graphs.counted_steps == 0 and not manual and not replayed:
        return Finding("cuda_graphs", "off", "no decode step ran that could be replayed", outcome="not_applicable")
    proof = f"{trace.runtime['cudaGraphLaunch']} graph launches and {sum(trace.kernels.values()):,} kernels in "
    proof += f"{trace.steps} extra tokens"
    single = products(trace.decode)
    if single:
        proof += f", {single} products of matrices launched one by one after the first"
    if replayed:
        proof = f"CUDA graphs of torch.compile replayed {replayed:,} of {steps * matrices:,} matrices; {proof}"
        missed = single if replayed == steps * matrices else 0
        return Finding("cuda_graphs", "compile", proof, replayed, steps * matrices + missed)
    if manual:
        proof = f"our capture was replayed in {manual} of {steps} steps; {proof}"
        return Finding("cuda_graphs", "manual", proof, manual, steps + single)
    return Finding("cuda_graphs", "off", f"none of {steps} steps was replayed; {proof}")
