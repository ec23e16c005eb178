"""Told by the ids that each pass of the measured run, or each replay, was given until the prompt was read."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.prefill import SIZES
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Passes that were given just the chunk that was due, of as many as the prompt's positions make. Other passes count
    against them."""
    counts, chunk = observation.counts, observation.plan.generate.prefill_chunk
    if counts.prefill.prompt_compiled_matrices:
        return _compiled(observation)
    if replays := counts.prefill.prompt_replays:
        proof = f"{plural(replays, 'replay')} read the {counts.prompt.positions:,} positions"
        return Finding("prefill", "captured", proof, replays, replays)
    passes, widest = counts.prefill.prompt_passes, counts.prefill.widest_prompt_pass
    positions = counts.prompt.positions
    if not passes:
        return _unseen(observation)
    proof = f"{positions:,} positions of the prompt in {plural(passes, 'pass')} of at most {widest:,}"
    if passes == 1:
        if not 0 < positions <= chunk:
            return Finding("prefill", "whole", proof)
        proof += f": it fits into one chunk of {chunk:,}"
        return Finding("prefill", _named(chunk), proof, outcome="not_applicable")
    planned_passes = counts.prefill.planned_prompt_passes
    expected = -(-positions // widest)
    proof += f", {planned_passes} of them with the tokens that were due"
    surplus = passes - planned_passes
    return Finding("prefill", _named(widest), proof, min(planned_passes, expected), expected + surplus)


def _compiled(observation: Observation) -> Finding:
    """Matrices that compiled graphs received until the prompt was read; without a replay nothing was reached where the
    pass should have been captured."""
    counts = observation.counts
    reached, expected = counts.prefill.prompt_compiled_matrices, counts.graphs.matrices
    replays = counts.prefill.prompt_replays
    proof = f"compiled code of Inductor received {reached:,} of {expected:,} matrices until the prompt was read"
    if replays:
        proof += f", in {plural(replays, 'replay')}"
    elif observation.plan.generate.prefill_graphs:
        proof, reached = f"{proof}, and no replay of a graph", 0
    return Finding("prefill", "compiled", proof, reached, expected * max(1, replays))


def _unseen(observation: Observation) -> Finding:
    """Of a run in which no pass over a prompt was noted."""
    generate, counts = observation.plan.generate, observation.counts
    planned = "compiled" if generate.prefill_compiled else "captured" if generate.prefill_graphs else "whole"
    if generate.prefill_chunk:
        planned = _named(generate.prefill_chunk)
    if planned != "whole" and counts.requests.batch_requests:  # of its graphs for each length nobody counts replays
        reason = "the passes over the prompts of batches are not counted"
        return Finding("prefill", planned, reason, outcome="not_applicable")
    paged = "continuous batching reads prompts in steps of its own, by batch_tokens"
    default = "no pass over the prompt was seen: one pass is what is made by default"
    return Finding("prefill", "whole", paged if counts.pages.paged_steps else default)


def _named(tokens: int) -> str:
    return next((name for name, size in SIZES.items() if size == tokens), "unknown")
