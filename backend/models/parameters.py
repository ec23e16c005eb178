"""Counts a model's parameters from its shape; exact for every architecture of the table.

Counted as transformers 5.22 builds them: decoders with their output head (AutoModelForCausalLM), BERT with its pooler
and without a task head (AutoModel). Derived from `models/<name>/modeling_<name>.py`; tests compare with those classes.
"""

from tokendyno.backend.models.shape import Shape


def count_parameters(shape: Shape) -> int:
    """Number of parameters; tied ones count once."""
    match shape.family.layout:
        case "gpt2":
            return _gpt2(shape)
        case "bert":
            return _bert(shape)
        case "llama":
            return _llama(shape)


def count_buffer_bytes(shape: Shape) -> int:
    """Bytes of the buffers, each in its own dtype.

    Rotary frequencies are float32 and stored twice (`inv_freq`, `original_inv_freq`), in some models per layer type.
    BERT stores position and token type ids as int64. Gemma's embedding scale, a single number, is left out.
    """
    match shape.family.rope_sets:
        case "none":
            return 2 * 8 * shape.max_positions if shape.family.layout == "bert" else 0
        case "one":
            sets = 1
        case "each":
            sets = len(set(shape.layer_kinds))
    return sets * 2 * (shape.rotary_dim // 2) * 4


def _llama(shape: Shape) -> int:
    """Llama and its descendants: gated feed-forward, RMS norms, rotary positions."""
    hidden, family = shape.hidden, shape.family
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = hidden * (queries + 2 * keys) + queries * hidden
    attention += (queries + 2 * keys) * shape.qkv_bias + hidden * shape.o_bias
    attention += {"": 0, "head": 2 * shape.head_dim, "all": queries + keys}[family.qk_norm]
    attention += shape.heads * (family.moe == "gpt_oss")  # one sink per head
    dense = 3 * hidden * shape.intermediate + (2 * shape.intermediate + hidden) * shape.mlp_bias
    feed_forward = shape.expert_layers * _experts(shape) + (shape.layers - shape.expert_layers) * dense
    head = 0 if shape.tied else shape.vocab * hidden
    norms = shape.layers * family.norms * hidden + hidden
    return shape.vocab * hidden + shape.layers * attention + feed_forward + norms + head


def _experts(shape: Shape) -> int:
    """One layer's router and experts; both have biases in gpt-oss."""
    hidden, width = shape.hidden, shape.expert_width
    expert = 3 * hidden * width
    router = hidden
    if shape.family.moe == "gpt_oss":
        expert += 2 * width + hidden
        router += 1
    return shape.experts * (expert + router)


def _gpt2(shape: Shape) -> int:
    """Learned positions, layer norms with bias, biases everywhere."""
    hidden, width = shape.hidden, shape.intermediate
    attention = 3 * (hidden * hidden + hidden) + hidden * hidden + hidden
    feed_forward = 2 * hidden * width + width + hidden
    head = 0 if shape.tied else shape.vocab * hidden
    layers = shape.layers * (attention + feed_forward + 4 * hidden)
    return (shape.vocab + shape.max_positions) * hidden + layers + 2 * hidden + head


def _bert(shape: Shape) -> int:
    """Three embeddings, post-norm layers, a pooler."""
    hidden, width = shape.hidden, shape.intermediate
    embeddings = (shape.vocab + shape.max_positions + shape.type_vocab) * hidden + 2 * hidden
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * width + width + hidden + 4 * hidden
    return embeddings + shape.layers * layer + hidden * hidden + hidden
