"""What a test measured, of one run and of several."""

import msgspec
import pytest

from tests.support.runs import created, finished, tokens
from tokendyno.backend.claims.samples import Samples, joined, samples
from tokendyno.backend.messages import Loaded, RankMemory
from tokendyno.backend.runs.records import ArmEvent
from tokendyno.backend.runs.run import Run


def test_samples_of_several_runs_stand_one_after_the_other() -> None:
    one: Samples = {"A": {"load_s": [1.0]}, "B": {"load_s": [2.0], "kv_bytes": [5.0]}}
    other: Samples = {"A": {"load_s": [3.0]}, "B": {"load_s": [4.0], "kv_bytes": [5.0]}}
    assert joined([one, other]) == {"A": {"load_s": [1.0, 3.0]}, "B": {"load_s": [2.0, 4.0], "kv_bytes": [5.0, 5.0]}}
    assert joined([one]) == one


@pytest.mark.parametrize(("of", "told"), [("rank", True), ("device", False)])
def test_the_peak_of_one_device_is_not_set_against_weights_on_several(of: str, told: bool) -> None:
    run = Run(created(arms="A"))
    part = msgspec.convert({"weight_bytes": 30, "kv_bytes": 1, "peak_bytes": 40, "of": of}, RankMemory)
    run.append(ArmEvent("A", 0, 0.5, Loaded(60, 30, False)))
    run.append(ArmEvent("A", 0, 1.0, tokens(0, 3, "abc")))
    run.append(ArmEvent("A", 0, 1.1, msgspec.structs.replace(finished("abc"), ranks=[part, part])))
    found = samples(run.snapshot())["A"]
    assert ("temporary_bytes" in found) is told and found["weight_bytes"] == [60.0]
