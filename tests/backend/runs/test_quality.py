"""Two arms over given texts, against figures worked out by hand."""

import math
from collections.abc import Mapping

import msgspec
import pytest

from tests.support.batches import batch_created
from tests.support.runs import arm_records, created, ended
from tokendyno.backend.config import ArmRequest, Request, reading_of
from tokendyno.backend.messages import Loaded, Scored
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import Gate, finer_arm, gate_of, readings, same_pair, whole_reading
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created, WaitKeys
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.store import Store

ASKED = Quality([QualityText("one", "First."), QualityText("two", "Second.")])
A = [Scored([5, 6, 7, 8], [1.0, 2.0, 3.0, 2.0], [5, 6, 1, 1]), Scored([9, 9], [0.0, 4.0], [9, 2])]
B = [
    Scored([5, 6, 7, 8], [1.5, 2.0, 3.5, 3.0], [5, 6, 1, 2], [0.0, 0.1, 0.3, 0.2]),
    Scored([9, 9], [0.0, 4.0], [9, 2], [0.0, 0.0]),
]


def run_of(model: str = "pocket", **arms: list[Scored]) -> Run:
    named = [ArmRequest(name) for name in arms]
    planned = [ArmPlanned(name, {}, {}, []) for name in arms]
    run = Run(Created("r", 0.0, Request(model, named, reading_of(ASKED), None, ASKED), planned, "", "", {}, "cpu"))
    for name, scores in arms.items():
        for event in scores:
            run.append(ArmEvent(name, 0, 1.0, event))
    return run


def test_each_text_and_all_of_them() -> None:
    now = run_of(A=A, B=B).snapshot()
    first, second = readings(now)
    assert (first.name, first.positions, second.name, second.positions) == ("one", 4, "two", 2)
    assert first.arms["A"].perplexity == pytest.approx(math.exp(2.0))
    assert first.arms["B"].nll_nats == 2.5
    difference = first.difference
    assert difference is not None
    assert difference.perplexity_ratio == pytest.approx(math.exp(0.5))
    assert difference.kl_nats == pytest.approx(0.15) and difference.kl_max_nats == 0.3
    assert (difference.top1_agreement, difference.first_divergence) == (0.75, 3)
    half = 3.18245 * math.sqrt(0.5 / 3) / 2  # of 0.5, 0, 0.5 and 1: three degrees of freedom
    assert math.log(difference.perplexity_high) == pytest.approx(0.5 + half, rel=1e-4)
    assert math.log(difference.perplexity_low) == pytest.approx(0.5 - half, rel=1e-4)
    whole = whole_reading(now)
    assert whole is not None and whole.difference is not None
    assert (whole.positions, whole.difference.first_divergence) == (6, 3)
    assert whole.difference.kl_nats == pytest.approx(0.1)
    assert whole.difference.top1_agreement == pytest.approx(5 / 6)


def test_arms_that_agree_have_no_divergence() -> None:
    two = readings(run_of(A=A, B=B).snapshot())[1].difference
    assert two is not None and two.first_divergence is None
    assert (two.perplexity_ratio, two.perplexity_low, two.perplexity_high) == (1.0, 1.0, 1.0)


def test_while_b_reads_its_second_text_only_the_first_counts() -> None:
    now = run_of(A=A, B=B[:1]).snapshot()
    assert [reading.name for reading in readings(now)] == ["one"]
    whole = whole_reading(now)
    assert whole is not None and whole.positions == 4


def test_one_arm_has_perplexities_and_nothing_to_compare() -> None:
    first, _ = readings(run_of(A=A).snapshot())
    assert first.difference is None and first.arms["A"].nll_nats == 2.0


def test_arms_that_read_different_positions_are_never_compared() -> None:
    """As a file that was made elsewhere may have them."""
    for short in (Scored([9], [0.0], [9, 2], [0.0]), Scored([9, 9], [0.0, 4.0], [9], [0.0, 0.0])):
        with pytest.raises(ValueError, match="zip"):
            readings(run_of(A=A, B=[B[0], short]).snapshot())


def test_before_any_text_there_is_nothing() -> None:
    now = run_of(A=A, B=[]).snapshot()
    assert readings(now) == [] and whole_reading(now) is None
    assert readings(run_of().snapshot()) == [] and whole_reading(run_of().snapshot()) is None


# --- the gate --------------------------------------------------------------------------------------


def planned(first: Created, plans: Mapping[str, Mapping[str, str]], keys: str, run_id: str = "") -> Created:
    """The same with these choices, and a letter as the key of each plan."""
    arms = [
        msgspec.structs.replace(arm, planned={**arm.planned, **plans.get(arm.name, {})}, waits=WaitKeys(plan=key))
        for arm, key in zip(first.arms, keys, strict=True)
    ]
    return msgspec.structs.replace(first, arms=arms, id=run_id or first.id)


def compared(plans: Mapping[str, Mapping[str, str]], same_text: bool, keys: str = "ab", model: str = "pocket") -> Run:
    first = planned(created(), plans, keys)
    first = msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, model=model))
    run = Run(first)
    for record in [*arm_records("A", 64), *arm_records("B", 64 if same_text else 50), ended()]:
        run.append(record)
    return run


def known(run: Run, *readings: tuple[str, str]) -> Gate | None:
    """The gate of a run, in a log with readings: (keys of the plans, status)."""
    log = RunLog(Store(None))
    for number, (keys, status) in enumerate(readings):
        first = planned(run_of(model=run.request.model, A=A, B=B).created, {}, keys, f"read{number}")
        log.create(msgspec.structs.replace(first, created=float(number)))
        for name, scores in (("A", A), ("B", B)):
            for event in scores:
                log.append(first.id, ArmEvent(name, 0, 1.0, event))
        if status:
            log.append(first.id, ended("done" if status == "done" else "cancelled"))
    return gate_of(run.snapshot(), log.reading)


FORMAT = {"A": {"dtype": "float32"}}


def test_the_same_text_in_the_same_format_needs_no_reading() -> None:
    assert known(compared({}, same_text=True)) == Gate("settled")
    equal = {name: {"cache": "dynamic"} for name in "AB"}
    assert known(compared(equal, same_text=False)) == Gate("settled"), "the same plan"
    for run in (compared({}, same_text=False), compared(FORMAT, same_text=True)):
        assert known(run) == Gate("unread")
    quantized = {"B": {"cache": "quantized-hqq4"}}
    assert known(compared(quantized, same_text=True)) == Gate("unread"), "a cache of another number format"


def test_a_reading_counts_for_the_same_two_plans_only() -> None:
    run = compared(FORMAT, same_text=False)
    for others in (("ax", "done"), ("xb", "done"), ("ab", "stopped"), ("ab", "")):
        assert known(run, others) == Gate("unread"), others
    gate = known(run, ("ab", "done"), ("ba", "done"), ("ab", "done"), ("ab", "stopped"))
    assert gate is not None and (gate.state, gate.run, gate.swapped) == ("read", "read2", False), "the newest whole"
    assert gate.difference is not None and gate.positions == 6
    swapped = known(run, ("ba", "done"))
    assert swapped is not None and swapped.swapped
    for name, scores in (("A", A), ("B", B)):
        for event in scores:
            run.append(ArmEvent(name, 0, 2.0, event))
    own = known(run, ("ba", "done"))
    assert own is not None and (own.run, own.swapped) == (run.created.id, False), "what it read itself comes first"


def test_a_reading_leads_to_the_newest_run_that_compared_its_arms_to_the_end() -> None:
    log = RunLog(Store(None))
    reading = planned(run_of(A=A, B=B).created, {}, "ab", "reading")
    for number, (keys, status) in enumerate([("ax", "done"), ("ab", "done"), ("ba", "done")]):
        log.create(planned(created(at_s=float(number)), {}, keys, f"{keys}{number}"))
        log.append(f"{keys}{number}", ended(status))  # type: ignore[arg-type]
    log.create(planned(created(at_s=5.0), {}, "ab", "stopped"))
    log.append("stopped", ended("cancelled"))
    log.create(planned(created(at_s=6.0), {}, "ab", "going on"))
    log.create(msgspec.structs.replace(reading, id="read too", created=7.0))
    log.append("read too", ended())
    assert log.compared(reading) == "ab1"
    assert log.compared(planned(reading, {}, "xy")) == ""


def test_plans_of_older_versions_and_other_visitors_tell_nothing() -> None:
    reading = run_of(A=A, B=B).created
    assert not same_pair(reading, created()), "without keys nothing is known to be equal"
    mine = planned(created(owner="me"), {}, "ab")
    assert not same_pair(planned(reading, {}, "ab"), mine)
    assert same_pair(msgspec.structs.replace(planned(reading, {}, "ab"), owner="me"), mine)


def test_a_reading_of_other_texts_is_not_that_of_a_run_with_a_text_of_its_own() -> None:
    reading = planned(run_of(A=A, B=B).created, {}, "ab")
    for text, read in ((ASKED.texts[0], True), (QualityText("mine", "Third."), False)):
        run = planned(created(), {}, "ab")
        run = msgspec.structs.replace(run, request=msgspec.structs.replace(run.request, reading=[text]))
        assert same_pair(reading, run) is read, text.name


@pytest.mark.parametrize(
    ("dtypes", "quantization", "a", "b", "finer"),
    [
        (["bfloat16", "float32"], "none", 100, 200, "B"),
        (["float32", "bfloat16"], "none", 200, 100, "A"),
        (["bfloat16", "float32"], "none", 1000, 1100, ""),
        (["bfloat16", "float32"], "none", 1000, 1101, "B"),
        (["bfloat16", "float32"], "none", 200, 100, "B"),
        (["float32", "float32"], "bnb-fp4", 200, 100, "A"),
        (["bfloat16", "float32"], "none", 100, 105, ""),
        (["bfloat16", "float32"], "none", 0, 0, ""),
        (["bfloat16", "float32"], "quanto-int4", 100, 200, "A"),
        (["float32", "float32"], "quanto-int8", 200, 100, "A"),
    ],
)
def test_of_clearly_different_bytes_the_arm_that_rounds_less_far_has_the_finer_weights(
    dtypes: list[str], quantization: str, a: int, b: int, finer: str
) -> None:
    plans = {name: {"dtype": dtype} for name, dtype in zip("AB", dtypes, strict=True)}
    plans["B"]["quantization"] = quantization
    run = compared(plans, same_text=False)
    for name, size in (("A", a), ("B", b)):
        if size:
            run.append(ArmEvent(name, 0, 1.0, Loaded(size, 1, False)))
    assert finer_arm(run.snapshot()) == finer


def test_random_weights_have_no_quality_but_can_be_read() -> None:
    run = compared(FORMAT, same_text=False, model="Random:gpt2")
    assert known(run) == Gate("random", random=True)
    gate = known(run, ("ab", "done"))
    assert gate is not None and gate.state == "read" and gate.random


@pytest.mark.parametrize("change", ["one arm", "encoder", "requests", "texts"])
def test_a_gate_is_for_two_arms_that_generate_from_one_prompt(change: str) -> None:
    first = {
        "one arm": created(arms="A"),
        "encoder": msgspec.structs.replace(created(), unit="forward"),
        "requests": batch_created(),
        "texts": run_of(A=A, B=B).created,
    }[change]
    assert known(compared({}, same_text=True)) is not None
    assert known(Run(first)) is None


@pytest.mark.parametrize("arms", ["A", "ABC"])
def test_a_pair_is_of_two_arms(arms: str) -> None:
    read = {"A": run_of(A=A), "ABC": run_of(A=A, B=B, C=B)}[arms]
    reading = planned(read.created, {}, arms.lower())
    assert not same_pair(reading, planned(created(arms=arms), {}, arms.lower()))
    both = planned(run_of(A=A, B=B).created, {}, "ab")
    assert same_pair(both, planned(created(), {}, "ab")) and not same_pair(both, planned(created(), {}, "ab"), True)
    assert same_pair(both, planned(created(), {}, "ba"), swapped=True)
    assert not same_pair(planned(created(), {}, "ab"), planned(created(), {}, "ab")), "that one read no text"
