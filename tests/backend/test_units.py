"""Numbers become words once: three significant digits and a unit."""

import math

import pytest

from tokendyno.backend.units import bytes_text, interval_text, plural, seconds_text, three


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (2.5, "2.50"),
        (123.4, "123"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1234, "1,230"),
        (0.1, "0.100"),
        (0.00123, "0.00123"),
        (-19.04, "-19.0"),
        (math.nan, "n/a"),
        (math.inf, "n/a"),
    ],
)
def test_three_significant_digits_without_an_exponent(value: float, text: str) -> None:
    assert three(value) == text


@pytest.mark.parametrize("value", [10.0**e * d for e in range(-6, 10) for d in (1, 1.0049, 2.345, 9.994, 9.996)])
def test_never_more_than_half_a_digit_off(value: float) -> None:
    shown = float(three(value).replace(",", ""))
    assert shown == pytest.approx(value, rel=0.0051)
    assert len(three(value).replace(",", "").replace(".", "").strip("0")) <= 3


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 KiB"),
        (1024, "1.00 KiB"),
        ((1 << 20) - 1, "1,024 KiB"),
        (1 << 20, "1.00 MiB"),
        (234_117_572_864, "218 GiB"),
    ],
)
def test_bytes(size: int, text: str) -> None:
    assert " ".join(bytes_text(size)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 ms"), (0.0001234, "0.123 ms"), (0.019, "19.0 ms"), (0.5, "500 ms"), (1, "1.00 s"), (75.3, "75.3 s")],
)
def test_seconds(seconds: float, text: str) -> None:
    assert " ".join(seconds_text(seconds)) == text


def test_one_thing_has_no_s() -> None:
    assert [plural(count, "run") for count in (0, 1, 2, 1000)] == ["0 runs", "1 run", "2 runs", "1,000 runs"]
    assert [plural(2, noun) for noun in ("pass", "batch", "token")] == ["2 passes", "2 batches", "2 tokens"]


@pytest.mark.parametrize(
    ("low", "high", "both", "text"),
    [
        (0.0266, 0.0316, (), "29.0 ms (26.6 to 31.6)"),
        (0.00009, 9.35, (0.030, 0.028), "29.0 ms (2 runs: 28.0 and 30.0)"),
        (0.00009, 9.35, (), "29.0 ms (0.0900 ms to 9.35 s)"),
        (0.0289, 0.0291, (0.029, 0.029), "29.0 ms (28.9 to 29.1)"),
        (None, None, (), "29.0 ms"),
    ],
)
def test_an_interval_wider_than_a_mean_of_two_gives_way_to_the_two(
    low: float | None, high: float | None, both: tuple[float, ...], text: str
) -> None:
    assert interval_text(seconds_text, 0.029, low, high, both) == text
