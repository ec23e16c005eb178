"""The peak of resident memory is the kernel's own: it misses nothing between two samples, and begins anew."""

import mmap
import sys

import pytest

from tokendyno.backend.worker.measure.memory import MemoryMeter, Sampler

MIB = 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak")
def test_a_peak_between_two_samples_is_seen_and_does_not_count_for_the_next_run() -> None:
    meter = MemoryMeter("cpu")
    first = Sampler(meter)
    with first, mmap.mmap(-1, 96 * MIB) as block:
        block.write(b"x" * len(block))
    assert first.peak > first.latest + 90 * MIB
    with Sampler(meter) as second:
        pass
    assert second.peak < first.peak - 90 * MIB
