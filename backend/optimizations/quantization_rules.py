"""What packing dense weights needs of a model, a machine and the other axes: bitsandbytes, torchao, quanto."""

from collections.abc import Callable

from backend.optimizations.base import Rule, Subject

_MERGE = "transformers 5.22: quantizers/auto.py, AutoHfQuantizer.merge_quantization_configs raises ValueError"
_GGUF = "transformers 5.22: quantizers/auto.py, get_hf_quantizer raises ValueError"
_NONE = (("quantization", "none"),)
_INT4_GROUP = 128  # columns that share a scale

When = Callable[[Subject], bool]


def compute_dtype(s: Subject) -> str:
    """The dtype of the activations."""
    dtype = s.choices.get("dtype", "auto")
    return s.facts.dtype if dtype == "auto" else dtype


def blocked(when: When, reason: str, source: str, fix: tuple[tuple[str, str], ...]) -> Rule:
    """A rule that refuses."""
    return Rule("blocked", when, reason, source, fix=fix)


# --- what all that pack dense weights have in common ----------------------------------------------

_PACKED_ALREADY = (
    blocked(
        lambda s: s.facts.quantization is not None,
        "This checkpoint is packed already, and transformers refuses to pack it in another way.",
        _MERGE,
        _NONE,
    ),
    blocked(
        lambda s: s.facts.source.kind == "gguf",
        "transformers does not combine a GGUF file with another way of packing. Take the model's safetensors.",
        _GGUF,
        _NONE,
    ),
)


def _missing(package: str) -> Rule:
    return blocked(
        lambda s: not s.machine.has(package),
        f"{package} is not installed: pip install 'tokendyno[quantization]', or {package} alone.",
        f"https://pypi.org/project/{package}/",
        _NONE,
    )


def _as_packed(s: Subject) -> bool:
    """Whether the checkpoint is packed in a way that this axis leaves to it; MXFP4 is a choice of its own."""
    return s.facts.quantization not in (None, "mxfp4")


_PACKERS = {"bitsandbytes": "bitsandbytes", "torchao": "torchao", "quanto": "optimum-quanto"}


def _needs_packer(method: str, package: str) -> Rule:
    return blocked(
        lambda s: s.facts.quantization == method and not s.machine.has(package),
        f"This checkpoint is packed by {package}, which is not installed: pip install {package}.",
        f"https://pypi.org/project/{package}/",
        (),
    )


CHECKPOINT = (
    Rule(
        "note",
        _as_packed,
        "This checkpoint is packed already: none leaves its weights as they are, and the ledger names what they are.",
        _MERGE,
    ),
    *(_needs_packer(method, package) for method, package in _PACKERS.items()),
)


def _experts_stay(library: str) -> Rule:
    return Rule(
        "note",
        lambda s: s.facts.experts > 0 and s.facts.quantization is None,
        f"{library} packs linear layers only, and transformers 5 keeps all experts of a layer in one three-dimensional "
        "parameter: they stay as they are, and with them most of the bytes.",
        "transformers 5.22: models/*/modeling_*.py, classes named *Experts; counted by tests",
    )


def _no_linear_layers(library: str) -> Rule:
    return blocked(
        lambda s: not any(matrix.kind == "linear" for matrix in s.facts.matrices),
        f"This architecture has no linear layers but its head, so {library} would pack nothing, without a word: GPT-2 "
        "keeps its weights in Conv1D, which bitsandbytes alone knows.",
        "transformers 5.22: quantizers/quantizer_torchao.py, integrations/quanto.py; counted by a test",
        (("quantization", "bnb-int8"),),
    )


# --- bitsandbytes ---------------------------------------------------------------------------------

_BNB_KINDS = ("linear", "conv1d")
_BNB_DOCS = "https://huggingface.co/docs/bitsandbytes/v0.50.0/installation"
_BNB = (_missing("bitsandbytes"), *_PACKED_ALREADY, _experts_stay("bitsandbytes"))

BNB_INT8 = (
    *_BNB,
    blocked(
        lambda s: s.machine.device == "cuda" and s.machine.capability < (7, 5),
        "LLM.int8() needs a GPU of compute capability 7.5 (Turing) or newer.",
        _BNB_DOCS,
        (("quantization", "bnb-nf4"),),
    ),
    Rule(
        "note",
        lambda s: compute_dtype(s) != "float16",
        "LLM.int8() casts what goes into each layer to float16, whatever the dtype is.",
        "bitsandbytes 0.50: autograd/_functions.py, MatMul8bitLt.forward",
    ),
)

BNB_4BIT = (
    *_BNB,
    blocked(
        lambda s: s.machine.device == "cuda" and s.machine.capability < (6, 0),
        "4-bit weights need a GPU of compute capability 6.0 (Pascal) or newer.",
        _BNB_DOCS,
        _NONE,
    ),
    blocked(
        lambda s: _repacked(s) and any(m.rows % 32 or m.columns % 64 for m in s.facts.matrices if m.kind in _BNB_KINDS),
        "On a CPU with AVX512-BF16 bitsandbytes lays 4-bit weights out anew at the first step, for which every matrix "
        "needs a multiple of 32 rows and of 64 columns; this model has others.",
        "bitsandbytes 0.50: functional.py, _convert_weight_packed_for_cpu",
        (("quantization", "bnb-int8"),),
    ),
)


def _repacked(s: Subject) -> bool:
    return s.machine.device == "cpu" and s.machine.avx512_bf16


def bnb_double(single: str) -> tuple[Rule, ...]:
    """Of double quantization, whose choice without it is `single`."""
    return (
        *BNB_4BIT,
        Rule(
            "fallback",
            _repacked,
            "On a CPU with AVX512-BF16 bitsandbytes lays 4-bit weights out anew at the first step, and unpacks their "
            "scales for good: the second quantization is gone before the first token.",
            "bitsandbytes 0.50: functional.py, _convert_weight_packed_for_cpu",
            becomes=single,
            fix=(("quantization", single),),
        ),
    )


# --- torchao and quanto ---------------------------------------------------------------------------

TORCHAO = (_missing("torchao"), *_PACKED_ALREADY, _no_linear_layers("torchao"), _experts_stay("torchao"))

TORCHAO_FP8 = (
    *TORCHAO,
    blocked(
        lambda s: _before_fp8(s) and s.choices.get("compile", "off") != "off",
        "Triton has no float8 (fp8e4nv) before compute capability 8.9, so what Inductor makes of these weights does "
        "not compile.",
        "https://github.com/triton-lang/triton: type fp8e4nv not supported in this architecture",
        (("quantization", "torchao-int8"),),
    ),
    Rule(
        "note",
        lambda s: _before_fp8(s) and s.choices.get("compile", "off") == "off",
        "Float8 arithmetic begins at compute capability 8.9 (Ada, Hopper): here the weights are widened before every "
        "product. Memory is saved, time is not; untried.",
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
        fix=(("quantization", "torchao-int8"),),
    ),
)


def _before_fp8(s: Subject) -> bool:
    return s.machine.device == "cuda" and s.machine.capability < (8, 9)


def _grouped(s: Subject) -> list[bool]:
    """Of each kind of linear layer: can its columns be cut into groups?"""
    return [m.columns % _INT4_GROUP == 0 for m in s.facts.matrices if m.kind == "linear"]


_INT4_SKIPS = "torchao 0.18: quant_api.py, _int4_weight_only_quantize_tensor; logged at level INFO only"

TORCHAO_INT4 = (
    *TORCHAO,
    blocked(
        lambda s: s.machine.device != "cuda" or s.machine.capability < (8, 0),
        "torchao's 4-bit weights need an NVIDIA GPU of compute capability 8.0 or newer.",
        "torchao 0.18: int4_tile_packed_to_4d_tensor.py, from_hp",
        (("quantization", "torchao-int8"),),
    ),
    blocked(
        lambda s: compute_dtype(s) != "bfloat16",
        "torchao's 4-bit kernel computes in bfloat16 only.",
        "torchao 0.18: int4_tile_packed_to_4d_tensor.py, from_hp",
        (("dtype", "bfloat16"),),
    ),
    blocked(
        lambda s: bool(_grouped(s)) and not any(_grouped(s)),
        f"No layer of this model has a multiple of {_INT4_GROUP} columns: torchao would pack nothing, without a word.",
        _INT4_SKIPS,
        (("quantization", "torchao-int8"),),
    ),
    Rule(
        "note",
        lambda s: any(_grouped(s)) and not all(_grouped(s)),
        f"torchao leaves layers as they are whose columns are no multiple of {_INT4_GROUP}; this model has some.",
        _INT4_SKIPS,
    ),
)

QUANTO = (
    _missing("optimum-quanto"),
    *_PACKED_ALREADY,
    _no_linear_layers("quanto"),
    _experts_stay("quanto"),
)

QUANTO_INT4 = (
    *QUANTO,
    Rule(
        "note",
        lambda s: s.machine.device == "cpu" and s.machine.has("optimum-quanto"),
        "Codes are unpacked by torch's operators here. A script builds optimum-quanto's own helper, which calls the "
        "same ones, when it is first used: it takes a minute and a C++ compiler.",
        "optimum-quanto 0.2: library/extensions/cpp; backend/worker/caches.py",
    ),
)
