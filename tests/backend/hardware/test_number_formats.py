"""What is kept about number formats, and which measurement speaks for a model."""

from pathlib import Path

import pytest

from tokendyno.backend.hardware import bandwidth, detect
from tokendyno.backend.hardware.bandwidth import Bandwidth
from tokendyno.backend.hardware.number_formats import FormatTime, nearest

SMALL = [FormatTime(8 << 20, 1, 2.1), FormatTime(8 << 20, 8, 1.5)]
LARGE = [FormatTime(96 << 20, 1, 1.1), FormatTime(96 << 20, 8, 0.5)]


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def test_the_nearest_size_speaks_and_then_the_nearest_batch() -> None:
    times = SMALL + LARGE
    assert [nearest(times, size, rows) for size, rows in ((10 << 20, 1), (10 << 20, 32), (8 << 30, 1), (1, 8))] == [
        SMALL[0],
        SMALL[1],
        LARGE[0],
        SMALL[1],
    ]
    assert nearest([], 8 << 20, 1) is None


def test_it_is_stored_with_the_bandwidth_and_is_a_fact_of_the_machine() -> None:
    here = detect()
    assert here.bfloat16 == ()
    assert bandwidth.remember(Bandwidth(1e10, 1e10, here.name, "sum", 1.0, SMALL)) == ""
    assert detect().bfloat16 == (() if here.gpus else tuple(SMALL))
