"""Told by the ids that each pass of the measured run, or each replay, was given until the prompt was read."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.prefill import SIZES
from tokendyno.backend.plan import Plan
from tokendyno.backend.units import plural
from tokendyno.backend.worker.prove.observation import Observation, products


def find(observation: Observation) -> Finding:
    """Passes that were given just the chunk that was due, of as many as the prompt's positions make. Other passes, and
    positions beyond prompt and tokens, count against them."""
    counts, chunk = observation.counts, observation.plan.generate.prefill_chunk
    if counts.prefill.prompt_compiled_matrices:
        return _compiled(observation)
    if counts.prefill.prompt_replays:
        return _replayed(observation)
    passes, widest = counts.prefill.prompt_passes, counts.prefill.widest_prompt_pass
    positions = counts.prompt.positions
    if not passes:
        choice = _planned_choice(observation.plan)
        if choice != "whole" and counts.requests.batch_requests:  # of its graphs for each length nobody counts replays
            reason = "the passes over the prompts of batches are not counted"
            return Finding("prefill", choice, reason, outcome="not_applicable")
        return Finding("prefill", "whole", _why_unseen(observation))
    proof = f"{positions:,} positions of the prompt in {plural(passes, 'pass')} of at most {widest:,}"
    if passes == 1:
        if not 0 < positions <= chunk:
            return Finding("prefill", "whole", proof)
        proof += f": it fits into one chunk of {chunk:,}"
        return Finding("prefill", _named(chunk), proof, outcome="not_applicable")
    planned_passes = counts.prefill.planned_prompt_passes
    expected = -(-positions // widest)
    repeated = _further_positions(observation, positions) // widest
    proof += f", {planned_passes} of them with the tokens that were due"
    if repeated:
        proof += f"; positions of {repeated} more such passes after them"
    surplus = passes - planned_passes + repeated
    return Finding("prefill", _named(widest), proof, min(planned_passes, expected), expected + surplus)


def _compiled(observation: Observation) -> Finding:
    """Matrices that compiled graphs received until the prompt was read. Passes and products beside them count against
    it; without a replay nothing was reached where the pass should have been captured."""
    counts = observation.counts
    reached, expected = counts.prefill.prompt_compiled_matrices, counts.graphs.matrices
    replays, beside = counts.prefill.prompt_replays, _other_reads(observation)
    proof = f"compiled code of Inductor received {reached:,} of {expected:,} matrices until the prompt was read"
    if replays:
        proof += f", in {plural(replays, 'replay')}"
    elif observation.plan.generate.prefill_graphs:
        proof, reached = f"{proof}, and no replay of a graph", 0
    proof += "".join(f"; {n} {what}" for what, n in beside.items())
    return Finding("prefill", "compiled", proof, reached, expected * max(1, replays) + sum(beside.values()))


def _replayed(observation: Observation) -> Finding:
    """Replays of captured graphs until the prompt was read; passes and products beside them count against it."""
    replays, beside = observation.counts.prefill.prompt_replays, _other_reads(observation)
    proof = f"{plural(replays, 'replay')} read the {observation.counts.prompt.positions:,} positions"
    proof += "".join(f"; {n} {what}" for what, n in beside.items())
    return Finding("prefill", "captured", proof, replays, replays + sum(beside.values()))


def _planned_choice(plan: Plan) -> str:
    """The choice that a plan carries out."""
    generate = plan.generate
    if generate.prefill_chunk:
        return _named(generate.prefill_chunk)
    return "compiled" if generate.prefill_compiled else "captured" if generate.prefill_graphs else "whole"


def _why_unseen(observation: Observation) -> str:
    """Why no pass over a prompt was noted, and what is made then, in words."""
    if observation.counts.pages.paged_steps:
        return "continuous batching reads prompts in steps of its own, by batch_tokens"
    if observation.counts.requests.batch_requests:
        return "each batch reads its prompts in one pass, which is what is made by default"
    return "no pass over the prompt was seen: one pass is what is made by default"


def _other_reads(observation: Observation) -> dict[str, int]:
    """What read the prompt beside the pass that was made for it, in words: in the measured run, and in a profile."""
    reads = {
        "further passes over the prompt by the model's own code": observation.counts.prefill.prompt_passes,
        "products of matrices launched one by one until the first token of a profile": products(
            observation.trace().read
        ),
    }
    return {what: n for what, n in reads.items() if n}


def _named(tokens: int) -> str:
    return next((name for name, size in SIZES.items() if size == tokens), "unknown")


def _further_positions(observation: Observation, positions: int) -> int:
    """Positions that the model was given beyond the prompt and the tokens after it; 0 where nobody counted."""
    counts = observation.counts
    if counts.passes.model_positions is None:
        return 0
    return max(0, counts.passes.model_positions - positions - max(0, counts.passes.passes - 1))
