"""What several axes ask of an arm, at the edges of what was measured and read."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.optimizations import subject_of

QWEN = facts("random:Qwen3-0.6B")
SLOW = replace(CPU, bfloat16=(FormatTime(1 << 30, 1, 3.0),), memory_bytes=16 * QWEN.parameters)


@pytest.mark.parametrize(
    ("more_bytes", "dtype"), [(0, "float32"), (-1, "bfloat16"), (1 << 40, "float32"), (-QWEN.parameters, "bfloat16")]
)
def test_float32_stands_for_auto_as_long_as_weights_take_a_quarter_of_the_memory(more_bytes: int, dtype: str) -> None:
    """4 bytes a parameter; past that a model that was fast enough would no longer fit beside others."""
    machine = replace(SLOW, memory_bytes=SLOW.memory_bytes + more_bytes)
    assert subject_of(QWEN, machine, {}).compute_dtype == dtype


def test_the_measurement_counts_that_is_nearest_in_bytes_of_bfloat16_weights() -> None:
    """2 bytes a parameter: half as large, it would be nearer to the first, and twice as large to the last."""
    size = 2 * QWEN.parameters
    times = (FormatTime(size // 2, 1, 1.0), FormatTime(size, 1, 3.0), FormatTime(2 * size, 1, 1.0))
    measured = subject_of(QWEN, replace(SLOW, bfloat16=times), {}).slow_bfloat16
    assert measured == times[1]


@pytest.mark.parametrize(
    ("changes", "choices"),
    [
        ({"dtype": "float16"}, {}),
        ({"kind": "encoder"}, {}),
        ({"quantization": "gptq"}, {}),
        ({}, {"quantization": "quanto-int8"}),
    ],
)
def test_other_weights_than_dense_bfloat16_of_a_decoder_stay_as_the_checkpoint_has_them(
    changes: dict[str, str], choices: dict[str, str]
) -> None:
    model = replace(QWEN, **changes)  # type: ignore[arg-type]
    assert subject_of(QWEN, SLOW, {}).slow_bfloat16 is not None
    assert subject_of(model, SLOW, choices).slow_bfloat16 is None
    assert subject_of(QWEN, replace(H200, bfloat16=SLOW.bfloat16), {}).slow_bfloat16 is None


@pytest.mark.parametrize(("dtype", "half"), [("auto", True), ("float16", True), ("bfloat16", True), ("float32", False)])
def test_half_precision_is_that_of_the_activations(dtype: str, half: bool) -> None:
    assert subject_of(QWEN, H200, {"dtype": dtype}).half_precision is half
