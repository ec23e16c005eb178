"""Which class of transformers a model is built with: decoders with their output head, encoders without a task's."""

from typing import Any

from transformers import AutoModel, AutoModelForCausalLM

from backend.models.families import is_encoder


def auto_class(model_type: str) -> Any:
    """AutoModel for an encoder: a task's head is the user's own, and small beside what stands below it."""
    return AutoModel if is_encoder(model_type) else AutoModelForCausalLM
