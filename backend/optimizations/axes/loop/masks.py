"""Which masks a decode step over the slots of a static cache gives the model."""

from typing import Any


def slot_masks(config: Any, full: Any, sliding: Any) -> Any:
    """What attention may look at in layers with full attention and in those with a sliding window: one mask, or a dict
    by kind of layer where the model takes several. config: of the text model."""
    if not hasattr(config, "layer_types"):
        return full if sliding is None else sliding
    masks = {"full_attention": full, "hybrid": full, "sliding_attention": sliding, "hybrid_sliding": sliding}
    return masks | dict.fromkeys(("linear_attention", "conv"))  # a new token is never padding
