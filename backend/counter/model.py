"""Builds a model on the meta device and counts its parameters, matrices and cache."""

import copy
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import torch
import transformers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.pytorch_utils import Conv1D
from transformers.quantizers.base import get_keys_to_not_convert
from transformers.quantizers.quantizers_utils import should_convert_module

from tokendyno.backend.counter.cache import Ran, Refused, count_cache, fits_pages, fits_static, observed, slot_step
from tokendyno.backend.counter.workspace import count_workspace, shortened
from tokendyno.backend.models.counting import Counted
from tokendyno.backend.models.facts import CacheLayers, Matrix, Use
from tokendyno.backend.models.families import is_encoder
from tokendyno.backend.models.shape import NOT_SHAPE
from tokendyno.backend.optimizations.axes.projections import shared_inputs

__all__ = ["Refused", "count"]

BUILT = torch.bfloat16
LOADING = {*NOT_SHAPE, "model_type", "dtype", "torch_dtype"}
"""Fields of a config that say how to load a model, not what it is."""

# Names of one fact in the configs of different architectures.
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")
EXPERTS_PER_TOKEN = (
    "num_experts_per_tok", "experts_per_token", "moe_topk", "moe_k", "moe_top_k", "top_k_experts", "top_k",
)  # fmt: skip
INTERMEDIATE = (
    "moe_intermediate_size", "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim", "decoder_ffn_dim",
)  # fmt: skip
POSITIONS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions", "seq_length", "n_ctx")


def count(values: dict[str, Any]) -> Counted:
    """Count the model of a config. Refused, with a reason, where transformers does not tell all that is needed."""
    with _failing("transformers cannot build it"):
        config = read_config(values)
        encoder = is_encoder(config.model_type)
        model = build(config, encoder)
    with _failing("transformers builds it, and a pass over tensors without values, by which it is counted here, fails"):
        return _counted(values, model, encoder)


@contextmanager
def _failing(what: str) -> Iterator[None]:
    """Within it, errors that a strange config causes become Refused, as "<what>: <error>"."""
    try:
        yield
    except (Refused, MemoryError, RecursionError):
        raise
    except Exception as error:
        message = " ".join(str(error).split())[:200]
        raise Refused(f"{what}: {type(error).__name__}: {message}") from error


def _counted(values: dict[str, Any], model: Any, encoder: bool) -> Counted:
    buffers = [(buffer.dtype == BUILT, buffer.numel(), buffer.nbytes) for buffer in model.buffers()]  # passes may cast
    ran = Ran(model)
    cache: list[CacheLayers] = []
    static = pages = True
    waits: bool | None = False
    if encoder:
        with ran, observed():
            model(input_ids=torch.zeros((1, 4), dtype=torch.long, device="meta"))
        heads, head_dim = 0, 0
    else:
        with ran:
            cache, (heads, head_dim), filled = count_cache(model, model.config)
        small = build(shortened(read_config(values)), encoder)
        static = fits_static(small, filled) or fits_static(model, filled)  # some cannot be shortened
        waits = slot_step(small) if static else None
        waits = slot_step(model) if static and waits is None else waits
        pages = fits_pages(model, filled)
    text = model.config.get_text_config(decoder=True)
    matrices = list_matrices(model, ran.names)
    experts = _number(text, EXPERTS) if any(matrix.kind == "expert" for matrix in matrices) else 0
    hidden = int(text.hidden_size)
    queries = _number(text, ("num_attention_heads", "n_head", "n_heads"), heads)
    head, table = model.get_output_embeddings(), model.get_input_embeddings()
    intermediate = _number(text, INTERMEDIATE if experts else INTERMEDIATE[1:], 4 * hidden)
    return Counted(
        kind="encoder" if encoder else "decoder",
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        buffer_bytes=sum(size for cast, _, size in buffers if not cast),
        buffer_elements=sum(elements for cast, elements, _ in buffers if cast),
        float32_in=_float32(model),
        matrices=matrices,
        cache=cache,
        tied=head is not None and table is not None and head.weight is table.weight,
        hidden=hidden,
        heads=queries,
        kv_heads=heads or queries,
        head_dim=head_dim or hidden // max(1, queries),
        intermediate=intermediate,
        vocab=_number(text, ("vocab_size",), 1),
        max_positions=_number(text, POSITIONS, 1 << 20),
        experts=experts,
        experts_per_token=min(experts, _number(text, EXPERTS_PER_TOKEN, 1)),
        sinks=any(name.rpartition(".")[2] == "sinks" for name, _ in model.named_parameters()),
        fits_static=static,
        fits_slots=waits is not None,
        step_waits=bool(waits),
        fits_pages=pages,
        shared_inputs=shared_inputs(model, torch.nn.Linear),
        workspace=count_workspace(read_config(values), encoder),
    )


def read_config(values: dict[str, Any]) -> Any:
    """The config as an object of transformers, without dtype and kernels, which the arm chooses."""
    name = values.get("model_type")
    if not isinstance(name, str) or name not in CONFIG_MAPPING_NAMES:
        raise Refused(f"transformers {transformers.__version__} has no model_type {str(name)[:60]!r}")
    config = AutoConfig.for_model(name, **_shape_fields(copy.deepcopy(values)))
    if getattr(config, "is_encoder_decoder", False):
        raise Refused(
            "it is an encoder-decoder model, whose decoder attends to what an encoder made of the prompt, and only "
            "decoders and encoders are measured"
        )
    if name not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not is_encoder(name):
        raise Refused("it is neither among transformers' causal language models nor a known encoder")
    if name == "cpmant":
        raise Refused("it puts tokens of its own before the prompt, and takes the token 0 for padding")
    if name in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not is_encoder(name) and not getattr(config, "is_decoder", False):
        raise Refused("it is an encoder that is not known here")
    return config


def _shape_fields(values: dict[str, Any]) -> dict[str, Any]:
    """The fields that say what the model is. Nested configs keep their model_type."""
    shape = {name: value for name, value in values.items() if name not in LOADING}
    for name, value in shape.items():
        if isinstance(value, dict):
            shape[name] = _shape_fields(value) | {k: value[k] for k in ("model_type",) if k in value}
    return shape


def build(config: Any, encoder: bool) -> Any:
    """The model on the meta device, as the worker would load it."""
    auto = AutoModel if encoder else AutoModelForCausalLM
    with torch.device("meta"):
        return auto.from_config(config, dtype=BUILT, trust_remote_code=False).eval()


def _float32(model: Any) -> dict[str, int]:
    """How many numbers `from_pretrained` keeps in float32, by the model's dtype; "built": those that always are."""

    def count_wide(patterns: set[str]) -> int:
        search = re.compile("|".join(rf"((^|\.){pattern}($|\.))" for pattern in patterns) or "(?!)").search
        return sum(tensor.numel() for name, tensor in named if tensor.dtype == torch.float32 or search(name))

    named = [*model.named_parameters(), *((n, b) for n, b in model.named_buffers() if b.dtype == BUILT)]
    strict, loose = set(model._keep_in_fp32_modules_strict or ()), set(model._keep_in_fp32_modules or ())
    built = sum(p.numel() for p in model.parameters() if p.dtype == torch.float32)
    return {"bfloat16": count_wide(strict), "float16": count_wide(strict | loose), "built": built}


def _number(config: Any, names: tuple[str, ...], default: int = 0) -> int:
    """The first of these fields that is a whole number of at least 1."""
    values = (getattr(config, name, None) for name in names)
    return next((value for value in values if isinstance(value, int) and value > 0), default)


def list_matrices(model: Any, ran: set[str]) -> list[Matrix]:
    """All matrices, the input embedding first. `ran`: modules that a pass over text calls; no step reads the others."""
    table = model.get_input_embeddings()
    head = model.get_output_embeddings()
    counts: Counter[Matrix] = Counter()
    seen: set[int] = set()
    embeddings: list[Matrix] = []
    # quantizers/base.py; transformers asks before it ties the head, which is the last parameter then
    with mock.patch.object(model, "named_parameters", partial(model.named_parameters, remove_duplicate=False)):
        skipped = [*get_keys_to_not_convert(model), *(model._keep_in_fp32_modules or ())]
    for name, module in model.named_modules():
        routed = ".experts." in f".{name}." and "shared" not in name
        use: Use = "routed" if routed else "always" if name in ran else "never"
        dense_in: tuple[str, ...] = () if should_convert_module(name, skipped) else ("bitsandbytes", "quanto")
        dense_in += () if should_convert_module(f"{name}.weight", skipped) else ("torchao",)
        for matrix, weight in _own_matrices(module, module is head):
            if id(weight) in seen:  # tied
                continue
            seen.add(id(weight))
            if module is table:
                embeddings.append(matrix)
            else:
                use = "routed" if matrix.kind == "expert" else use
                dense = dense_in if matrix.kind in ("linear", "conv1d") else ()
                counts[replace(matrix, count=1, use=use, dense_in=dense)] += matrix.count
    return embeddings + [replace(matrix, count=count) for matrix, count in counts.items()]


def _own_matrices(module: Any, is_head: bool) -> Iterator[tuple[Matrix, Any]]:
    """The matrices of one module, without its children's, each with its weight."""
    bias = getattr(module, "bias", None) is not None
    if isinstance(module, torch.nn.Linear):
        rows, columns = module.weight.shape
        yield Matrix("head" if is_head else "linear", 1, rows, columns, bias=bias), module.weight
    elif isinstance(module, Conv1D):
        columns, rows = module.weight.shape
        yield Matrix("conv1d", 1, rows, columns, bias=bias), module.weight
    elif isinstance(module, torch.nn.Embedding):
        rows, columns = module.weight.shape
        yield Matrix("embedding", 1, rows, columns), module.weight
    elif "expert" in type(module).__name__.lower():
        for weight in module._parameters.values():
            if weight is not None and weight.dim() == 3:
                count, rows, columns = weight.shape
                yield Matrix("expert", count, rows, columns), weight
