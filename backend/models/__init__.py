"""Models: the catalogue, and the facts of a model before it is loaded. No torch, no transformers."""

from tokendyno.backend.models.available import check_loadable, download_bytes, obstacle, pinned
from tokendyno.backend.models.catalogue import DEFAULT_MODEL, CatalogueEntry, catalogue
from tokendyno.backend.models.facts import CacheLayers, LayerKind, Matrix, ModelFacts
from tokendyno.backend.models.resolve import check_reference, must_count, resolve
from tokendyno.backend.models.shape import ITEMSIZES
from tokendyno.backend.models.source import FORWARD, RANDOM, is_random, without

__all__ = [
    "DEFAULT_MODEL",
    "FORWARD",
    "ITEMSIZES",
    "RANDOM",
    "CacheLayers",
    "CatalogueEntry",
    "LayerKind",
    "Matrix",
    "ModelFacts",
    "catalogue",
    "check_loadable",
    "check_reference",
    "download_bytes",
    "is_random",
    "must_count",
    "obstacle",
    "pinned",
    "resolve",
    "without",
]
