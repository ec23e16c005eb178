"""How long a warm-up is: a few tokens, or as many as get past a sliding window."""

import pytest

from backend.predict.lengths import past_window, warm_up_tokens


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
