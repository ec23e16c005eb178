"""Batches by the length of their static cache, with what was compiled for each."""

from tokendyno.backend.messages import DECODE, IDLE, PREFILL, Annotation, Steps
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.views.batch_live import MOST_BUCKETS, buckets

PREFILLS = [(40, 10), (100, 20), (30, 12)]
"""Prompt and new tokens of requests that ran one after the other: caches of 128, 256 and 128 slots."""


def test_each_length_has_its_batches_and_the_time_of_its_compile_and_torchs_refusal_is_told() -> None:
    arm, requests = ArmSeries("A"), [TrafficRequest(0.0, new, prompt) for prompt, new in PREFILLS]
    for i, (prompt, _) in enumerate(PREFILLS):
        begin_s = [i + 0.0, i + 0.5]
        steps = Steps(2 * i, begin_s, [one + 0.5 for one in begin_s], [2, 1], [0, 0], [0, 0], [i, -1, i],
                      [PREFILL, IDLE, DECODE], [prompt, 1, 1], [5, -1, 6])  # fmt: skip
        arm.batch.take(steps)
    arm.annotations = [Annotation("recompile", 3, 1.5, 0.25, "a guard"), Annotation("gc", 1, 0.1, 0.2, "collected")]
    short, long = buckets(arm, "buckets", requests)
    assert (short.slots, short.batches, short.compiled) == (128, [(0.0, 1.0), (2.0, 3.0)], [])
    assert short.said == "2 batches, 2 steps after the prompt; compiled in the warm-up"
    assert (long.slots, long.batches, long.compiled) == (256, [(1.0, 2.0)], [(1.5, 1.75)])
    assert long.said.endswith("compiled 1.50 s into the run, in 250 ms")

    arm.annotations.append(Annotation("graph_skip", 5, 2.6, 0.0, "not compiled: Dynamo recompile limit exceeded"))
    assert "torch gave up" in buckets(arm, "buckets", requests)[0].said
    assert len(buckets(arm, "exact", requests)) == len(PREFILLS) <= MOST_BUCKETS
