"""How long prompts and static caches become when their lengths are rounded up, so that few shapes are ever compiled.

torch.compile makes a new graph for a new shape (https://docs.pytorch.org/docs/stable/compile/programming_model.recompilation.html).
Rounded lengths keep the number of shapes small; what is added is padding, and wasted.
"""

from backend.plan import ShapesKind

PADDED = 512
"""`padded`: the one length for all prompts; what is longer goes to the next multiple. 512 is what BERT-like models
take at most, and above nearly every prompt that is typed by hand."""

FIRST_BUCKET, LAST_DOUBLED = 64, 1024
"""`buckets`: 64, 128, 256, 512, 1,024, and from there on every further 1,024, where doubling would waste too much."""


def rounded(shapes: ShapesKind, tokens: int) -> int:
    """The length that `tokens` is padded to; itself where nothing is padded."""
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
    """Places of a static cache for a prompt of that length, not yet padded, and what is made after it."""
    return rounded(shapes, rounded(shapes, prompt) + new_tokens)


def _multiple(tokens: int, of: int) -> int:
    return max(1, -(-tokens // of)) * of
