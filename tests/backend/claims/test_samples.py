"""What a test measured, of one run and of several."""

from backend.claims.samples import Samples, joined


def test_samples_of_several_runs_stand_one_after_the_other() -> None:
    one: Samples = {"A": {"load_s": [1.0]}, "B": {"load_s": [2.0], "kv_bytes": [5.0]}}
    other: Samples = {"A": {"load_s": [3.0]}, "B": {"load_s": [4.0], "kv_bytes": [5.0]}}
    assert joined([one, other]) == {"A": {"load_s": [1.0, 3.0]}, "B": {"load_s": [2.0, 4.0], "kv_bytes": [5.0, 5.0]}}
    assert joined([one]) == one
