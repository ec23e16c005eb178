"""The shape of the text model by its config, whatever the architecture calls its fields, and what follows from it for
the architectures of the table: weight matrices, parameters, buffers."""

from dataclasses import dataclass

from tokendyno.backend.errors import InputError
from tokendyno.backend.models.facts import LayerKind, Matrix, TextModel
from tokendyno.backend.models.families import BIAS, FAMILIES, Family
from tokendyno.backend.models.files.config_fields import Fields, show
from tokendyno.backend.models.stored import IGNORED_BLOCKS, quant_method, quantization_part

KERNEL_FIELDS = ("attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation")
"""Config fields by which transformers chooses kernels: here the arm does."""

NOT_SHAPE = (
    "quantization_config",
    *IGNORED_BLOCKS,
    "auto_map",
    "_name_or_path",
    "transformers_version",
    "architectures",
    *KERNEL_FIELDS,
)
"""Config fields that say how weights are stored or loaded, and nothing of the shape: random weights ignore them."""

ITEMSIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1}
"""Bytes per element, by torch dtype name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape(TextModel):
    """The text model of one config of the table, with what its parameters are counted from."""

    expert_layers: int
    expert_width: int
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    type_vocab: int
    rotary_dim: int

    @property
    def family(self) -> Family:
        return FAMILIES[self.architecture]


def read_shape(config: dict[str, object], where: str) -> Shape:
    """The shape that a config.json of the table describes; `where` names it in errors. InputError if invalid."""
    fields = Fields(config, where)
    architecture = read_architecture(fields)
    family = FAMILIES[architecture]
    layers = fields.count(("num_hidden_layers", "n_layer"), family.layers or None, "layers")
    hidden = fields.count(("hidden_size", "n_embd"), family.hidden or None, "width")
    heads = fields.count(("num_attention_heads", "n_head"), family.heads or None, "heads")
    kv_null = "num_key_value_heads" in fields and not fields.has("num_key_value_heads")
    kv_heads = fields.count(("num_key_value_heads",), heads if kv_null else family.kv_heads or heads, "heads")
    head_dim = fields.count(("head_dim",), family.head_dim or hidden // heads, "width")
    width = fields.count(("intermediate_size", "n_inner"), family.intermediate or 4 * hidden, "width")
    experts = fields.count(("num_local_experts", "num_experts"), family.experts, "experts", 0) if family.moe else 0
    per_token = ("num_experts_per_tok", "experts_per_token")
    chosen = fields.count(per_token, family.experts_per_token or 1, "experts", 0) if experts else 0
    window, kinds = read_windows(fields, family, layers)

    return Shape(
        architecture=architecture,
        layers=layers,
        layer_kinds=kinds,
        window=window,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=width,
        vocab=fields.count(("vocab_size",), family.vocab or None, "vocab"),
        max_positions=fields.count(("max_position_embeddings", "n_positions"), family.max_positions, "positions"),
        dtype=read_dtype(fields) or "",
        tied=fields.flag("tie_word_embeddings", family.tied),
        experts=experts,
        experts_per_token=chosen,
        expert_layers=_expert_layers(fields, family, layers, experts),
        expert_width=_expert_width(fields, family, width, experts),
        qkv_bias=_bias(fields, family, family.qkv_bias),
        o_bias=_bias(fields, family, family.o_bias),
        mlp_bias=_bias(fields, family, family.mlp_bias),
        type_vocab=fields.count(("type_vocab_size",), 2, "vocab"),
        rotary_dim=_rotary_dim(fields, head_dim),
        quantization=read_quantization(fields),
    )


def read_architecture(fields: Fields) -> str:
    """The config's `model_type`. InputError without one, or if the config asks for code from the Hub."""
    architecture = fields.text("model_type")
    if architecture is None:
        raise InputError(f"{fields.where} has no 'model_type'. Use a config.json written by transformers.")
    for part in (fields, *nested(fields)):
        for name in KERNEL_FIELDS:
            value = part.raw(name)
            if value is not None and (not isinstance(value, str) or not value.isidentifier()):
                raise InputError(
                    f"{part.where} asks for the kernel {show(value)}, which is downloaded code. Remove {name!r}; the "
                    "arm chooses attention."
                )
    return architecture


def nested(fields: Fields) -> list[Fields]:
    return [part for name in sorted(fields) if name.endswith("_config") and (part := fields.part(name))]


def read_dtype(fields: Fields) -> str | None:
    """The dtype of the checkpoint, where the config or that of its text model has one. InputError if unknown."""
    text = fields.part("text_config")
    name = fields.text("dtype", "torch_dtype") or (text.text("dtype", "torch_dtype") if text else None)
    return _dtype(name, fields.where)


def read_quantization(fields: Fields) -> str | None:
    """How the checkpoint is quantized, in the word that transformers uses; None if it is not."""
    part = quantization_part(fields)
    return quant_method(part) or None if part else None


def _expert_layers(fields: Fields, family: Family, layers: int, experts: int) -> int:
    """Number of layers with experts; the others (Qwen) have an ordinary feed-forward."""
    if not experts:
        return 0
    if family.moe != "qwen3_moe":
        return layers
    step = fields.count(("decoder_sparse_step",), 1, "layers")
    dense = [layer for layer in fields.items("mlp_only_layers", layers) or () if isinstance(layer, int)]
    return sum(1 for layer in range(layers) if layer not in dense and (layer + 1) % step == 0)


def _expert_width(fields: Fields, family: Family, width: int, experts: int) -> int:
    """Width of one expert: a field of its own in some architectures, else that of the feed-forward; 0 if dense."""
    if not experts:
        return 0
    if family.moe and not family.expert_width:
        return width
    return fields.count(("moe_intermediate_size",), family.expert_width or width, "width")


def _bias(fields: Fields, family: Family, rule: bool | str) -> bool:
    if isinstance(rule, bool):
        return rule
    return fields.flag(rule, family.attention_bias and rule == BIAS)


def _rotary_dim(fields: Fields, head_dim: int) -> int:
    """Rotated elements of a head: all of them, except with partial rotary embeddings (phi)."""
    rope = fields.part("rope_parameters")
    part = (rope.raw("partial_rotary_factor") if rope else None) or fields.raw("partial_rotary_factor") or 1.0
    if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0 < part <= 1:
        raise InputError(
            f"{fields.where}: 'partial_rotary_factor' is {show(part)}; a number from 0 to 1 is needed. "
            "Correct the file."
        )
    return int(head_dim * part)


def _dtype(name: str | None, where: str) -> str | None:
    if name is None or name == "auto":
        return None
    name = name.removeprefix("torch.")
    if name not in ITEMSIZES:
        raise InputError(
            f"{where}: 'dtype' is {show(name)}; one of {', '.join(ITEMSIZES)} is needed. Correct the file."
        )
    return name


# --- sliding windows -----------------------------------------------------------------------------

# Rules: the config classes and `get_layer_types_and_kwargs` (cache_utils) in transformers 5.22.

LAYER_KINDS: dict[str, LayerKind] = {"sliding_attention": "sliding", "full_attention": "full"}


def read_windows(fields: Fields, family: Family, layers: int) -> tuple[int | None, tuple[LayerKind, ...]]:
    """The window in tokens and the kind of each layer; None and all "full" without a window. InputError if invalid."""
    window: int | None = None
    if fields.has("sliding_window") or family.window:
        window = fields.count(("sliding_window",), family.window, "positions", 0)
    if "sliding_window" in fields and not fields.has("sliding_window"):
        window = None  # an explicit null means no window
    if family.window_rule in ("flag", "late", "nope") and not fields.flag("use_sliding_window", False):
        window = None
    types = fields.items("layer_types", layers)
    kinds = _listed_kinds(types, fields, layers) if types is not None else _ruled_kinds(fields, family, layers, window)
    if "sliding" not in kinds:
        return None, kinds
    if window is None or window < 2:
        raise InputError(
            f"{fields.where}: layers have a sliding window, but 'sliding_window' is {show(window)}; at least 2 tokens "
            "are needed. Correct the file."
        )
    return window, kinds


def _listed_kinds(types: list[object], fields: Fields, layers: int) -> tuple[LayerKind, ...]:
    if len(types) != layers:
        raise InputError(
            f"{fields.where}: 'layer_types' has {len(types)} entries for {layers} layers. Correct the file."
        )
    kinds = [LAYER_KINDS.get(kind) if isinstance(kind, str) else None for kind in types]
    if None in kinds:
        raise InputError(
            f"{fields.where}: layers of type {show(types[kinds.index(None)])} are not supported. "
            f"Choose a model whose layers are {' or '.join(LAYER_KINDS)}."
        )
    return tuple(kind for kind in kinds if kind)


def _ruled_kinds(fields: Fields, family: Family, layers: int, window: int | None) -> tuple[LayerKind, ...]:
    kinds: tuple[LayerKind, LayerKind] = ("full", "sliding")
    if window is None and family.window_rule != "pattern":
        return kinds[:1] * layers
    match family.window_rule:
        case "late":
            first = fields.count(("max_window_layers",), 28, "layers", 0)
            sliding = [layer >= first for layer in range(layers)]
        case "nope":
            rope = fields.items("no_rope_layers", layers)
            every = fields.count(("no_rope_layer_interval",), 4, "layers")
            whole = rope is not None and len(rope) == layers
            sliding = [not has for has in rope or ()] if whole else _each(every, layers)
        case "pattern":
            every = fields.count(("sliding_window_pattern",), family.pattern, "layers")
            sliding = [not last for last in _each(every, layers)]
        case "plain" | "flag":
            sliding = [True] * layers
    return tuple(kinds[slides] for slides in sliding)


def _each(every: int, layers: int) -> list[bool]:
    """True for the last layer of each group of `every`."""
    return [(layer + 1) % every == 0 for layer in range(layers)]


# --- what it is made of --------------------------------------------------------------------------

# Matrices and parameters as transformers 5.22 builds them, by modeling_<name>.py: decoders with their output head
# (AutoModelForCausalLM), BERT with its pooler and without a task head (AutoModel). Tests compare with those classes.


def list_matrices(shape: Shape) -> tuple[Matrix, ...]:
    """All matrices of the model, without routers and without vectors (norms, biases, sinks)."""
    match shape.family.layout:
        case "gpt2":
            inner = _gpt2_matrices(shape)
        case "bert":
            inner = _bert_matrices(shape)
        case "llama":
            inner = _llama_matrices(shape)
    head = () if shape.tied or shape.family.layout == "bert" else (Matrix("head", 1, shape.vocab, shape.hidden),)
    return (Matrix("embedding", 1, shape.vocab, shape.hidden), *inner, *head)


def _llama_matrices(shape: Shape) -> tuple[Matrix, ...]:
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    dense = layers - shape.expert_layers
    experts = shape.expert_layers * shape.experts
    qkv, mlp, gpt_oss = shape.qkv_bias, shape.mlp_bias, shape.family.moe == "gpt_oss"  # which of them have biases
    attention: tuple[Matrix, ...]
    if shape.family.joined:
        attention = (Matrix("linear", layers, queries + 2 * keys, hidden, bias=qkv),)
        gates = (Matrix("linear", dense, 2 * width, hidden, bias=mlp),)
    else:
        attention = (
            Matrix("linear", layers, queries, hidden, bias=qkv),
            Matrix("linear", 2 * layers, keys, hidden, bias=qkv),
        )
        gates = (Matrix("linear", 2 * dense, width, hidden, bias=mlp),)
    matrices = (
        *attention,
        Matrix("linear", layers, hidden, queries, "columns", shape.o_bias),
        *gates,
        Matrix("linear", dense, hidden, width, "columns", mlp),
        Matrix("expert", experts, 2 * shape.expert_width, hidden, bias=gpt_oss),
        Matrix("expert", experts, hidden, shape.expert_width, "columns", gpt_oss),
    )
    return tuple(matrix for matrix in matrices if matrix.count)


def _gpt2_matrices(shape: Shape) -> tuple[Matrix, ...]:
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    return (
        Matrix("embedding", 1, shape.max_positions, hidden),
        Matrix("conv1d", layers, 3 * hidden, hidden, bias=True),
        Matrix("conv1d", layers, hidden, hidden, bias=True),
        Matrix("conv1d", layers, width, hidden, bias=True),
        Matrix("conv1d", layers, hidden, width, bias=True),
    )


def _bert_matrices(shape: Shape) -> tuple[Matrix, ...]:
    """The pooler after the last layer counts as one more linear layer."""
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    return (
        Matrix("embedding", 1, shape.max_positions, hidden),
        Matrix("embedding", 1, shape.type_vocab, hidden),
        Matrix("linear", 4 * layers + 1, hidden, hidden, bias=True),
        Matrix("linear", layers, width, hidden, bias=True),
        Matrix("linear", layers, hidden, width, bias=True),
    )


def count_parameters(shape: Shape) -> int:
    """Number of parameters; tied ones count once."""
    hidden, family = shape.hidden, shape.family
    in_matrices = sum(m.elements + m.count * m.rows * m.bias for m in list_matrices(shape))
    if family.layout != "llama":
        return in_matrices + (4 * shape.layers + 2) * hidden  # two layer norms with bias in a layer, and one more
    gpt_oss = family.moe == "gpt_oss"
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    layer = family.norms * hidden + {"": 0, "head": 2 * shape.head_dim, "all": queries + keys}[family.qk_norm]
    layer += shape.heads * gpt_oss  # sinks
    router = shape.experts * (hidden + gpt_oss)  # gpt-oss's has a bias
    return in_matrices + shape.layers * layer + shape.expert_layers * router + hidden


def count_buffer_bytes(shape: Shape) -> int:
    """Bytes of the buffers, each in its own dtype.

    Rotary frequencies are float32 and stored twice (`inv_freq`, `original_inv_freq`), in some models per layer type.
    BERT stores position and token type ids as int64. Gemma's embedding scale, a single number, is left out.
    """
    if shape.family.rope_sets == "none":
        return 2 * 8 * shape.max_positions if shape.family.layout == "bert" else 0
    sets = len(set(shape.layer_kinds)) if shape.family.rope_sets == "each" else 1
    return sets * 2 * (shape.rotary_dim // 2) * 4
