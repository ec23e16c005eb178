"""What `tokendyno.backend.counter` answers: a model as transformers builds it, or why it cannot be counted."""

import msgspec

from tokendyno.backend.models.facts import CacheLayers, Matrix, ModelKind

VERSION = 10
"""Raised whenever an answer would differ for the same config: answers of other versions are not read."""


class Counted(msgspec.Struct, frozen=True):
    """One model, counted from transformers' own modules and cache. The fields are those of `ModelFacts`.

    float32_in   parameters that stay in float32 where the rest is loaded in a half precision, by its name; "built":
                 where the model is built with random weights
    workspace    by number format what a pass over B prompts of S tokens takes beside weights and cache: factors, in
                 bytes, of S, of B S, of S^2 and of B S^2; without formats that could not be counted
    """

    kind: ModelKind
    parameters: int
    buffer_bytes: int
    buffer_elements: int
    float32_in: dict[str, int]
    matrices: list[Matrix]
    cache: list[CacheLayers]
    tied: bool
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    max_positions: int
    experts: int
    experts_per_token: int
    sinks: bool
    fits_static: bool = True
    fits_slots: bool = True
    step_waits: bool = False
    fits_pages: bool = True
    shared_inputs: int | None = None
    workspace: dict[str, list[float]] = {}


class Answer(msgspec.Struct, frozen=True):
    """Exactly one of the two."""

    counted: Counted | None = None
    refused: str = ""
