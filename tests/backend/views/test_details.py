"""Detail rows: memory against its prediction, and the pass over the prompt."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.runs import arm_records, created, encoder, ended, finished, passes, tokens
from tokendyno.backend.counts import Memory
from tokendyno.backend.messages import Finished, Loaded, RankMemory, Started
from tokendyno.backend.runs.records import ArmEvent, Predicted, PrefillBound, decode_record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.details import (
    MemoryCheck,
    PromptPass,
    detail_rows,
    memory_checks,
    memory_checks_of,
    prompt_pass,
    prompt_pass_rows,
)
from tokendyno.backend.views.document import document

PREDICTED = {"weights": 1000, "kv": 100, "workspace": 50, "runtime": 500, "tensors": 1150, "total": 1650}
OWN, WHOLE = "GPU memory of the worker (NVML)", "GPU memory in use on the whole device (NVML)"


def by_part(checks: list[MemoryCheck]) -> dict[str, MemoryCheck]:
    return {check.part: check for check in checks}


def test_every_part_has_its_error() -> None:
    checks = by_part(memory_checks(PREDICTED, 1010, (100, 100), 1600, OWN, Memory(allocator_peak_bytes=1150)))
    assert [(check.predicted, check.measured, check.error_percent) for check in checks.values()] == [
        (1000, 1010, 1.0),
        (100, 100, 0.0),
        (1650, 1600, -100 * 50 / 1650),
        (1150, 1150, 0.0),
    ]
    assert checks["weights"].tile().note.endswith("+1.00%") and checks["peak"].tile().note.endswith("-3.03%")


def test_the_memory_of_a_whole_device_is_not_compared() -> None:
    assert by_part(memory_checks(PREDICTED, 1000, (100, 100), 1600, WHOLE, Memory()))["peak"].measured is None


def test_on_a_cpu_there_is_no_allocator_to_compare() -> None:
    assert "allocator" not in by_part(memory_checks(PREDICTED, 1000, (100, 100), 1600, OWN, Memory()))


def test_what_the_allocator_of_a_gpu_kept_beside_tensors_is_told() -> None:
    def note(kept_bytes: float) -> str:
        counts = Memory(allocator_peak_bytes=9 * 10**9, allocator_reserved_bytes=9 * 10**9 + int(kept_bytes))
        return (
            by_part(memory_checks({"total": 10**10}, None, (None, None), 11 * 10**9, OWN, counts))["peak"].tile().note
        )

    assert note(2.0**30).endswith("+10.00%; torch's allocator kept 1.00 GiB that no tensor used")
    assert note(1e8).endswith("+10.00%")


@pytest.mark.parametrize("gpus", [1, 2])
def test_figures_of_one_of_several_gpus_say_so(gpus: int) -> None:
    run = Run(msgspec.structs.replace(created(arms="A"), device="cuda"))
    for record in arm_records("A", 3, done=False):
        run.append(record)
    ranks = [RankMemory(10, 2, 20, of="device")] * gpus * (gpus > 1)
    extra = {"allocator_peak_bytes": 2.0**30, "allocator_now_bytes": 2.0**29}
    run.append(ArmEvent("A", 0, 1.0, msgspec.structs.replace(finished("x"), extra=extra, ranks=ranks)))
    notes = {row.key: row.note for row in detail_rows(run.snapshot(), "A")}
    assert [key for key in ("allocator", "allocator_now") if "on the first GPU" in notes[key]] == (
        ["allocator", "allocator_now"] if gpus > 1 else []
    )


def test_a_margin_stands_beside_the_prediction_that_states_one() -> None:
    checks = by_part(
        memory_checks({"total": 600 << 20, "margin": 90 << 20}, None, (None, None), 660 << 20, OWN, Memory())
    )
    assert checks["peak"].tile().note == "predicted 600 MiB \u00b1 15%, +10.00%" and checks["peak"].margin_percent == 15
    silent = by_part(memory_checks({"total": 600 << 20}, None, (None, None), 660 << 20, OWN, Memory()))
    assert silent["peak"].tile().note == "predicted 600 MiB, +10.00%"


def test_what_is_missing_is_no_zero() -> None:
    checks = memory_checks({}, None, (None, None), 0, OWN, Memory())
    for check in checks:
        assert (check.predicted, check.measured, check.error_percent) == (None, None, None)
        assert (check.tile().value, check.tile().note) == ("n/a", "")


def checks_of(run: Run) -> dict[str, MemoryCheck]:
    now = run.snapshot()
    return by_part(memory_checks_of(now, "A"))


def test_what_was_measured_stands_beside_what_was_predicted() -> None:
    run = Run(created(arms="A"))
    run.append(Predicted("A", [], memory={"weights": 1000, "kv": 10, "tensors": 1100, "total": 2000}))
    run.append(ArmEvent("A", 0, 0.0, Started(5, 1, 101, [])))
    run.append(ArmEvent("A", 0, 0.0, Loaded(1000, 1, False)))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 10, "x" * 10)))
    checks = checks_of(run)
    weights = checks["weights"]
    assert (weights.predicted, weights.measured, weights.error_percent) == (1000, 1000, 0.0)
    assert checks["peak"].predicted == 2000


def test_a_prediction_stored_by_an_older_version_has_no_memory_to_compare() -> None:
    run = Run(created(arms="A"))
    run.append(decode_record(b'{"record":"foretold","arm":"A","points":[{"length":5,"sliding":1,"full":2}]}'))
    assert all(check.predicted is None for check in checks_of(run).values())


# --- the pass over the prompt ----------------------------------------------------------------------

TTFT_S = 0.1  # of `arm_records`


def run(tokens: int = 10, batch: int = 1, read_in: int | None = None, done: bool = True) -> Run:
    made = Run(created(arms="A"))
    for record in [*arm_records("A", 4, done=done), *([ended()] if done else [])]:
        if isinstance(record, ArmEvent) and isinstance(record.event, Started):
            record = msgspec.structs.replace(record, event=Started(tokens, batch, 64, []))
        if isinstance(record, ArmEvent) and isinstance(record.event, Finished):
            counts = {} if read_in is None else {"prompt_passes": float(read_in)}
            record = msgspec.structs.replace(record, event=msgspec.structs.replace(record.event, extra=counts))
        made.append(record)
    return made


def found(made: Run) -> PromptPass | None:
    now = made.snapshot()
    return prompt_pass(now, "A")


@pytest.mark.parametrize(
    ("made", "tokens", "count"),
    [
        (run(200), 200, 1),
        (run(200, 3), 600, 1),
        (run(5_000, read_in=3), 5_000, 3),
        (run(200, read_in=0), 200, 1),  # read by a replay
        (run(200, done=False), 200, 1),
    ],
)
def test_it_is_the_time_to_first_token_shared_by_its_passes(made: Run, tokens: int, count: int) -> None:
    one = found(made)
    assert one is not None and (one.tokens, one.passes) == (tokens, count)
    assert (one.seconds, one.tokens_per_s) == pytest.approx((TTFT_S / count, tokens / TTFT_S))


def test_an_encoder_and_an_arm_without_a_token_have_none() -> None:
    bare, begun = Run(encoder()), Run(created(arms="A"))
    for record in passes("A", 4):
        bare.append(record)
    assert found(bare) is None and found(begun) is None
    assert prompt_pass_rows(None, PrefillBound(0.01, "compute", "")) == []


def test_its_row_says_how_many_tokens_how_fast_and_against_which_limit() -> None:
    bound = PrefillBound(0.025, "memory", "")
    (row,) = prompt_pass_rows(PromptPass(256, 1, 0.1, 2_560), bound)
    assert (row.value, row.unit, row.note) == ("100", "ms", "256 tokens, 2,560 tok/s, 25.0% of its memory bound")
    (chunks,) = prompt_pass_rows(PromptPass(8_000, 4, 0.1, 20_000), bound)
    assert chunks.note == "mean of 4 passes, 8,000 tokens, 20,000 tok/s, 6.25% of its memory bound"
    (unbound,) = prompt_pass_rows(PromptPass(256, 1, 0.1, 2_560), None)
    assert unbound.note == "256 tokens, 2,560 tok/s"


def test_it_is_among_the_details_and_in_the_document() -> None:
    made = run(200, read_in=2)
    now = made.snapshot()
    rows = [row.key for row in detail_rows(now, "A")]
    assert "prompt_pass" in rows
    arm: dict[str, Any] = json.loads(msgspec.json.encode(document(made)))["arms"][0]
    assert arm["prompt_pass"] == {"tokens": 200, "passes": 2, "seconds": 0.05, "tokens_per_s": 2_000}
