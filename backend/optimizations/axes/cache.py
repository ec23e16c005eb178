"""How the KV cache is stored, and where."""

from typing import Any

from tokendyno.backend.models.facts import CacheLayers
from tokendyno.backend.optimizations.base import Choice, Optimization, Rule, blocked, note
from tokendyno.backend.optimizations.shared_rules import UNPACKS_WITH_TORCH, needs_package
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.optimizations.whole_layers import WHOLE
from tokendyno.backend.plan import CACHES, STATIC_FP8, CacheKind, Plan
from tokendyno.backend.script.construct import Argument, Construct, Name
from tokendyno.backend.script.parts import Script

_DOCS = "https://huggingface.co/docs/transformers/kv_cache"
_CODE = "transformers 5.22: cache_utils.py"

_SAME_AS_DYNAMIC = note(
    lambda s: "sliding" not in s.facts.layer_kinds,
    "This model has no sliding-window layers, so this is the same as dynamic.",
    _DOCS,
)


def _needs_gpu(instead: str) -> Rule:
    return blocked(
        lambda s: not s.cuda,
        "Offloading moves keys and values between a GPU and host memory, and this machine has no GPU.",
        f"{_DOCS}#offloaded-cache",
        fix=(("cache", instead),),
    )


_MOVES = note(
    lambda s: s.cuda,
    "Every step reads the whole cache from host memory: less GPU memory, slower decoding.",
    f"{_DOCS}#offloaded-cache",
)

_STATIC = (
    blocked(
        lambda s: s.decoder and not s.facts.fits_static,
        "transformers does not generate with a static cache for this architecture: it makes position biases for the "
        "tokens so far alone, puts tokens of its own in front, or has no static form of its layers.",
        "transformers 5.22: `generate` over a StaticCache without values (backend/counter/cache.py)",
    ),
)
_COMPILES_BY_ITSELF = note(
    lambda s: (
        s.decoder
        and s.cuda
        and s.choices["cuda_graphs"] != "manual"
        and not (s.asks_to_compile or s.own_loop or s.skips_compilation)
    ),
    "With a static cache on a GPU, generate compiles its forward pass by default (mode reduce-overhead). This arm gets "
    "disable_compile=True, so that the cache alone is seen.",
    "transformers 5.22: GenerationMixin._valid_auto_compile_criteria, CompileConfig.mode",
    fix=(("compile", "reduce-overhead"),),
)
_OFFLOADED = (_needs_gpu("dynamic"), _MOVES)
_OFFLOADED_STATIC = (
    *_STATIC,
    _needs_gpu("static"),
    blocked(
        lambda s: s.cuda and s.decoder and s.facts.full_layers == 0,
        "The offloaded static cache moves full-attention layers only, and this model has none: transformers fails "
        "while looking for one.",
        f"{_CODE}: Cache.prefetch",
        fix=(("cache", "offloaded"),),
    ),
    _MOVES,
)


def _has_state(layers: CacheLayers) -> bool:
    """Whether something is kept that does not grow with the tokens, beside keys and values or in their place."""
    return layers.kind == "fixed" or bool(layers.state_bytes or layers.state_elements)


def _full_attention(instead: str, source: str) -> tuple[Rule, Rule]:
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


_FULL_ATTENTION = _full_attention("dynamic", f"{_CODE}: QuantizedCache")
_UNWINDOWED = (
    blocked(
        lambda s: any(map(_has_state, s.facts.counted_cache)),
        "A cache that does not know the config has no place for this architecture's states of linear attention.",
        f"{_CODE}: DynamicCache without a config has DynamicLayers only",
    ),
)
_LOSSY = note(
    lambda s: s.decoder,
    "Keys and values are rounded, so the text may differ from other caches.",
    f"{_DOCS}#quantized-cache",
)
_OWN_LOOP = blocked(
    lambda s: s.decoder and not s.own_loop,
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
    fused = s.facts.architecture in WHOLE and s.choices["projections"] == "fused"
    return fused or s.facts.architecture in ("gpt2", "phi3")


_DEQUANTIZES = note(
    lambda s: s.decoder and not (s.choices["kernels"] == "local" and _whole(s)),
    "Where kernels=local does not compute whole layers, each dequantizes its whole cache for each token: less memory, "
    "slower decoding.",
    "backend/worker/loop/cache.py: StaticFp8SlotLayer.update",
)


_NOT_IN_FP8 = ("gemma2", "olmo2", "olmo3", "olmoe")
"""Architectures with a soft cap, or a norm over the queries of all heads: the 8-bit attention has neither."""


def _reads_fp8(s: Subject) -> bool:
    facts = s.facts
    if s.machine.capability < (8, 9) or not s.half_precision or facts.architecture in _NOT_IN_FP8:
        return False
    return facts.head_dim in (32, 64, 128) and facts.heads < 16 * facts.kv_heads


_NOT_READ = blocked(
    lambda s: s.choices["kernels"] == "local" and s.decoder and s.cuda and not _reads_fp8(s),
    "The attention of kernels=local reads 8 bits from compute capability 8.9 on, in models of 16 bits with "
    "heads of 32, 64 or 128 numbers and fewer than 16 queries for each KV head. It has no soft cap (Gemma 2), and no "
    "norm over the queries of all heads (OLMo).",
    "presets/kernels/matvec: attention_fp8.reads",
    fix=(("cache", "static"),),
)

_STATIC_FP8 = (
    *_STATIC,
    _OWN_LOOP,
    _RANKS,
    *_full_attention("static", "backend/worker/loop/cache.py: StaticSlotCache"),
    _NOT_READ,
    _LOSSY,
    _DEQUANTIZES,
)
_FP8 = (*_FULL_ATTENTION, _LOSSY)
_WITHOUT_PACKAGE = (("cache", "quantized-fp8"),)
_HQQ = (needs_package("hqq", _WITHOUT_PACKAGE), *_FULL_ATTENTION, _LOSSY)
_QUANTO = (needs_package("optimum-quanto", _WITHOUT_PACKAGE), *_FULL_ATTENTION, UNPACKS_WITH_TORCH, _LOSSY)


CONFIG, LENGTH = "config", "length"
"""Names of the arguments that are the model's config, and the tokens that a static cache holds."""


def cache_construct(cache: CacheKind) -> Construct:
    keywords: dict[str, Argument] = {}
    if cache.quantized:
        keywords |= {"nbits": cache.bits} if cache.grouped else {}
        return Construct("transformers", "QuantizedCache", (cache.backend, Name(CONFIG)), keywords)
    if cache.windowed:
        keywords["config"] = Name(CONFIG)
    if cache.static:
        keywords["max_cache_len"] = Name(LENGTH)
    if cache.offloaded:
        keywords["offloading"] = True
    return Construct("transformers", "StaticCache" if cache.static else "DynamicCache", (), keywords)


_PATCHES = {"quanto": "unpack_with_torch", "fp8": "saturate_fp8_cache"}
"""Functions of `worker/patch/quantized.py` that change the package that quantizes."""


def keeps_latents(layer: Any) -> bool:
    """Whether a cache layer keeps, in place of keys and values of all heads, what these are made from (MLA): a latent
    vector of shape (B, 1, S, rank) and rotated keys of another width."""
    keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
    if keys is None or values is None or keys.dim() != 4 or values.dim() != 4:
        return False
    return bool(keys.shape[1] == values.shape[1] == 1 and keys.shape[-1] != values.shape[-1])


class Cache(Optimization):
    name = "cache"
    title = "KV cache"
    summary = "How keys and values of past tokens are stored."
    default = "dynamic"
    witness = "kv"
    order = 30
    leading = True
    decoders_only = True
    in_fit_table = True
    aliases = {
        "": ("cache_implementation", "past_key_values", "cache_config"),
        "dynamic": ("DynamicCache(config=model.config)",),
        "unwindowed": ("DynamicCache()", "sliding_window"),
        "static": ("StaticCache", "max_cache_len"),
        "offloaded": ("OffloadedCache", "DynamicCache(offloading=True)"),
        "offloaded_static": ("OffloadedStaticCache", "StaticCache(offloading=True)"),
        "quantized-fp8": ("QuantizedCache", "float8", "8-bit"),
        "quantized-hqq4": ("QuantizedCache", "4bit", "4-bit"),
        "quantized-quanto4": ("QuantizedCache", "4bit", "4-bit"),
    }
    renamed = {
        "OffloadedCache": "past_key_values=DynamicCache(offloading=True)",
        "OffloadedStaticCache": "past_key_values=StaticCache(offloading=True)",
    }
    wish = "context"
    wishes = {"static": "faster", "unwindowed": "reference"}
    costs = {
        "static": "memory for the full length from the start",
        "unwindowed": "memory that grows past the window",
        "offloaded": "time: each layer is copied for each token",
        "offloaded_static": "time: each layer is copied for each token",
        "static-fp8": "little quality, and memory for the full length from the start",
        "quantized-fp8": "little quality",
        "quantized-hqq4": "some quality, and time",
        "quantized-quanto4": "some quality, and time",
    }
    choices = (
        Choice(
            "dynamic", "Grows with each token; sliding-window layers keep window - 1 tokens.", loss=2
        ),
        Choice(
            "unwindowed", "Grows with each token, and every layer keeps every token.",
            (*_UNWINDOWED, _SAME_AS_DYNAMIC), tried_on_several_gpus=False, title="full (no sliding window)",
        ),
        Choice(
            "static", "Allocated once at its full length: shapes stay fixed, so steps compile.",
            (*_STATIC, _COMPILES_BY_ITSELF), loss=3,
        ),
        Choice(
            "static-fp8", "Allocated once, 1 byte per element, with a scale for each token and head.",
            _STATIC_FP8, loss=40, tried_on_several_gpus=False, title="static, fp8",
        ),
        Choice(
            "offloaded", "Grows in host memory; only the current and the next layer are on the GPU.",
            _OFFLOADED, loss=21, tried_on_several_gpus=False,
        ),
        Choice(
            "offloaded_static",
            "Allocated once in host memory; sliding-window layers, which are small, stay on the GPU.",
            _OFFLOADED_STATIC, loss=22, tried_on_several_gpus=False, title="offloaded, static",
        ),
        Choice(
            "quantized-fp8",
            "1 byte per element, with one scale per layer, taken from the prompt; larger numbers are cut off.",
            _FP8, loss=41, tried_on_several_gpus=False, title="quantized, fp8",
        ),
        Choice(
            "quantized-hqq4", "4 bits per element; the newest 127 tokens stay in full precision.",
            _HQQ, loss=51, tried_on_several_gpus=False, title="quantized, hqq 4 bits",
        ),
        Choice(
            "quantized-quanto4", "4 bits per element; the newest 127 tokens stay in full precision.",
            _QUANTO, loss=52, tried_on_several_gpus=False, title="quantized, quanto 4 bits",
        ),
    )  # fmt: skip

    def edit(self, plan: Plan, name: str, subject: Subject) -> Plan:
        return plan.with_generate(cache=CACHES[name])

    def write(self, script: Script, plan: Plan) -> None:
        if plan.generate.cache not in (CACHES[self.default], STATIC_FP8):  # the loop writes its own
            cache = cache_construct(plan.generate.cache)
            script.imports.update(cache.imports())
            script.cache = cache.source(**{CONFIG: "model.config", LENGTH: "MAX_LENGTH"})
            if patch := _PATCHES.get(plan.generate.cache.backend):
                script.patched("worker/patch/quantized.py", f"{patch}()")
