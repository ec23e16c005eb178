"""Lengths of prompts, static caches and warm-ups: padded ones, so that few shapes are compiled, and those that a
warm-up has to reach.

torch.compile compiles a new graph for each new shape (https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html).
Padded lengths keep the number of shapes small, at the cost of computing the padding.
"""

from tokendyno.backend.plan import ShapesKind

PADDED = 512
"""`padded`: multiples of this. 512 is the limit of BERT-like models and more than nearly every typed prompt."""

FIRST_BUCKET, LAST_DOUBLED = 64, 1024
"""`buckets`: 64, 128, 256, 512, 1,024, then multiples of 1,024, because doubling would waste too much."""

WARM_UP = 8
"""New tokens of each generation of a warm-up, or passes of an encoder."""

WARM_UP_PROMPTS = 3
"""Generations of a warm-up, or passes that compile: the first load kernels, choose among them, compile, record CUDA
graphs, and fill allocators."""


def rounded(shapes: ShapesKind, tokens: int) -> int:
    """The length that `tokens` is padded to; `tokens` itself if shapes are not padded."""
    match shapes:
        case "padded":
            return _multiple(tokens, PADDED)
        case "buckets":
            return min(max(FIRST_BUCKET, 1 << (tokens - 1).bit_length()), _multiple(tokens, LAST_DOUBLED))
        case "exact" | "dynamic":
            return tokens


def cache_places(shapes: ShapesKind, prompt: int, new_tokens: int) -> int:
    """Slots of a static cache for an unpadded prompt of that length and the tokens generated after it."""
    return rounded(shapes, rounded(shapes, prompt) + new_tokens)


def past_window(prompt: int, window: int, length: int, group: int = 1) -> int:
    """Tokens of a prompt that ends just before a sliding window is full: a warm-up gets past it from there, because a
    full window needs other kernels, other masks and one more graph. 0 where a run of `length` tokens never fills it,
    or its own prompt does. `group`: a quantized cache takes whole groups only."""
    if not prompt < window < length:
        return 0
    tokens = max(1, min(window - 2, length - WARM_UP))
    return tokens - tokens % group or tokens


def warm_up_tokens(prompt: int, length: int, window: int = 0) -> int:
    """New tokens of a warm-up after a prompt: a few, or as many as get past a window; `length`: slots of the cache."""
    return max(2, min(max(WARM_UP, window + WARM_UP - 2 - prompt), length - prompt))


def _multiple(tokens: int, of: int) -> int:
    return max(1, -(-tokens // of)) * of
