"""What can be changed about an arm that needs too much memory, from the least loss to the most.

Nothing lost: a fused attention, a cache that drops what no layer sees, packed experts as they were published. Time
lost: the cache in host memory. Digits lost: fewer bits, first where most keep the text unchanged.
"""

REMEDIES: tuple[dict[str, str], ...] = (
    {"attention": "sdpa"},
    {"cache": "dynamic"},
    {"cache": "static"},
    {"attention": "sdpa", "cache": "dynamic"},
    {"experts": "grouped_mm"},
    {"experts": "eager"},
    {"quantization": "mxfp4"},
    {"cache": "offloaded"},
    {"cache": "offloaded_static"},
    {"dtype": "bfloat16"},
    {"dtype": "bfloat16", "cache": "dynamic"},
    {"dtype": "bfloat16", "cache": "offloaded"},
    {"cache": "quantized-fp8"},
    {"quantization": "bnb-int8"},
    {"quantization": "torchao-int8"},
    {"quantization": "quanto-int8"},
    {"quantization": "torchao-fp8"},
    {"cache": "quantized-hqq4"},
    {"cache": "quantized-quanto4"},
    {"quantization": "bnb-nf4"},
    {"quantization": "bnb-nf4-double"},
    {"quantization": "torchao-int4"},
    {"quantization": "quanto-int4"},
    {"quantization": "bnb-fp4"},
    {"quantization": "bnb-fp4-double"},
    {"dtype": "bfloat16", "quantization": "bnb-nf4-double"},
    {"quantization": "bnb-nf4-double", "cache": "dynamic"},
    {"quantization": "bnb-nf4-double", "cache": "offloaded"},
    {"quantization": "bnb-nf4-double", "cache": "quantized-hqq4"},
)
"""Changes to try in this order. By their papers: bf16 (what most checkpoints are), int8 with
outliers kept (arXiv 2208.07339), int8 by rows, nf4 before fp4 (arXiv 2305.14314)."""


def loss_rank(choices: dict[str, str], axis: str, default: str) -> int:
    """Where the choice of an axis stands in that order, 0 for its default: a rank to sort by, not a measure."""
    choice = choices.get(axis, default)
    if choice == default:
        return 0
    places = [i for i, remedy in enumerate(REMEDIES) if remedy == {axis: choice}]
    return 1 + (places[0] if places else len(REMEDIES))
