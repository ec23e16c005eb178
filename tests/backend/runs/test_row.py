"""What a run is searched by."""

import pytest

from backend.runs.row import choices_text, machine_text, row_of
from tests.support.batches import batch_created
from tests.support.runs import created

H200 = "NVIDIA H200, 140.4 GiB"


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ({"gpu0": H200, "cpu": "Xeon", "cores": "16"}, "NVIDIA H200"),
        ({"gpu0": H200, "gpu1": H200, "cpu": "Xeon"}, "2 x NVIDIA H200"),
        ({"gpu0": H200, "gpu1": "NVIDIA T4, 15 GiB", "gpu10": H200}, "2 x NVIDIA H200, NVIDIA T4"),
        ({"gpu0": H200, "cpu": "Xeon", "cores": "16", "device": "cpu"}, "Xeon, 16 cores"),
        ({"gpu": "none: no driver", "cpu": "Xeon", "cores": "16"}, "Xeon, 16 cores"),
        ({"gpus": "none", "cpu": "Xeon"}, "Xeon"),
        ({}, ""),
    ],
)
def test_a_machine_is_named_by_its_device(machine: dict[str, str], text: str) -> None:
    assert machine_text(machine) == text


def test_a_row_tells_what_kind_of_run_it_was() -> None:
    assert (row_of(created("1", "A")).kind, row_of(batch_created()).kind) == ("run", "batch")


def test_an_arm_is_named_by_its_choices_or_as_the_defaults() -> None:
    assert choices_text({"cache": "static", "loop": "own"}) == "cache=static, loop=own"
    assert choices_text({}) == "defaults"
