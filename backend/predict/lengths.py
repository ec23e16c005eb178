"""Padded lengths of prompts and static caches, so that few shapes are compiled.

torch.compile compiles a new graph for each new shape (https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html).
Padded lengths keep the number of shapes small, at the cost of computing the padding.
"""

from backend.plan import ShapesKind

PADDED = 512
"""`padded`: multiples of this. 512 is the limit of BERT-like models and more than nearly every typed prompt."""

FIRST_BUCKET, LAST_DOUBLED = 64, 1024
"""`buckets`: 64, 128, 256, 512, 1,024, then multiples of 1,024, because doubling would waste too much."""


def rounded(shapes: ShapesKind, tokens: int) -> int:
    """The length that `tokens` is padded to; `tokens` itself if shapes are not padded."""
    match shapes:
        case "padded":
            return _multiple(tokens, PADDED)
        case "buckets":
            if tokens > LAST_DOUBLED:
                return _multiple(tokens, LAST_DOUBLED)
            return max(FIRST_BUCKET, 1 << (tokens - 1).bit_length())
        case "exact" | "dynamic":
            return tokens


def cache_places(shapes: ShapesKind, prompt: int, new_tokens: int) -> int:
    """Slots of a static cache for an unpadded prompt of that length and the tokens generated after it."""
    return rounded(shapes, rounded(shapes, prompt) + new_tokens)


def _multiple(tokens: int, of: int) -> int:
    return max(1, -(-tokens // of)) * of
