"""The facts that a config states: by the table of architectures, or counted by transformers."""

from dataclasses import replace
from typing import Any

from tokendyno.backend.models.counted import Counted
from tokendyno.backend.models.counting import count
from tokendyno.backend.models.facts import LayerKind, ModelFacts
from tokendyno.backend.models.families import FAMILIES, is_encoder
from tokendyno.backend.models.files.config_fields import Fields
from tokendyno.backend.models.matrices import list_matrices
from tokendyno.backend.models.parameters import count_buffer_bytes, count_parameters
from tokendyno.backend.models.shape import Shape, read_architecture, read_dtype, read_quantization, read_shape
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.models.stored import read_stored


def describe(config: dict[str, Any], where: str) -> ModelFacts:
    """All facts that do not depend on where the model lies; its name and source are left empty. `dtype` is "" where the
    config has none. InputError if the config is invalid or its model cannot be predicted."""
    fields = Fields(config, where)
    architecture = read_architecture(fields)
    if architecture in FAMILIES:
        shape = read_shape(config, where)
        facts = _of_table(shape)
    else:
        facts = counted_facts(config, count(config, where), where)
    return replace(facts, stored=read_stored(fields, facts.experts > 0))


def _of_table(shape: Shape) -> ModelFacts:
    return ModelFacts(
        model="",
        label="",
        source=ModelSource("folder"),
        random=False,
        kind="encoder" if is_encoder(shape.architecture) else "decoder",
        architecture=shape.architecture,
        layers=shape.layers,
        layer_kinds=shape.layer_kinds,
        window=shape.window,
        hidden=shape.hidden,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_dim=shape.head_dim,
        intermediate=shape.expert_width or shape.intermediate,
        vocab=shape.vocab,
        max_positions=shape.max_positions,
        parameters=count_parameters(shape),
        buffer_bytes=count_buffer_bytes(shape),
        dtype=shape.dtype or "",
        tied=shape.tied,
        experts=shape.experts,
        experts_per_token=shape.experts_per_token,
        sinks=shape.family.moe == "gpt_oss",
        quantization=shape.quantization,
        matrices=list_matrices(shape),
    )


def counted_facts(config: dict[str, Any], found: Counted, where: str = "the config") -> ModelFacts:
    """The facts of a model outside the table, from its count."""
    fields = Fields(config, where)
    kinds: tuple[LayerKind, ...] = tuple(layers.kind for layers in found.cache for _ in range(layers.count))
    return ModelFacts(
        model="",
        label="",
        source=ModelSource("folder"),
        random=False,
        kind=found.kind,
        architecture=read_architecture(fields),
        layers=max(1, len(kinds)),
        layer_kinds=kinds,
        window=max((layers.window for layers in found.cache if layers.window), default=None),
        hidden=found.hidden,
        heads=found.heads,
        kv_heads=found.kv_heads,
        head_dim=found.head_dim,
        intermediate=found.intermediate,
        vocab=found.vocab,
        max_positions=found.max_positions,
        parameters=found.parameters,
        buffer_bytes=found.buffer_bytes,
        buffer_elements=found.buffer_elements,
        dtype=read_dtype(fields) or "",
        tied=found.tied,
        experts=found.experts,
        experts_per_token=found.experts_per_token,
        sinks=found.sinks,
        quantization=read_quantization(fields),
        fits_static=found.fits_static,
        fits_slots=found.fits_slots,
        fits_pages=found.fits_pages,
        shared_inputs=found.shared_inputs,
        matrices=tuple(found.matrices),
        float32_in=tuple(found.float32_in.items()),
        counted_cache=tuple(found.cache),
        counted_workspace=tuple((dtype, tuple(factors)) for dtype, factors in found.workspace.items()),
    )
