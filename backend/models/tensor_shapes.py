"""Which tensors of a checkpoint have another shape than its config asks for: transformers fails on them after loading.

Dense checkpoints of the architectures of the table only: packed weights have shapes of their own, and what transformers
renames or rearranges in other architectures is known to it alone. Tensors that are not in the model are not loaded, so
that any name but those below passes. Read from `models/<name>/modeling_<name>.py` and `conversion_mapping.py` of
transformers 5.22; tests compare with it.
"""

import re
from pathlib import Path

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.families import FAMILIES, Family
from tokendyno.backend.models.files.config_fields import Fields, read_json
from tokendyno.backend.models.shape import Shape, read_shape

ALIASES = (
    ("hidden_size", "n_embd"),
    ("num_hidden_layers", "n_layer"),
    ("num_attention_heads", "n_head"),
    ("max_position_embeddings", "n_positions"),
    ("intermediate_size", "n_inner"),
    ("num_local_experts", "num_experts"),
)
"""Names of one size: where a config has two that differ, which one counts depends on its class."""

MAX_NAME = 200
"""Characters of a tensor's name; real ones have about 60."""

MAX_DIFFERING = 1000
"""Of a header of 25 MB each tensor could differ."""

PREFIX = {"llama": "model.", "gpt2": "transformer.", "bert": "bert."}
"""What stands before all names but the head's, or is left out."""

Sizes = dict[str, tuple[int, ...]]
"""A name with `*` for the numbers of layer and expert -> extents."""


class TensorShapes:
    """Compares tensors of a checkpoint, which `see` is told of, with the folder's config; `check` says what differs.

    Of tensors of one name the last counts, as for transformers.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "config.json"
        config, where = (read_json(path) if path.is_file() else {}), str(path)
        fields = Fields(config, where)
        self._differing: dict[str, tuple[Path, list[int], tuple[int, ...]]] = {}
        self._shape = read_shape(config, where) if _is_known(fields) else None
        self._sizes = sizes(self._shape) if self._shape else {}

    def see(self, file: Path, name: str, found: list[int]) -> None:
        """A tensor of a file, with its extents."""
        needed = self._needed(name)
        if needed is not None:
            self._differing.pop(name, None)
            if tuple(found) != needed and len(self._differing) < MAX_DIFFERING:
                self._differing[name] = (file, found, needed)

    def check(self) -> None:
        """InputError if a tensor differs."""
        if not self._differing:
            return
        name, (file, found, needed) = next(iter(self._differing.items()))
        others = len(self._differing) - 1
        many = f"{others:,}" if len(self._differing) < MAX_DIFFERING else "many"
        more = f", and {many} more differ" if others else ""
        raise InputError(
            f"{file}: the tensor {name!r} has the shape {_shown(found)}, but config.json describes a model with "
            f"{_shown(needed)}{more}. Weights and config.json are of two models: copy both again from one checkpoint."
        )

    def _needed(self, name: str) -> tuple[int, ...] | None:
        """The extents of a tensor of this name; None if the model has none."""
        if self._shape is None or len(name) > MAX_NAME:
            return None
        layout = self._shape.family.layout
        name = name.removeprefix(PREFIX[layout])
        if layout == "bert":
            name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name))
        numbers = [int(number) for number in re.findall(r"(?<=\.)\d{1,6}(?=\.)", name)]
        most = (self._shape.layers, self._shape.experts)
        if len(numbers) > 2 or any(number >= end for number, end in zip(numbers, most, strict=False)):
            return None
        return self._sizes.get(re.sub(r"(?<=\.)\d{1,6}(?=\.)", "*", name))


def _is_known(fields: Fields) -> bool:
    architecture = fields.raw("model_type")
    if fields.has("quantization_config") or not isinstance(architecture, str) or architecture not in FAMILIES:
        return False
    return not any(
        fields.has(one) and fields.has(other) and fields.raw(one) != fields.raw(other) for one, other in ALIASES
    )


def _shown(extents: list[int] | tuple[int, ...]) -> str:
    return " x ".join(f"{extent:,}" for extent in extents) or "a single number"


def sizes(shape: Shape) -> Sizes:
    """The tensors of a model, without the prefix of its base model."""
    match shape.family.layout:
        case "gpt2":
            found = _gpt2(shape)
        case "bert":
            return _bert(shape)
        case "llama":
            found = _llama(shape)
    return found if shape.tied else found | {"lm_head.weight": (shape.vocab, shape.hidden)}


def _llama(shape: Shape) -> Sizes:
    hidden, width, family = shape.hidden, shape.intermediate, shape.family
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention: Sizes = {"o_proj.weight": (hidden, queries)}
    dense: Sizes = {"down_proj.weight": (hidden, width)}
    if family.joined:
        attention["qkv_proj.weight"] = (queries + 2 * keys, hidden)
        dense["gate_up_proj.weight"] = (2 * width, hidden)
    else:
        for name, rows in (("q_proj", queries), ("k_proj", keys), ("v_proj", keys)):
            attention |= {f"{name}.weight": (rows, hidden)} | ({f"{name}.bias": (rows,)} if shape.qkv_bias else {})
        for name in ("gate_proj", "up_proj"):
            dense |= {f"{name}.weight": (width, hidden)} | ({f"{name}.bias": (width,)} if shape.mlp_bias else {})
    attention |= {"o_proj.bias": (hidden,)} if shape.o_bias else {}
    dense |= {"down_proj.bias": (hidden,)} if shape.mlp_bias else {}
    if family.qk_norm:
        each = family.qk_norm == "head"
        attention |= {"q_norm.weight": (shape.head_dim if each else queries,)}
        attention |= {"k_norm.weight": (shape.head_dim if each else keys,)}
    attention |= {"sinks": (shape.heads,)} if family.moe == "gpt_oss" else {}
    layer: Sizes = {f"self_attn.{name}": extents for name, extents in attention.items()}
    layer |= {f"{name}_layernorm.weight": (hidden,) for name in _norms(family)}
    layer |= _experts(shape)
    layer |= {f"mlp.{name}": extents for name, extents in dense.items()} if shape.expert_layers < shape.layers else {}
    top: Sizes = {"embed_tokens.weight": (shape.vocab, hidden), "norm.weight": (hidden,)}
    return top | {f"layers.*.{name}": extents for name, extents in layer.items()}


def _norms(family: Family) -> tuple[str, ...]:
    """The norms of a layer: only after its halves, only before them, or both."""
    if family.qk_norm == "all":
        return "post_attention", "post_feedforward"
    both = ("pre_feedforward", "post_feedforward") if family.norms == 4 else ()
    return "input", "post_attention", *both


def _experts(shape: Shape) -> Sizes:
    """The experts of a layer, one by one or stacked, and the router."""
    count, width, hidden = shape.experts, shape.expert_width, shape.hidden
    if not count:
        return {}
    if shape.family.moe == "gpt_oss":
        return {
            "mlp.router.weight": (count, hidden),
            "mlp.router.bias": (count,),
            "mlp.experts.gate_up_proj": (count, hidden, 2 * width),
            "mlp.experts.gate_up_proj_bias": (count, 2 * width),
            "mlp.experts.down_proj": (count, width, hidden),
            "mlp.experts.down_proj_bias": (count, hidden),
        }
    block, gate, up, down = "mlp", "gate_proj", "up_proj", "down_proj"
    if shape.family.moe == "mixtral":
        block, gate, up, down = "block_sparse_moe", "w1", "w3", "w2"
    return {
        f"{block}.gate.weight": (count, hidden),
        f"{block}.experts.*.{gate}.weight": (width, hidden),
        f"{block}.experts.*.{up}.weight": (width, hidden),
        f"{block}.experts.*.{down}.weight": (hidden, width),
        "mlp.gate.weight": (count, hidden),
        "mlp.experts.gate_up_proj": (count, 2 * width, hidden),
        "mlp.experts.down_proj": (count, hidden, width),
    }


def _gpt2(shape: Shape) -> Sizes:
    hidden, width = shape.hidden, shape.intermediate
    layer: Sizes = {}
    for name, rows, columns in (
        ("attn.c_attn", hidden, 3 * hidden),
        ("attn.c_proj", hidden, hidden),
        ("mlp.c_fc", hidden, width),
        ("mlp.c_proj", width, hidden),
    ):
        layer |= {f"h.*.{name}.weight": (rows, columns), f"h.*.{name}.bias": (columns,)}
    for name in ("h.*.ln_1", "h.*.ln_2", "ln_f"):
        layer |= {f"{name}.weight": (hidden,), f"{name}.bias": (hidden,)}
    return layer | {"wte.weight": (shape.vocab, hidden), "wpe.weight": (shape.max_positions, hidden)}


def _bert(shape: Shape) -> Sizes:
    hidden, width = shape.hidden, shape.intermediate
    rows = {"word": shape.vocab, "position": shape.max_positions, "token_type": shape.type_vocab}
    found: Sizes = {f"embeddings.{name}_embeddings.weight": (count, hidden) for name, count in rows.items()}
    square = ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense")
    linear = {f"encoder.layer.*.{name}": (hidden, hidden) for name in square} | {"pooler.dense": (hidden, hidden)}
    linear |= {"encoder.layer.*.intermediate.dense": (width, hidden), "encoder.layer.*.output.dense": (hidden, width)}
    for name, extents in linear.items():
        found |= {f"{name}.weight": extents, f"{name}.bias": extents[:1]}
    for name in ("embeddings", "encoder.layer.*.attention.output", "encoder.layer.*.output"):
        found |= {f"{name}.LayerNorm.weight": (hidden,), f"{name}.LayerNorm.bias": (hidden,)}
    return found
