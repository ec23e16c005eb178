"""Lists a model's weight matrices from its shape, by modeling_<name>.py of transformers 5.22; tests compare with it."""

from tokendyno.backend.models.facts import Matrix
from tokendyno.backend.models.shape import Shape


def list_matrices(shape: Shape) -> tuple[Matrix, ...]:
    """All matrices of the model, without routers and without vectors (norms, biases, sinks)."""
    match shape.family.layout:
        case "gpt2":
            inner = _gpt2(shape)
        case "bert":
            inner = _bert(shape)
        case "llama":
            inner = _llama(shape)
    head = () if shape.tied or shape.family.layout == "bert" else (Matrix("head", 1, shape.vocab, shape.hidden),)
    return (Matrix("embedding", 1, shape.vocab, shape.hidden), *inner, *head)


def _llama(shape: Shape) -> tuple[Matrix, ...]:
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    queries, keys = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    dense = layers - shape.expert_layers
    experts = shape.expert_layers * shape.experts
    qkv, mlp, both = shape.qkv_bias, shape.mlp_bias, shape.family.moe == "gpt_oss"
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
    found = (
        *attention,
        Matrix("linear", layers, hidden, queries, "columns", shape.o_bias),
        *gates,
        Matrix("linear", dense, hidden, width, "columns", mlp),
        Matrix("expert", experts, 2 * shape.expert_width, hidden, bias=both),
        Matrix("expert", experts, hidden, shape.expert_width, "columns", both),
    )
    return tuple(matrix for matrix in found if matrix.count)


def _gpt2(shape: Shape) -> tuple[Matrix, ...]:
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    return (
        Matrix("embedding", 1, shape.max_positions, hidden),
        Matrix("conv1d", layers, 3 * hidden, hidden),
        Matrix("conv1d", layers, hidden, hidden),
        Matrix("conv1d", layers, width, hidden),
        Matrix("conv1d", layers, hidden, width),
    )


def _bert(shape: Shape) -> tuple[Matrix, ...]:
    """The pooler after the last layer counts as one more linear layer."""
    hidden, layers, width = shape.hidden, shape.layers, shape.intermediate
    return (
        Matrix("embedding", 1, shape.max_positions, hidden),
        Matrix("embedding", 1, shape.type_vocab, hidden),
        Matrix("linear", 4 * layers + 1, hidden, hidden),
        Matrix("linear", layers, width, hidden),
        Matrix("linear", layers, hidden, width),
    )
