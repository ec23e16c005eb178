"""Time in which the GPU works: overlapping kernels count once. tests/gpu/test_measure.py runs it on a GPU."""

import pytest

pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0),
        ([(0, 1)], 1),
        ([(0, 1), (1, 2)], 2),
        ([(0, 1), (3, 4)], 2),
        ([(0, 4), (1, 2)], 4),
        ([(2, 5), (0, 3)], 5),
        ([(0, 2), (0, 2), (1, 3)], 3),
    ],
)
def test_what_overlaps_counts_once(spans: list[tuple[float, float]], length: float) -> None:
    from backend.worker.prove.gpu_busy import covered

    assert covered(spans) == length


def test_too_few_steps_tell_nothing() -> None:
    from backend.worker.prove.gpu_busy import step_busy_s

    assert step_busy_s(lambda n: pytest.fail("it was run"), 3) is None
