"""What several axes ask of an arm, each question answered once."""

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.hardware.compilers import INSTALL
from tokendyno.backend.hardware.number_formats import FormatTime, nearest
from tokendyno.backend.optimizations import mxfp4
from tokendyno.backend.optimizations.base import Rule, Subject, When, blocked
from tokendyno.backend.plan import CACHES, GRAPH_MODES, CacheKind
from tokendyno.backend.predict.quantized import library_of
from tokendyno.backend.predict.setup import Setup
from tokendyno.backend.predict.shape import attention_of

COMPILED_CHECKPOINTS = frozenset({"compressed-tensors", "fp8", "gemma", "gguf", "mxfp8", "nvfp4", "torchao"})
"""Quantized checkpoints that `generate` compiles all the same; a test compares this with transformers' classes."""

UNCOMPILED_LIBRARIES = ("bitsandbytes", "quanto")
"""Quantization libraries whose models `generate` does not compile (`HfQuantizer.is_compileable`)."""


def needs_compiler(when: When) -> Rule:
    """Refuses what compiles where nothing can be compiled."""
    return blocked(
        lambda s: bool(s.machine.no_compiler) and when(s),
        "torch.compile needs a compiler (C++ on a CPU, C on a GPU) and Python's headers, and one of them is not here: "
        f"install it {INSTALL}. The variables CXX and CC name another compiler.",
        "torch 2.13: _inductor/cpp_builder.py, get_cpp_compiler; Triton 3.6: runtime/build.py",
    )


# --- dtype, cache and loop ------------------------------------------------------------------------


CLEARLY_SLOWER = 1.3
"""From this ratio of times on, dtype=auto gives up the checkpoint's bfloat16 on a CPU. Our choice."""


def slow_bfloat16(s: Subject) -> FormatTime | None:
    """The measurement by which this CPU should load bfloat16 weights in float32; None where it should not: they are not
    slower, or float32 weights would take more than a quarter of memory."""
    facts, quantized = s.facts, s.facts.quantization or s.choices["quantization"] != "none"
    if s.cuda or not s.decoder or facts.dtype != "bfloat16" or quantized:
        return None
    rows = 1 if batches_continuously(s) else s.batch_size  # a request's text is the same however many others there are
    measured = nearest(s.machine.bfloat16, 2 * facts.parameters, rows)
    if measured is None or measured.ratio < CLEARLY_SLOWER or 4 * facts.parameters > s.machine.memory_bytes / 4:
        return None
    return measured


def dtype_of(name: str, s: Subject) -> str:
    """The number format that a choice of `dtype` comes to."""
    if name != "auto":
        return name
    return "float32" if slow_bfloat16(s) else s.facts.dtype


def compute_dtype(s: Subject) -> str:
    """The dtype of the activations."""
    return dtype_of(s.choices["dtype"], s)


def half_precision(s: Subject) -> bool:
    """Whether activations are in a 2-byte format."""
    return compute_dtype(s) in ("float16", "bfloat16")


def attention_in_use(s: Subject) -> str:
    """The attention that runs: as asked for, else the default of transformers."""
    choice = s.choices["attention"]
    return attention_of(s.facts, Setup(attention=None if choice == "auto" else choice))


def kv_cache(s: Subject) -> CacheKind:
    return CACHES[s.choices["cache"]]


def uses_own_loop(s: Subject) -> bool:
    return s.choices["loop"] == "own"


def drafts(s: Subject) -> bool:
    return s.choices["speculation"] != "off"


def batches_statically(s: Subject) -> bool:
    return s.choices["batching"] == "static"


def batches_continuously(s: Subject) -> bool:
    return s.choices["batching"] == "continuous"


# --- weights --------------------------------------------------------------------------------------


def quantization_library(s: Subject) -> str:
    """The library that quantizes the weights while they are loaded; "" where none does."""
    return library_of(s.choices["quantization"])


def runs_mxfp4(s: Subject) -> bool:
    """Whether this arm's experts stay in MXFP4: asked for, or left to the checkpoint, and supported here."""
    choice = s.choices["quantization"]
    return (choice == "mxfp4" or (choice == "none" and mxfp4.published(s))) and mxfp4.native(s)


def runs_own_mxfp4(s: Subject) -> bool:
    return runs_mxfp4(s) and mxfp4.own(s)


# --- compilation ----------------------------------------------------------------------------------


def asks_to_compile(s: Subject) -> bool:
    """Whether compilation was asked for, whatever comes of it; torch.compile(model) compiles nothing that generates."""
    return s.choices["compile"] not in ("off", "module")


def skips_compilation(s: Subject) -> bool:
    """Whether `generate` would silently leave this model uncompiled, because of how its weights are quantized."""
    if not s.decoder or uses_own_loop(s):
        return False
    chosen, checkpoint = s.choices["quantization"], s.facts.quantization
    if "mxfp4" in (chosen, checkpoint):
        return chosen in ("none", "mxfp4") and mxfp4.native(s)  # dequantized, it can be compiled
    if chosen == "none":
        return checkpoint is not None and checkpoint not in COMPILED_CHECKPOINTS
    return quantization_library(s) in UNCOMPILED_LIBRARIES


def compiles(s: Subject) -> bool:
    """Whether the arm asks for compilation and gets it."""
    return asks_to_compile(s) and not skips_compilation(s)


def needs_compile(reason: str, source: str, so: str) -> tuple[Rule, ...]:
    """Rules of a choice that means nothing where nothing is compiled, for a decoder and an encoder; and, with what
    follows from it (`so`), where `generate` skips compilation."""

    def rule(kind: str, *also: tuple[str, str]) -> Rule:
        def nothing_compiles(s: Subject) -> bool:
            return s.facts.kind == kind and not compiles(s) and not skips_compilation(s)

        return blocked(nothing_compiles, reason, source, fix=(("compile", "default"), *also))

    return rule("decoder", ("cache", "static")), rule("encoder"), skipped(skips_compilation, so)


def skipped(when: When, so: str) -> Rule:
    """Refuses what needs a compiled step where `generate` compiles none; `so`: what follows from it."""
    source = "backend/optimizations/conditions.py: skips_compilation"
    return blocked(when, f"generate does not compile a model quantized like this, so {so}.", source)


def replays_graphs(s: Subject) -> bool:
    return compiles(s) and s.choices["compile"] in GRAPH_MODES and s.cuda


# --- kernels and experts --------------------------------------------------------------------------

_MAPPED = {
    "gpt_oss": {"MegaBlocksMoeMLP": "megablocks", "RMSNorm": "liger-kernels", "rotary_pos_emb": "rotary"},
    "gpt2": {"NewGELU": "activation"},
    "bert": {"GeLU": "activation"},
    "gemma3_text": {"GeluTanh": "activation", "rotary_pos_emb": "rotary"},
}
"""Layers of an architecture -> repositories of kernels-community to which transformers maps them on CUDA."""

_USUALLY_MAPPED = {"RMSNorm": "liger-kernels", "SiLU": "activation", "rotary_pos_emb": "rotary"}


def hub_kernel_layers(s: Subject) -> dict[str, str]:
    """Layers of this model -> repositories of the Hub with kernels for them on this device."""
    layers = _MAPPED.get(s.facts.architecture, _USUALLY_MAPPED).items()
    here = {layer: name for layer, name in layers if s.cuda or layer == "MegaBlocksMoeMLP"}
    return {layer: f"{kernel_packages.PUBLISHER}/{name}" for layer, name in here.items()}


def hub_kernel_repositories(s: Subject) -> tuple[str, ...]:
    return tuple(hub_kernel_layers(s).values())


def takes_hub_kernels(s: Subject) -> bool:
    """Whether Hub kernels were asked for, and transformers has some for this model."""
    return s.choices["kernels"] == "hub" and bool(hub_kernel_repositories(s))


def experts_settled(s: Subject) -> bool:
    """Whether nothing is left to choose: the model has no experts, or a kernel of their own computes them."""
    return not s.facts.experts or runs_mxfp4(s) or takes_hub_kernels(s)
