"""Which KV cache goes with which model, machine and other choices, and how that is known."""

from backend.optimizations.base import Rule, Subject

DOCS = "https://huggingface.co/docs/transformers/kv_cache"
_CODE = "transformers 5.22: cache_utils.py"
_GROUP = 64  # numbers that share a scale: `predict.kv.GROUP`

SAME_AS_DYNAMIC = Rule(
    "note",
    lambda s: "sliding" not in s.facts.layer_kinds,
    "This model has no sliding-window layers, so this is the same as dynamic.",
    DOCS,
)


def _needs_gpu(instead: str) -> Rule:
    return Rule(
        "blocked",
        lambda s: s.machine.device != "cuda",
        "Offloading moves keys and values between a GPU and host memory, and there is no GPU.",
        f"{DOCS}#offloaded-cache",
        fix=(("cache", instead),),
    )


_MOVES = Rule(
    "note",
    lambda s: s.machine.device == "cuda",
    "Every step reads the whole cache from host memory again: less GPU memory, more time.",
    f"{DOCS}#offloaded-cache",
)

OFFLOADED = (_needs_gpu("dynamic"), _MOVES)
OFFLOADED_STATIC = (
    _needs_gpu("static"),
    Rule(
        "blocked",
        lambda s: s.facts.kind == "decoder" and s.facts.full_layers == 0,
        "The offloaded static cache moves layers with full attention alone, and every layer of this model slides: "
        "transformers fails while it looks for one.",
        f"{_CODE}: Cache.prefetch",
        fix=(("cache", "offloaded"),),
    ),
    Rule(
        "blocked",
        lambda s: s.choices.get("compile", "off") != "off",
        "A compiled step holds the addresses of the cache's tensors, and offloading gives them new ones at every step.",
        f"{_CODE}: CacheLayerMixin.offload, StaticLayer.lazy_initialization",
        fix=(("cache", "static"),),
    ),
    _MOVES,
)

_ALL_FULL = Rule(
    "blocked",
    lambda s: "sliding" in s.facts.layer_kinds,
    "Quantized caches are only for models whose layers all have full attention, and this one has sliding windows.",
    f"{_CODE}: QuantizedCache",
    fix=(("cache", "dynamic"),),
)
_LOSSY = Rule(
    "note",
    lambda s: s.facts.kind == "decoder",
    "Keys and values are rounded, so the text may differ from that of the other caches.",
    f"{DOCS}#quantized-cache",
)


def _not_whole(s: Subject) -> bool:
    return s.facts.kind == "decoder" and s.facts.kv_heads * s.facts.head_dim % _GROUP != 0


_GROUPS = Rule(
    "note",
    _not_whole,
    f"Quantized in groups of {_GROUP} numbers: with heads of this size some prompt lengths do not divide into them and "
    f"are refused. A multiple of {_GROUP} tokens always does.",
    "hqq 0.2: Quantizer.quantize; optimum-quanto 0.2: group",
)


def _needs(package: str) -> Rule:
    return Rule(
        "blocked",
        lambda s: not s.machine.has(package),
        f"This cache needs the package {package}, which is not installed. Install it (pip install {package}), or take "
        "fp8, which needs none.",
        f"{DOCS}#quantized-cache",
        fix=(("cache", "quantized-fp8"),),
    )


_UNPACKS = Rule(
    "note",
    lambda s: s.machine.has("optimum-quanto"),
    "Codes are unpacked by torch's operators here. A script builds optimum-quanto's own helper first, which takes a "
    "minute and a C++ compiler, on a GPU many minutes and nvcc.",
    "optimum-quanto 0.2: library/extensions; backend/worker/caches.py",
)

FP8 = (_ALL_FULL, _LOSSY)
HQQ = (_needs("hqq"), _ALL_FULL, _GROUPS, _LOSSY)
QUANTO = (_needs("optimum-quanto"), _ALL_FULL, _GROUPS, _UNPACKS, _LOSSY)
