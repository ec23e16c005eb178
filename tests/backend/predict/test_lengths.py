"""What lengths are padded to, and how long a warm-up is: a few tokens, or as many as get past a sliding window."""

import pytest

from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import cache_places, past_window, rounded, warm_up_tokens


@pytest.mark.parametrize(
    ("prompt", "length", "window", "tokens"),
    [
        (10, 100, 0, 8),
        (10, 13, 0, 3),  # no more than the run
        (10, 11, 0, 2),  # but the prompt, and one step
        (100, 200, 128, 34),  # six tokens past the window
        (126, 200, 128, 8),
        (100, 110, 128, 10),
    ],
)
def test_a_warm_up_takes_eight_tokens_or_gets_past_the_window(
    prompt: int, length: int, window: int, tokens: int
) -> None:
    assert warm_up_tokens(prompt, length, window) == tokens


@pytest.mark.parametrize(
    ("prompt", "length", "group", "tokens"),
    [
        (10, 400, 1, 126),
        (10, 129, 1, 121),  # the run ends soon after: eight tokens are left
        (10, 400, 64, 64),  # whole groups of a quantized cache
        (127, 400, 1, 126),
        (128, 400, 1, 0),  # its own prompt fills the window
        (10, 128, 1, 0),  # it never fills it
    ],
)
def test_a_prompt_for_the_warm_up_ends_just_before_the_window(
    prompt: int, length: int, group: int, tokens: int
) -> None:
    assert past_window(prompt, 128, length, group) == tokens


@pytest.mark.parametrize(
    ("prompt", "window", "length", "group", "tokens"),
    [
        (1, 3, 20, 1, 1),
        (1, 2, 20, 1, 1),  # a prompt has a token at least
        (1, 4, 5, 1, 1),  # also where the run is shorter than a warm-up
        (9, 10, 11, 1, 3),  # eight tokens are left to the run
        (1, 66, 400, 64, 64),  # a group of a quantized cache fills it
        (1, 60, 400, 64, 58),  # less than a group is taken as it is
    ],
)
def test_a_prompt_before_a_small_window_is_never_empty(
    prompt: int, window: int, length: int, group: int, tokens: int
) -> None:
    assert past_window(prompt, window, length, group) == tokens


@pytest.mark.parametrize(
    ("shapes", "padded"),
    [
        ("exact", {1: 1, 513: 513}),
        ("dynamic", {1: 1, 513: 513}),
        ("padded", {1: 512, 512: 512, 513: 1024, 1025: 1536, 100_000: 100_352}),
        ("buckets", {1: 64, 64: 64, 65: 128, 512: 512, 513: 1024, 1024: 1024, 1025: 2048, 2049: 3072, 3072: 3072}),
    ],
)
def test_few_lengths_are_compiled(shapes: ShapesKind, padded: dict[int, int]) -> None:
    assert {tokens: rounded(shapes, tokens) for tokens in padded} == padded
    assert all(rounded(shapes, length) == length for length in padded.values())


def test_a_static_cache_has_places_for_the_padded_prompt_and_what_follows_it() -> None:
    assert [cache_places(shapes, 500, 20) for shapes in ("exact", "padded", "buckets")] == [520, 1024, 1024]
    assert [cache_places(shapes, 500, 512) for shapes in ("exact", "padded", "buckets")] == [1012, 1024, 1024]
    assert [cache_places(shapes, 500, 513) for shapes in ("exact", "padded", "buckets")] == [1013, 1536, 2048]
