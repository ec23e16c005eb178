"""Predicted against measured, with the error in percent."""

from backend.checks import Check, checks

FORESEEN = {"weights": 1000, "kv": 100, "workspace": 50, "runtime": 500, "tensors": 1150, "total": 1650}
OWN, WHOLE = "GPU memory of the worker (NVML)", "GPU memory in use on the whole device (NVML)"


def by_part(found: list[Check]) -> dict[str, Check]:
    return {check.part: check for check in found}


def test_every_part_has_its_error() -> None:
    found = by_part(checks(FORESEEN, 1010, (100, 100), 1600, OWN, {"allocator_peak_bytes": 1150.0}))
    assert [check.as_json() for check in found.values()] == [
        {"predicted": 1000, "measured": 1010, "error": 1.0},
        {"predicted": 100, "measured": 100, "error": 0.0},
        {"predicted": 1650, "measured": 1600, "error": -100 * 50 / 1650},
        {"predicted": 1150, "measured": 1150, "error": 0.0},
    ]
    assert found["weights"].tile().note.endswith("+1.00%") and found["peak"].tile().note.endswith("-3.03%")


def test_the_memory_of_a_whole_device_is_not_compared() -> None:
    assert by_part(checks(FORESEEN, 1000, (100, 100), 1600, WHOLE, {}))["peak"].measured is None


def test_on_a_cpu_there_is_no_allocator_to_compare() -> None:
    assert "allocator" not in by_part(checks(FORESEEN, 1000, (100, 100), 1600, OWN, {}))


def test_what_is_missing_is_no_zero() -> None:
    found = checks({}, None, (None, None), 0, OWN, {})
    for check in found:
        assert check.as_json() == {"predicted": None, "measured": None, "error": None}
        assert (check.tile().value, check.tile().note) == ("n/a", "")
