"""The facts that a config states: by the table of architectures, or counted by transformers."""

from dataclasses import fields, replace
from typing import Any

from tokendyno.backend.models.counted import Counted
from tokendyno.backend.models.counting import count
from tokendyno.backend.models.facts import ModelFacts
from tokendyno.backend.models.families import FAMILIES, is_encoder
from tokendyno.backend.models.files.config_fields import Fields
from tokendyno.backend.models.matrices import list_matrices
from tokendyno.backend.models.parameters import count_buffer_bytes, count_parameters
from tokendyno.backend.models.shape import Shape, read_architecture, read_dtype, read_quantization, read_shape
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.models.stored import read_stored


def describe(config: dict[str, Any], where: str) -> ModelFacts:
    """All facts that do not depend on where the model lies. InputError if the config is invalid."""
    stated = Fields(config, where)
    if read_architecture(stated) in FAMILIES:
        shape = read_shape(config, where)
        facts = _of_table(shape)
    else:
        facts = counted_facts(config, count(config, where), where)
    return replace(facts, stored=read_stored(stated, facts.experts > 0))


def _shared(found: Shape | Counted) -> dict[str, Any]:
    """What a row of the table and a count have under the names of `ModelFacts`."""
    names = {field.name for field in fields(ModelFacts)}
    own = found.__struct_fields__ if isinstance(found, Counted) else [field.name for field in fields(found)]
    return {name: getattr(found, name) for name in own if name in names}


def _of_table(shape: Shape) -> ModelFacts:
    shared = _shared(shape) | {
        "kind": "encoder" if is_encoder(shape.architecture) else "decoder",
        "intermediate": shape.expert_width or shape.intermediate,
        "parameters": count_parameters(shape),
        "buffer_bytes": count_buffer_bytes(shape),
        "dtype": shape.dtype or "",
        "sinks": shape.family.moe == "gpt_oss",
        "matrices": list_matrices(shape),
    }
    return ModelFacts(model="", label="", source=ModelSource("folder"), random=False, **shared)


def counted_facts(config: dict[str, Any], found: Counted, where: str = "the config") -> ModelFacts:
    """The facts of a model outside the table, from its count."""
    stated = Fields(config, where)
    kinds = tuple(layers.kind for layers in found.cache for _ in range(layers.count))
    shared = _shared(found) | {
        "architecture": read_architecture(stated),
        "layers": max(1, len(kinds)),
        "layer_kinds": kinds,
        "window": max((layers.window for layers in found.cache if layers.window), default=None),
        "dtype": read_dtype(stated) or "",
        "quantization": read_quantization(stated),
        "matrices": tuple(found.matrices),
        "float32_in": tuple(found.float32_in.items()),
        "counted_cache": tuple(found.cache),
        "counted_workspace": tuple((dtype, tuple(factors)) for dtype, factors in found.workspace.items()),
    }
    return ModelFacts(model="", label="", source=ModelSource("folder"), random=False, **shared)
