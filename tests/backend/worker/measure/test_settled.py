"""Memory that torch's GPU allocator cannot return counts as left: the process holds it at the next run's peak."""

from unittest import mock

import pytest

from tokendyno.backend.worker.measure.memory import MemoryMeter

MIB = 1 << 20


class Segments:
    """An allocator whose segments go back only when nothing in them is in use."""

    def __init__(self, *segments: tuple[int, int]) -> None:
        self.segments = list(segments)  # (size, in use) in bytes

    @property
    def reserved(self) -> int:
        return sum(size for size, _ in self.segments)

    def empty_cache(self) -> None:
        self.segments = [(size, used) for size, used in self.segments if used]


@pytest.mark.parametrize(
    ("segments", "left"),
    [
        (((512 * MIB, 0), (20 * MIB, 20 * MIB)), 20 * MIB),  # free segments go back
        (((512 * MIB, 6 * MIB), (20 * MIB, 20 * MIB)), 532 * MIB),  # six of 512 are in use, and pin the rest
    ],
)
def test_what_cannot_be_returned_counts(segments: tuple[tuple[int, int], ...], left: int) -> None:
    allocator, meter = Segments(*segments), MemoryMeter("cpu")
    meter.device = "cuda"
    meter._ask = lambda: allocator.reserved
    with mock.patch("torch.cuda.empty_cache", allocator.empty_cache):
        assert meter.settled() == left
