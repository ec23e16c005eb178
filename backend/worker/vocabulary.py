"""How many ids a model knows, also where each rank has some of the rows of its embedding and its head."""

from typing import Any


def known_ids(model: Any) -> int:
    """Rows of the embedding."""
    table = model.get_input_embeddings()
    return int(getattr(table, "num_embeddings", 0) or table.weight.shape[0])


def scored_ids(model: Any) -> int:
    """Logits for each position."""
    head = model.get_output_embeddings()
    return int(getattr(head, "out_features", 0) or head.weight.shape[0])
