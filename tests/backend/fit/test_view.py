"""What a sliding window saves, and the kinds of what a cache keeps, against arithmetic by hand."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.table import fit
from tokendyno.backend.fit.view import kind_curves, view, window_curves
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.models import resolve

LAST = 32_768


@pytest.mark.parametrize(
    ("title", "layer_bytes", "full", "sliding", "window"),
    [  # bytes of a layer and token: keys and values of each KV head, 2 bytes a number
        ("gpt-oss 20B", 2 * 8 * 64 * 2, 12, 12, 128),
        ("Mistral 7B v0.1", 2 * 8 * 128 * 2, 0, 32, 4_096),
        ("Gemma 3 1B", 2 * 1 * 256 * 2, 4, 22, 512),
    ],
)
def test_curves_end_at_what_their_layers_keep(
    title: str, layer_bytes: int, full: int, sliding: int, window: int
) -> None:
    curve = next(one for one in window_curves(resolve("gpt2"), "float32", 512) if one.title == title)
    assert curve.contexts == [1, window - 1, LAST]
    assert curve.windowed[-1] == layer_bytes * (full * LAST + sliding * (window - 1))
    assert curve.unwindowed[-1] == layer_bytes * (full + sliding) * LAST


def test_the_chosen_model_comes_first_where_it_has_a_window() -> None:
    first, *rest = window_curves(resolve("pocket"), "float32", 512)
    assert first.title == "Pocket, 5M" and len(rest) == 3
    assert {len(window_curves(resolve(name), "bfloat16", 512)) for name in ("gpt-oss-20b", "gpt2")} == {3}


def test_the_curves_reach_a_longer_context_that_is_asked_about() -> None:
    facts = resolve("gpt-oss-20b")
    assert kind_curves(facts, "bfloat16", 100_000).contexts[-1] == 100_000
    own, mistral, _ = window_curves(facts, "bfloat16", 100_000)
    assert (own.contexts[-1], mistral.contexts[-1]) == (100_000, 32_768)


def test_the_curves_of_a_model_count_numbers_in_the_dtype_that_its_row_shows() -> None:
    slow = replace(CPU, bfloat16=(FormatTime(8 << 20, 1, 1.5),))
    for machine, dtype, size in ((CPU, "bfloat16", 2), (slow, "float32", 4)):
        shown = view(fit("pocket", device_of(machine)))
        row, column = shown.rows[0], shown.columns.index("Dtype")
        assert row.cells[column] == dtype and f"Pocket, 5M in {dtype}" in shown.kinds.said
        full, sliding, layer_bytes = 4, 4, 2 * 2 * 32 * size
        assert shown.kinds.kinds["growing"][-1] == full * 4_096 * layer_bytes
        assert shown.windows[0].windowed[-1] == (full * 4_096 + sliding * 127) * layer_bytes
        assert all("in bfloat16: " in curve.said for curve in shown.windows[1:])


@pytest.mark.parametrize(
    ("model", "token_bytes", "flat"),
    [  # bytes that a token adds at the end of the curve, by kind; of what stays, all
        ("LFM2-1.2B", {"growing": 6 * 2 * 8 * 64 * 2}, {"state": 10 * 3 * 2048 * 2}),
        (
            "Qwen3-Next-80B-A3B-Instruct",
            {"growing": 12 * 2 * 2 * 256 * 2},
            {"state": 36 * (8192 * 4 * 2 + 32 * 128**2 * 4)},
        ),
        ("DeepSeek-V2-Lite", {"latent": 27 * (512 + 64) * 2}, {}),
        ("DeepSeek-V3.2", {"latent": 61 * (512 + 64) * 2, "index": 61 * 128 * 2}, {}),
        ("Gemma-3-1b", {"growing": 4 * 2 * 256 * 2}, {"window": 22 * 2 * 256 * 2 * 511}),
        ("bert-base-uncased", {}, {}),
    ],
)
def test_each_kind_has_a_curve_of_its_own(model: str, token_bytes: dict[str, int], flat: dict[str, int]) -> None:
    curves = kind_curves(resolve(model), "bfloat16", 512)
    last = curves.contexts[-1]
    assert {kind: sizes[-1] for kind, sizes in curves.kinds.items()} == {
        **{kind: size * last for kind, size in token_bytes.items()},
        **flat,
    }
    assert all(f"{kind} " in curves.said for kind in curves.kinds)
