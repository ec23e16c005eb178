"""The forward pass over a prompt: from the time to first token, in one pass or in several, and in the document."""

import json
from typing import Any

import msgspec
import pytest

from tests.support.runs import arm_records, created, encoder, ended, passes
from tokendyno.backend.messages import Finished, Started
from tokendyno.backend.runs.records import ArmEvent, PrefillBound
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.details import PromptPass, detail_rows, prompt_pass, prompt_pass_rows
from tokendyno.backend.views.document import document
from tokendyno.backend.views.schema import KvSeries

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
    (one,) = prompt_pass_rows(PromptPass(256, 1, 0.1, 2_560), bound)
    assert (one.value, one.unit, one.note) == ("100", "ms", "256 tokens, 2,560 tok/s, 25.0% of its memory bound")
    (chunks,) = prompt_pass_rows(PromptPass(8_000, 4, 0.1, 20_000), bound)
    assert chunks.note == "mean of 4 passes, 8,000 tokens, 20,000 tok/s, 6.25% of its memory bound"
    (unbound,) = prompt_pass_rows(PromptPass(256, 1, 0.1, 2_560), None)
    assert unbound.note == "256 tokens, 2,560 tok/s"


def test_it_is_among_the_details_and_in_the_document() -> None:
    made = run(200, read_in=2)
    now = made.snapshot()
    rows = [row.key for row in detail_rows(now, "A")]
    assert "prompt_pass" in rows
    arm: dict[str, Any] = json.loads(msgspec.json.encode(document(made, {"A": KvSeries([1], [1])})))["arms"][0]
    assert arm["prompt_pass"] == {"tokens": 200, "passes": 2, "seconds": 0.05, "tokens_per_s": 2_000}
