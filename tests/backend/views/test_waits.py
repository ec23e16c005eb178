"""What is said of a phase that takes time."""

import pytest

from tokendyno.backend.messages import Amount, PhaseName
from tokendyno.backend.runs.arm_series import Phase
from tokendyno.backend.views.phases import UNKNOWN, duration, wait_text

MIB = 1 << 20


def phase(name: PhaseName, state: str = "step", amount: Amount | None = None) -> Phase:
    return Phase(name, state, 0.0, 3.0, None, "", amount)


@pytest.mark.parametrize(
    ("found", "expected_s", "says"),
    [
        (phase("compile"), {"compile": 61.3}, "about 61 s expected"),
        (phase("compile"), {}, UNKNOWN),
        (phase("compile", "end"), {}, ""),
        (phase("compile", "end"), {"compile": 61.3}, ""),
        (phase("warmup"), {}, ""),
        (phase("warmup"), {"warmup": 0.3}, ""),
        (phase("warmup"), {"warmup": 4.2}, "about 4.2 s expected"),
        (
            phase("download", amount=Amount(300 * MIB, 15_000 * MIB, 85 * MIB)),
            {},
            "300 MiB of 14.6 GiB, 85.0 MiB/s, 2 min 53 s left",
        ),
        (phase("download", amount=Amount(30 * MIB, 90 * MIB, 0.0)), {}, "30.0 of 90.0 MiB, 0 KiB/s"),
        (phase("download", amount=Amount(30 * MIB, None, 2 * MIB)), {}, "30.0 MiB, 2.00 MiB/s"),
        (phase("download", "end", Amount(90 * MIB, 90 * MIB, 2 * MIB)), {}, "90.0 MiB"),
        (phase("download", "end", Amount(0, 0)), {}, ""),  # all of it was here
        (phase("load", amount=Amount(30 * MIB, 90 * MIB)), {"load": 12.0}, "30.0 of 90.0 MiB, about 12 s expected"),
    ],
)
def test_the_words(found: Phase, expected_s: dict[PhaseName, float], says: str) -> None:
    assert wait_text(found, expected_s) == says


def test_durations_are_in_the_units_that_one_waits_in() -> None:
    assert [duration(s) for s in (0.4213, 8.06, 61.3, 165, 180, 4_830)] == [
        "0.421 s",
        "8.1 s",
        "61 s",
        "2 min 45 s",
        "3 min",
        "1 h 20 min",
    ]
