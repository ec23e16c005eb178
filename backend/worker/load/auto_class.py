"""The transformers class that builds a model: decoders with their output head, encoders without a task head."""

from typing import Any

from transformers import AutoModel, AutoModelForCausalLM

from tokendyno.backend.models.families import is_encoder


def auto_class(model_type: str) -> Any:
    """AutoModel for an encoder (a task head is small and the user's own), AutoModelForCausalLM for a decoder."""
    return AutoModel if is_encoder(model_type) else AutoModelForCausalLM
