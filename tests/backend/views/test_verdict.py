"""The verdict on a run in one sentence, as a table of cases."""

import dataclasses
from dataclasses import dataclass

import msgspec
import pytest

from tests.support.runs import arm_records, created, encoder, ended, passes
from tokendyno.backend.config import ArmRequest
from tokendyno.backend.runs.records import Status
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.summary import Comparison, Outcome
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.views.comparison import Bytes, arm_names, less_or_more
from tokendyno.backend.views.document import document
from tokendyno.backend.views.verdict import verdict_of, worded

SAME, FROM_37 = TextComparison(None), TextComparison(37)
GIB = 1 << 30


def found(
    ratio: float, low: float | None = None, high: float | None = None, outcome: Outcome = "unknown"
) -> Comparison:
    return Comparison(ratio, low, high, 0.95, 5 if low else 1, outcome)


def faster_b(ratio: float, low: float, high: float) -> Comparison:
    return found(ratio, low, high, "b_faster")


@dataclass
class Case:
    compared: Comparison | None
    memory: tuple[int, int] | None
    kv: tuple[int, int] | None
    texts: TextComparison | None
    says: str


EQUAL = (GIB, GIB)
CASES = [
    # decided
    Case(faster_b(2.6, 2.4, 2.8), (100 * GIB, 84 * GIB), EQUAL, SAME,
         "B ran 2.6× as fast as A (2.4 to 2.8), took 16% less memory, and wrote the same text."),
    Case(found(1 / 2.6, 1 / 2.8, 1 / 2.4, "a_faster"), (84 * GIB, 100 * GIB), EQUAL, FROM_37,
         "B took 2.6× the time of A (2.4 to 2.8), took 19% more memory, and wrote another text from token 37 on."),
    Case(faster_b(1.13, 1.11, 1.15), EQUAL, (512, 750), SAME,
         "B ran 1.13× as fast as A (1.11 to 1.15), kept 46% more KV cache, and wrote the same text."),
    Case(faster_b(1.05, 1.031, 1.07), EQUAL, None, None, "B took 5% less time than A (3% to 7%)."),
    Case(found(1 / 1.05, 1 / 1.07, 1 / 1.031, "a_faster"), EQUAL, None, None,
         "B took 5% more time than A (3% to 7%)."),
    Case(faster_b(1.004, 1.0031, 1.0049), EQUAL, None, None, "B took 0.4% less time than A (0.3% to 0.5%)."),
    Case(faster_b(2.04, 2.03, 2.05), None, None, None, "B ran 2.04× as fast as A (2.03 to 2.05)."),
    Case(faster_b(12345.0, 12000.0, 13000.0), None, None, None, "B ran 12,345× as fast as A (12,000 to 13,000)."),
    Case(faster_b(10.6, 10.3, 10.9), (GIB, 3 * GIB), None, None,
         "B ran 10.6× as fast as A (10.3 to 10.9) and took 3.0× the memory."),
    Case(found(1.002, 0.98, 1.03, "no_difference"), EQUAL, EQUAL, SAME,
         "No difference in speed between B and A: 1.0× (0.98 to 1.03); it wrote the same text."),
    Case(found(1.002, 0.98, 1.03, "no_difference"), (100, 84), EQUAL, SAME,
         "No difference in speed between B and A: 1.0× (0.98 to 1.03); it took 16% less memory and wrote the same "
         "text."),
    # not decided
    Case(found(0.84, 0.0117, 60.47, "undecided"), None, None, None,
         "Not decided: B may be faster or slower than A: 0.84×."),
    # one pair of runs
    Case(found(1.15), EQUAL, (395, 536), SAME,
         "One pair of runs: B took 13% less time per token than A, kept 36% more KV cache, and wrote the same text."),
    Case(found(0.8), (100, 84), EQUAL, FROM_37,
         "One pair of runs: B took 25% more time per token than A, took 16% less memory, and wrote another text from "
         "token 37 on."),
    Case(found(0.4), None, None, None, "One pair of runs: B took 2.5× the time per token of A."),
    Case(found(1.004), EQUAL, None, None, "One pair of runs: B took the same time per token as A (within 1%)."),
    # no pair
    Case(None, (100, 84), EQUAL, SAME, "B took 16% less memory and wrote the same text."),
    Case(None, None, None, None, ""),
]  # fmt: skip


def pair(sizes: tuple[int, int] | None) -> Bytes | None:
    return Bytes(*sizes, 0.01) if sizes else None


@pytest.mark.parametrize("case", CASES, ids=[case.says[:60] for case in CASES])
def test_a_run_is_told_in_one_sentence(case: Case) -> None:
    verdict = worded(case.compared, pair(case.memory), pair(case.kv), case.texts)
    assert verdict.sentence == case.says


def test_one_pair_names_no_winner_and_says_what_gives_the_interval() -> None:
    for ratio in (0.1, 0.99, 1.0, 1.5, 40.0):
        verdict = worded(found(ratio), None, None, None)
        assert "as fast" not in verdict.sentence and verdict.basis == "One pair has no interval: more pairs give one."
    decided = worded(faster_b(2.6, 2.4, 2.8), None, None, None).basis
    assert decided == "Decided after 5 pairs: 95% interval, by mean time per token."


def test_arms_are_called_by_their_names() -> None:
    verdict = worded(faster_b(1.5, 1.4, 1.6), None, None, SAME, names={"A": "bfloat16", "B": "static cache"})
    assert verdict.sentence == "Static cache ran 1.5× as fast as bfloat16 (1.4 to 1.6) and wrote the same text."


def test_an_arm_that_differs_by_a_choice_that_it_has_not_is_called_so() -> None:
    whole = created(arms="AB")
    arms = [ArmRequest("A", {"parallel": "tensor-2"}), ArmRequest("B", {"speculation": "prompt-lookup"})]
    run = Run(msgspec.structs.replace(whole, request=msgspec.structs.replace(whole.request, arms=arms)))
    assert arm_names(run) == {"A": "tensor parallel, 2 ranks, no speculation", "B": "one device, prompt lookup"}


def test_memory_within_the_noise_of_the_device_is_not_mentioned() -> None:
    for b, noise, says in ((104, 0.05, ""), (104, 0.01, "B took 4% more memory."), (96, 0.05, "")):
        assert worded(None, Bytes(100, b, noise), None, None).sentence == says


def test_an_encoder_is_told_in_passes() -> None:
    assert "time per forward pass" in worded(found(1.5), None, None, None, "forward").sentence
    assert "mean time per forward pass" in worded(faster_b(2.0, 1.9, 2.1), None, None, None, "forward").basis


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (0.0, ""),
        (0.0004, ""),
        (0.004, "0.4% more"),
        (-0.16, "16% less"),
        (0.99, "99% more"),
        (1.6, "2.6×"),
        (19, "20.0×"),
    ],
)
def test_a_share_in_words(change: float, says: str) -> None:
    assert less_or_more(change) == says


# --- of a whole run -------------------------------------------------------------------------------


def run_of(status: Status = "done", arms: str = "AB", b_tokens: int = 64, b_done: bool = True) -> Run:
    run = Run(created(arms=arms))
    for record in arm_records("A", 64):
        run.append(record)
    if "B" in arms:
        for record in arm_records("B", b_tokens, done=b_done):
            run.append(record)
    run.append(ended(status))
    return run


def test_a_finished_run_has_its_kv_caches_compared_if_both_texts_are_as_long() -> None:
    assert "took the same time per token as" in verdict_of(run_of().snapshot()).sentence
    assert "more KV cache" not in verdict_of(run_of(b_tokens=50).snapshot()).sentence


def test_arms_of_other_lengths_are_said_to_be_compared_over_what_both_have() -> None:
    assert verdict_of(run_of(b_tokens=50).snapshot()).basis.endswith("; compared over the first 50 tokens of both.")
    assert "compared over" not in verdict_of(run_of().snapshot()).basis


@pytest.mark.parametrize(
    ("requested", "planned", "says"),
    [
        (
            ("auto", "auto"),
            ("bfloat16", "float32"),
            "Dtype (A auto, which came to bfloat16; B auto, which came to float32)",
        ),
        (("bfloat16", "auto"), ("bfloat16", "float32"), "Dtype (A bfloat16; B auto, which came to float32)"),
        (("auto", "auto"), ("float32", "float32"), ""),
        (("bfloat16", "float32"), ("bfloat16", "float32"), ""),
    ],
)
def test_what_differs_although_nobody_named_it_is_said(
    requested: tuple[str, str], planned: tuple[str, str], says: str
) -> None:
    first = created()
    arms = [
        msgspec.structs.replace(
            arm, requested={**arm.requested, "dtype": requested[i]}, planned={**arm.planned, "dtype": planned[i]}
        )
        for i, arm in enumerate(first.arms)
    ]
    run = Run(msgspec.structs.replace(first, arms=arms))
    for record in [*arm_records("A", 9), *arm_records("B", 9), ended()]:
        run.append(record)
    said = f"The arms also differ in what an arm leaves open: {says}." if says else ""
    assert verdict_of(run.snapshot()).unasked == said, "the cache was asked for"
    written = document(run).unasked
    assert written == ({"dtype": planned} if says else msgspec.UNSET)


def test_a_batch_says_of_which_its_rate_is() -> None:
    first = created(arms="A")
    work = dataclasses.replace(first.request.workload, batch_size=2)
    run = Run(msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, workload=work)))
    for record in [*arm_records("A", 9), ended()]:
        run.append(record)
    assert "generates 100 tokens/s per sequence (200 for the whole batch)" in verdict_of(run.snapshot()).sentence


def test_what_did_not_finish_has_no_verdict() -> None:
    for run in (run_of("interrupted"), run_of("cancelled", b_done=False)):
        assert verdict_of(run.snapshot()).sentence == ""


def test_a_single_arm_is_told_alone() -> None:
    assert verdict_of(run_of(arms="A").snapshot()).sentence == (
        "A generates 100 tokens/s and takes 513 MiB of memory at its peak."
    )
    passing = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        passing.append(record)
    assert "runs 100 passes/s" in verdict_of(passing.snapshot()).sentence
