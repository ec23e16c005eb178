"""The architectures of which kernels compute whole decoder layers."""

from typing import NamedTuple

from tokendyno.backend.models.router import Router


class Whole(NamedTuple):
    """An architecture of which kernels compute whole decoder layers, once projections are fused.

    prefix               of the names of its classes
    layer, rotary, norm  the kernel layer as which its decoder layer, rotary embedding and RMSNorm are offered; "": none
    """

    prefix: str
    layer: str = "DecoderLayer"
    rotary: str = "RotaryEmbedding"
    norm: str = ""  # other than as transformers offers it
    block: str = "DecoderLayer"  # how the class of its decoder layer ends


_PLAIN = """
    arcee cwm deepseek_v3 dots1 exaone4 glm glm4 glm4_moe glm4_moe_lite granite helium llama ministral ministral3
    mistral olmoe phi3 qwen2 qwen2_moe qwen3 qwen3_moe seed_oss solar_open youtu
"""
"""Model types with nothing special, whose classes are named after them."""
WHOLE = {name: Whole(name.title().replace("_", "")) for name in _PLAIN.split()} | {
    "bamba": Whole("Bamba", "DecoderLayerInPair"),
    "deepseek_v2": Whole("DeepseekV2", rotary=""),
    "ernie4_5": Whole("Ernie4_5", rotary=""),
    "falcon_h1": Whole("FalconH1", "DecoderLayerWithTwoMasks"),
    "gemma": Whole("Gemma", norm="OffsetRMSNorm"),
    "gemma2": Whole("Gemma2", "DecoderLayerWithAnglesFirst", norm="OffsetRMSNorm"),
    "gemma3_text": Whole("Gemma3", "DecoderLayerWithAnglesFirst", "TypedRotaryEmbedding", "OffsetRMSNorm"),
    "gpt_oss": Whole("GptOss", rotary="HalfRotaryEmbedding"),
    "granite_swa": Whole("GraniteSWA"),
    "granitemoehybrid": Whole("GraniteMoeHybrid", "DecoderLayerWithoutPositions", rotary=""),
    "hyperclovax": Whole("HyperCLOVAX"),
    "lfm2": Whole("Lfm2", "DecoderLayerWithAnglesFirst"),
    "lfm2_moe": Whole("Lfm2Moe", "DecoderLayerWithAnglesFirst"),
    "mellum": Whole("Mellum", rotary="TypedRotaryEmbedding"),
    "minicpm3": Whole("MiniCPM3"),
    "minimax_m2": Whole("MiniMaxM2", "DecoderLayerWithAnglesFirst"),
    "mixtral": Whole("Mixtral", "DecoderLayerWithAnglesFirst"),
    "nemotron_h": Whole("NemotronH", "DecoderLayerAlone", rotary="", block="Block"),
    "olmo2": Whole("Olmo2", rotary=""),
    "olmo3": Whole("Olmo3", rotary="FloatRotaryEmbedding"),
    "qwen3_5_moe_text": Whole("Qwen3_5Moe", "DecoderLayerWithAnglesFirst", "", "OffsetRMSNorm"),
    "qwen3_5_text": Whole("Qwen3_5", "DecoderLayerWithAnglesFirst", "", "OffsetRMSNorm"),
    "qwen3_next": Whole("Qwen3Next", "DecoderLayerWithAnglesFirst", norm="OffsetRMSNorm"),
    "smollm3": Whole("SmolLM3"),
}
"""By model type. What else a layer has is read from its modules: `description.py` of the kernels."""
PUBLISHED = {"qwen3_5": "qwen3_5_text", "qwen3_5_moe": "qwen3_5_moe_text"}
"""Model types of configs whose text model is one of these."""
WHOLE |= {name: WHOLE[text] for name, text in PUBLISHED.items()}
LAYERS = {
    f"{whole.prefix}{kind}": layer
    for whole in WHOLE.values()
    for kind, layer in zip((whole.block, "RotaryEmbedding", "RMSNorm"), whole[1:4], strict=True)
    if layer
}
"""Classes that a kernel may replace, and the layer name each is offered under."""


def known_router(router: Router) -> bool:
    """Whether kernels compute whole layers with such experts, as `routing_of` and `_of_mixture` of the kernels'
    `description.py` decide: a choice of groups is made among powers of two alone."""
    groups, number = router.groups, router.experts
    if groups > 1 and (number & (number - 1) or groups & (groups - 1) or number < 2 * groups):
        return False
    return not (router.method or router.bare or router.narrowed or router.clipped)
