"""Memory as a witness against what the ledger claims."""

import pytest

from tests.support.runs import arm_records, created, finished
from tokendyno.backend.messages import Loaded
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import doubt


@pytest.mark.parametrize(
    ("measured", "doubted"), [(1000, False), (1020, False), (980, False), (1021, True), (979, True)]
)
def test_more_than_the_tolerance_is_doubted(measured: int, doubted: bool) -> None:
    assert bool(doubt("weights", 1000, measured)) is doubted
    assert doubt("weights", None, measured) == doubt("weights", 0, measured) == doubt("kv", 1000, None) == ""


def test_the_sentence_gives_both_figures_and_the_tolerance() -> None:
    assert doubt("kv", 1000, 1880) == (
        "The memory contradicts this: the KV cache takes 1,880 bytes, +88.0% against the 1,000 predicted for this "
        "choice (tolerance 2%)."
    )


@pytest.mark.parametrize(("weights", "status"), [(2**27, "verified"), (2**26, "partial")])
def test_weights_half_as_large_as_predicted_turn_the_row_of_the_dtype(weights: int, status: str) -> None:
    run = Run(created(arms="A"))
    predicted, *records = arm_records("A", 3)
    loaded = ArmEvent("A", 0, 0.0, Loaded(weights, 10, False))
    for record in (predicted, loaded, *records[:-1], ArmEvent("A", 0, 1.0, finished("x"))):
        run.append(record)
    row, _ = run.ledger("A")
    assert row.status == status
    assert ("-50.0%" in row.reason) is (status == "partial")
