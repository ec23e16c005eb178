"""Told by the steps that the custom loop took in the measured run and in a profile of a few extra tokens."""

from tokendyno.backend.evidence import Finding
from tokendyno.backend.optimizations.axes.loop import LOOP_NAME, STEP_NAME
from tokendyno.backend.worker.prove.observation import Observation


def find(observation: Observation) -> Finding:
    """Counts the custom loop's steps in the measured run, against its passes, and in a profile."""
    trace, counts = observation.trace(), observation.counts
    steps, passes = counts.passes.own_steps, counts.passes.passes
    traced = trace.ops[STEP_NAME] if trace.ops[LOOP_NAME] else 0
    if not steps and not trace.ops[LOOP_NAME]:
        proof = f"{passes} passes, and {trace.steps} more in a profile, without a step of the custom decode loop"
        return Finding("loop", "generate", proof, passes, max(1, passes))
    prompts = counts.static.batches or 1  # of many requests, one of each batch
    expected = max(0, passes - prompts) + max(0, trace.steps - 1)  # the prompt's pass is no step
    reached = min(steps, max(0, passes - prompts)) + min(traced, max(0, trace.steps - 1))
    prefills = "a prefill" if prompts == 1 else f"{prompts} prefills"
    proof = (
        f"{prefills} and {steps} steps of the custom decode loop in a run of {passes} passes; {traced} steps in "
        f"{trace.steps} further passes"
    )
    return Finding("loop", "own", proof, reached, expected)
