"""When each KV cache can run."""

from tokendyno.backend.models.facts import CacheLayers
from tokendyno.backend.optimizations.conditions import asks_to_compile, half_precision, skips_compilation, uses_own_loop
from tokendyno.backend.optimizations.subject import Rule, Subject, blocked, note
from tokendyno.backend.optimizations.whole_layers import WHOLE
from tokendyno.backend.predict.kv import GROUP

DOCS = "https://huggingface.co/docs/transformers/kv_cache"
_CODE = "transformers 5.22: cache_utils.py"

SAME_AS_DYNAMIC = note(
    lambda s: "sliding" not in s.facts.layer_kinds,
    "This model has no sliding-window layers, so this is the same as dynamic.",
    DOCS,
)


def _needs_gpu(instead: str) -> Rule:
    return blocked(
        lambda s: s.machine.device != "cuda",
        "Offloading moves keys and values between a GPU and host memory, and this machine has no GPU.",
        f"{DOCS}#offloaded-cache",
        fix=(("cache", instead),),
    )


_MOVES = note(
    lambda s: s.machine.device == "cuda",
    "Every step reads the whole cache from host memory: less GPU memory, slower decoding.",
    f"{DOCS}#offloaded-cache",
)

STATIC = (
    blocked(
        lambda s: s.facts.kind == "decoder" and not s.facts.fits_static,
        "transformers does not generate with a static cache for this architecture: it makes position biases for the "
        "tokens so far alone, puts tokens of its own in front, or has no static form of its layers.",
        "transformers 5.22: `generate` over a StaticCache without values (backend/counter/forms.py)",
        fix=(("cache", "dynamic"),),
    ),
)
COMPILES_BY_ITSELF = note(
    lambda s: (
        s.decoder
        and s.cuda
        and s.choices["cuda_graphs"] != "manual"
        and not (asks_to_compile(s) or uses_own_loop(s) or skips_compilation(s))
    ),
    "With a static cache on a GPU, generate compiles its forward pass by default (mode reduce-overhead). This arm gets "
    "disable_compile=True, so that the cache alone is seen.",
    "transformers 5.22: GenerationMixin._valid_auto_compile_criteria, CompileConfig.mode",
    fix=(("compile", "reduce-overhead"),),
)
OFFLOADED = (_needs_gpu("dynamic"), _MOVES)
OFFLOADED_STATIC = (
    *STATIC,
    _needs_gpu("static"),
    blocked(
        lambda s: s.machine.device == "cuda" and s.facts.kind == "decoder" and s.facts.full_layers == 0,
        "The offloaded static cache moves full-attention layers only, and this model has none: transformers fails "
        "while looking for one.",
        f"{_CODE}: Cache.prefetch",
        fix=(("cache", "offloaded"),),
    ),
    blocked(
        asks_to_compile,
        "A compiled step holds the addresses of the cache's tensors, and offloading changes them at every step.",
        f"{_CODE}: CacheLayerMixin.offload, StaticLayer.lazy_initialization",
        fix=(("cache", "static"),),
    ),
    _MOVES,
)


def _has_state(layers: CacheLayers) -> bool:
    """Whether something is kept that does not grow with the tokens, beside keys and values or in their place."""
    return layers.kind == "fixed" or bool(layers.state_bytes or layers.state_elements)


def _plain(instead: str, source: str) -> tuple[Rule, Rule]:
    """Full attention in every layer, and nothing but keys and values of one size."""
    return (
        blocked(
            lambda s: "sliding" in s.facts.layer_kinds,
            "Quantized caches support full-attention layers only, and this model has sliding-window layers.",
            source,
            fix=(("cache", instead),),
        ),
        blocked(
            lambda s: any(_has_state(layers) or not layers.even for layers in s.facts.counted_cache),
            "This architecture keeps other things than keys and values of one size (latents, states of linear "
            "attention), and what a quantized cache makes of them was not counted.",
            f"{_CODE}: LinearAttentionLayer, DynamicIndexedLayer; MLA in models/deepseek_v3",
            fix=(("cache", instead),),
        ),
    )


_PLAIN = _plain("dynamic", f"{_CODE}: QuantizedCache")
UNWINDOWED = (
    blocked(
        lambda s: any(map(_has_state, s.facts.counted_cache)),
        "A cache that does not know the config has no place for this architecture's states of linear attention.",
        f"{_CODE}: DynamicCache without a config has DynamicLayers only",
        fix=(("cache", "dynamic"),),
    ),
)
_LOSSY = note(
    lambda s: s.facts.kind == "decoder",
    "Keys and values are rounded, so the text may differ from other caches.",
    f"{DOCS}#quantized-cache",
)


def _not_whole(s: Subject) -> bool:
    return s.facts.kind == "decoder" and s.facts.kv_heads * s.facts.head_dim % GROUP != 0


_GROUPS = note(
    _not_whole,
    f"Elements are quantized in groups of {GROUP}: with this head size some prompt lengths do not divide into whole "
    f"groups and are refused. A multiple of {GROUP} tokens always does.",
    "hqq 0.2: Quantizer.quantize; optimum-quanto 0.2: group",
)


def _needs(package: str) -> Rule:
    return blocked(
        lambda s: not s.machine.has(package),
        f"This cache needs the package {package}, which is not installed. Install it (pip install {package}) or use "
        "cache=quantized-fp8, which needs no package.",
        f"{DOCS}#quantized-cache",
        fix=(("cache", "quantized-fp8"),),
    )


_UNPACKS = note(
    lambda s: s.machine.has("optimum-quanto"),
    "tokendyno unpacks 4-bit codes with torch operators. A script first builds optimum-quanto's own extension, "
    "which takes a minute and a C++ compiler, on a GPU many minutes and nvcc.",
    "optimum-quanto 0.2: library/extensions; backend/worker/runners/cache.py",
)

_OWN_LOOP = blocked(
    lambda s: s.decoder and not uses_own_loop(s),
    "This cache is that of the custom decode loop; generate has quantized caches that grow.",
    "backend/worker/loop/cache.py: StaticFp8SlotLayer",
    fix=(("loop", "own"),),
)
_RANKS = blocked(
    lambda s: s.choices["parallel"] != "off",
    "The kernels of a layer that is split between GPUs do not read keys and values in 8 bits.",
    "presets/kernels/matvec: shared_layer",
    fix=(("cache", "static"),),
)


def _whole(s: Subject) -> bool:
    """Whether kernels may compute this model's layers whole, as far as its matrices go."""
    named = s.facts.architecture in WHOLE and s.choices["projections"] == "fused"
    return named or s.facts.architecture in ("gpt2", "phi3")


_DEQUANTIZES = note(
    lambda s: s.facts.kind == "decoder" and not (s.choices["kernels"] == "local" and _whole(s)),
    "Where kernels=local does not compute whole layers, each dequantizes its whole cache for each token: less memory, "
    "slower decoding.",
    "backend/worker/loop/cache.py: StaticFp8SlotLayer.update",
)


def _not_read(s: Subject) -> bool:
    facts = s.facts
    if s.choices["kernels"] != "local" or not s.decoder or not s.cuda:
        return False
    sizes = facts.head_dim in (32, 64, 128) and facts.heads < 16 * facts.kv_heads
    return s.machine.capability < (8, 9) or not half_precision(s) or not sizes


_NOT_READ = blocked(
    _not_read,
    "The attention of kernels=local reads 8 bits from compute capability 8.9 on, in models of 16 bits with "
    "heads of 32, 64 or 128 numbers and fewer than 16 queries for each KV head.",
    "presets/kernels/matvec: attention_fp8.reads",
    fix=(("cache", "static"),),
)

STATIC_FP8 = (
    *STATIC,
    _OWN_LOOP,
    _RANKS,
    *_plain("static", "backend/worker/loop/cache.py: StaticSlotCache"),
    _NOT_READ,
    _LOSSY,
    _DEQUANTIZES,
)
FP8 = (*_PLAIN, _LOSSY)
HQQ = (_needs("hqq"), *_PLAIN, _GROUPS, _LOSSY)
QUANTO = (_needs("optimum-quanto"), *_PLAIN, _GROUPS, _UNPACKS, _LOSSY)
