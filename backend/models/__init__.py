"""Which models there are and what is known of one before it is loaded; no torch, no transformers."""

from backend.models.catalogue import (
    DEFAULT_MODEL,
    PRESETS_DIR,
    CatalogueEntry,
    catalogue,
)
from backend.models.facts import RANDOM_NOTE, LayerKind, Matrix, ModelFacts, ModelKind
from backend.models.resolve import loadable, resolve
from backend.models.shape import ITEMSIZES

__all__ = [
    "DEFAULT_MODEL",
    "ITEMSIZES",
    "PRESETS_DIR",
    "RANDOM_NOTE",
    "CatalogueEntry",
    "LayerKind",
    "Matrix",
    "ModelFacts",
    "ModelKind",
    "catalogue",
    "loadable",
    "resolve",
]
