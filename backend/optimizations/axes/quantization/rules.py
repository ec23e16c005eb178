"""When weights can be quantized by each library, and where MXFP4 (gpt-oss alone) stays packed."""

from dataclasses import replace

from tokendyno.backend.optimizations.base import Rule, When, blocked, fallback, note
from tokendyno.backend.optimizations.routed import KERNELS, MISREAD, MXFP4_OBSTACLES, mxfp4_misread, mxfp4_unreachable
from tokendyno.backend.optimizations.shared_rules import UNPACKS_WITH_TORCH, needs_package
from tokendyno.backend.optimizations.subject import Subject
from tokendyno.backend.predict.quantized import INT4_GROUP

_MERGE = "transformers 5.22: quantizers/auto.py, AutoHfQuantizer.merge_quantization_configs raises ValueError"


# --- all libraries --------------------------------------------------------------------------------

_QUANTIZED_ALREADY = (
    blocked(
        lambda s: s.facts.quantization is not None,
        "This checkpoint is already quantized, and transformers refuses to quantize it in another way.",
        _MERGE,
    ),
    blocked(
        lambda s: s.facts.source.kind == "gguf",
        "transformers does not quantize GGUF files again. Use the model's safetensors.",
        "transformers 5.22: quantizers/auto.py, get_hf_quantizer raises ValueError",
    ),
)


_LIBRARIES = (
    *((name, name) for name in ("aqlm", "auto-round", "bitsandbytes", "compressed-tensors", "sinq", "torchao", "vptq")),
    ("awq", "gptqmodel"),
    ("eetq", "kernels"),
    ("fbgemm_fp8", "fbgemm-gpu"),
    ("fp_quant", "qutlass"),
    ("gptq", "optimum"),
    ("gptq", "gptqmodel"),
    ("higgs", "flute-kernel"),
    ("quanto", "optimum-quanto"),
    ("quark", "amd-quark"),
    ("spqr", "spqr_quant"),
)
"""(method of a checkpoint, a package that transformers needs for it): `validate_environment` of its quantizers."""

_ON_GPUS = ("bitnet", "eetq", "fbgemm_fp8", "fp_quant", "higgs", "spqr", "vptq")
"""Methods whose weights transformers loads on a GPU alone."""


def _needs_library(method: str, package: str) -> Rule:
    return blocked(
        lambda s: s.facts.quantization == method and not s.machine.has(package),
        f"This checkpoint's weights ({method}) need {package}, which is not installed: pip install {package}.",
        f"https://pypi.org/project/{package}/",
        (),
    )


CHECKPOINT = (
    note(
        lambda s: s.facts.quantization not in (None, "mxfp4"),  # which is a choice of its own
        "This checkpoint is already quantized: quantization=none leaves its weights as they are, and the ledger names "
        "their format.",
        _MERGE,
    ),
    *(_needs_library(method, package) for method, package in _LIBRARIES),
    blocked(
        lambda s: s.facts.quantization in _ON_GPUS and not s.cuda,
        "transformers loads weights in this checkpoint's format on a GPU only. Choose another checkpoint of the model.",
        "transformers 5.22: quantizers/, validate_environment",
        (),
    ),
    blocked(
        lambda s: s.facts.quantization == "hqq",
        "transformers 5.22 cannot load weights that HQQ has packed. Choose another checkpoint of the model.",
        "transformers 5.22: quantizers/quantizer_hqq.py has no conversion for saved weights",
        (),
    ),
    note(
        lambda s: s.facts.quantization == "fp8" and not (s.cuda and s.machine.capability >= (8, 9)),
        "FP8 arithmetic needs a GPU of compute capability 8.9 (Ada, Hopper): here transformers makes these weights "
        "dense while it loads them.",
        "transformers 5.22: quantizers/quantizer_finegrained_fp8.py, validate_environment",
    ),
)


def _experts_stay(library: str) -> Rule:
    return note(
        lambda s: s.facts.experts > 0 and s.facts.quantization is None,
        f"{library} quantizes linear layers only, and transformers 5 keeps all experts of a layer in one 3D "
        "parameter: experts, and with them most of the bytes, stay as they are.",
        "transformers 5.22: models/*/modeling_*.py, classes named *Experts; counted by tests",
    )


def _no_linear_layers(library: str) -> Rule:
    return blocked(
        lambda s: not any(matrix.kind == "linear" for matrix in s.facts.matrices),
        f"This architecture has no linear layers but its output head, so {library} would silently quantize nothing: "
        "GPT-2 uses Conv1D, which only bitsandbytes supports.",
        "transformers 5.22: quantizers/quantizer_torchao.py, integrations/quanto.py; counted by a test",
        (("quantization", "bnb-int8"),),
    )


_SHARED_BLOCKS = blocked(
    lambda s: s.facts.architecture in ("zamba", "zamba2"),
    "Layers of this architecture share blocks, and transformers quantizes no weights that are shared.",
    "transformers 5.22: quantizers/base.py, get_keys_to_not_convert; seen with torchao",
)
_TRANSPOSED = blocked(
    lambda s: s.facts.architecture == "falcon",
    "Falcon's layers multiply by a transposed weight, which tensors of torchao do not support.",
    "transformers 5.22: models/falcon/modeling_falcon.py, FalconLinear",
    (("quantization", "bnb-int8"),),
)


# --- bitsandbytes ---------------------------------------------------------------------------------

_BNB = (needs_package("bitsandbytes"), *_QUANTIZED_ALREADY, _SHARED_BLOCKS, _experts_stay("bitsandbytes"))
_LATENTS_BY_HEAD = """
    axk1 axk2 bailing_hybrid deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm5_next_text glm_moe_dsa hy_v4
    kimi_linear longcat_flash minicpm3 mistral4 mistral_large4_text youtu
"""
LATENTS_BY_HEAD = frozenset(_LATENTS_BY_HEAD.split())
"""Their `kv_b_proj` multiplies latents of four dimensions (B, 1, S, rank); a test compares this with transformers."""

BNB_INT8 = (
    *_BNB,
    blocked(
        lambda s: s.cuda and s.machine.capability < (7, 5),
        "LLM.int8() needs a GPU of compute capability 7.5 (Turing) or later.",
        "https://huggingface.co/docs/bitsandbytes/v0.50.0/installation",
        (("quantization", "bnb-nf4"),),
    ),
    blocked(
        lambda s: not s.cuda and s.facts.architecture in LATENTS_BY_HEAD,
        "On a CPU LLM.int8() takes the largest number of each token along a wrong dimension where a layer's input has "
        "four, as the latents of this architecture's attention do.",
        "bitsandbytes 0.50: backends/default/ops.py, int8_vectorwise_quant; tried by a test",
        (("quantization", "torchao-int8"),),
    ),
    note(
        lambda s: s.cuda and s.facts.random and s.facts.hidden >= 2_048,  # below, activations stay under the threshold
        "With random weights most columns of the down projections meet outliers once a prompt has some hundred tokens "
        "(with trained weights few do). LLM.int8() copies them to 16 bits, so that the peak is above the prediction: "
        "Llama-3-8B took 14% more with 256 tokens and 63% more with 2,000 on one H100.",
        "bitsandbytes 0.50: backends/default/ops.py, int8_mixed_scaled_mm; lab/measurements.md",
    ),
)

BNB_4BIT = (
    *_BNB,
    blocked(
        lambda s: (
            _repacked(s)
            and any(m.rows % 32 or m.columns % 64 for m in s.facts.matrices if m.kind in ("linear", "conv1d"))
        ),
        "On a CPU with AVX512-BF16 bitsandbytes repacks 4-bit weights at the first step, which needs matrices with "
        "a multiple of 32 rows and of 64 columns; this model has others.",
        "bitsandbytes 0.50: functional.py, _convert_weight_packed_for_cpu",
        (("quantization", "bnb-int8"),),
    ),
)


def _repacked(s: Subject) -> bool:
    return not s.cuda and s.machine.avx512_bf16


def bnb_double(single: str) -> tuple[Rule, ...]:
    """Rules of double quantization; `single` is the choice without it."""
    return (
        *BNB_4BIT,
        fallback(
            _repacked,
            "On a CPU with AVX512-BF16 bitsandbytes repacks 4-bit weights at the first step and dequantizes their "
            "scales: double quantization is undone before the first token.",
            "bitsandbytes 0.50: functional.py, _convert_weight_packed_for_cpu",
            becomes=single,
        ),
    )


# --- torchao and quanto ---------------------------------------------------------------------------

TORCHAO = (
    needs_package("torchao"),
    *_QUANTIZED_ALREADY,
    _SHARED_BLOCKS,
    _TRANSPOSED,
    _no_linear_layers("torchao"),
    _experts_stay("torchao"),
)

TORCHAO_FP8 = (
    *TORCHAO,
    blocked(
        lambda s: _before_fp8(s) and s.asks_to_compile,
        "Triton has no float8 (fp8e4nv) below compute capability 8.9, so Inductor's code for these weights does not "
        "compile.",
        "https://github.com/triton-lang/triton: type fp8e4nv not supported in this architecture",
        (("quantization", "torchao-int8"),),
    ),
    note(
        lambda s: _before_fp8(s) and not s.asks_to_compile,
        "Float8 arithmetic needs compute capability 8.9 (Ada, Hopper): here weights are dequantized before every "
        "GEMM, which saves memory but no time; untested.",
        "https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html",
        fix=(("quantization", "torchao-int8"),),
    ),
)


def _before_fp8(s: Subject) -> bool:
    return s.cuda and s.machine.capability < (8, 9)


def _grouped(s: Subject) -> list[bool]:
    """Whether the columns of each kind of linear layer divide into groups."""
    return [m.columns % INT4_GROUP == 0 for m in s.facts.matrices if m.kind == "linear"]


_INT4_SKIPS = "torchao 0.18: quant_api.py, _int4_weight_only_quantize_tensor; logged at level INFO only"

TORCHAO_INT4 = (
    *TORCHAO,
    blocked(
        lambda s: not s.cuda or s.machine.capability < (8, 0),
        "torchao's 4-bit weights need an NVIDIA GPU of compute capability 8.0 or later.",
        "torchao 0.18: int4_tile_packed_to_4d_tensor.py, from_hp",
        (("quantization", "torchao-int8"),),
    ),
    blocked(
        lambda s: s.compute_dtype != "bfloat16",
        "torchao's 4-bit kernel supports bfloat16 only.",
        "torchao 0.18: int4_tile_packed_to_4d_tensor.py, from_hp",
        (("dtype", "bfloat16"),),
    ),
    blocked(
        lambda s: bool(_grouped(s)) and not any(_grouped(s)),
        f"No layer of this model has a multiple of {INT4_GROUP} columns: torchao would silently quantize nothing.",
        _INT4_SKIPS,
        (("quantization", "torchao-int8"),),
    ),
    note(
        lambda s: any(_grouped(s)) and not all(_grouped(s)),
        f"torchao skips layers whose columns are not a multiple of {INT4_GROUP}; this model has some.",
        _INT4_SKIPS,
    ),
)

QUANTO = (
    needs_package("optimum-quanto"),
    *_QUANTIZED_ALREADY,
    _SHARED_BLOCKS,
    _no_linear_layers("quanto"),
    _experts_stay("quanto"),
)

QUANTO_INT4 = (
    *QUANTO,
    replace(UNPACKS_WITH_TORCH, when=lambda s: not s.cuda and s.machine.has("optimum-quanto")),
)


def _falls_back(obstacle: When, reason: str, source: str) -> Rule:
    return fallback(
        lambda s: s.asks_mxfp4 and obstacle(s) and not s.runs_mxfp4, reason, source, becomes="mxfp4-dequantized"
    )


_NATIVE = tuple(_falls_back(*obstacle) for obstacle in MXFP4_OBSTACLES)


def _why_ours(s: Subject) -> str:
    ours = "tokendyno's own kernels compute the experts (experts=triton)"
    if mxfp4_misread(s):
        return f"{MISREAD}: {ours}."
    if mxfp4_unreachable(s):
        return f"{KERNELS} is neither in the Hub cache nor in LOCAL_KERNELS, and the Hub is offline: {ours}."
    return f"Each rank has a part of the experts, and {KERNELS} computes all of them on one device: {ours}."


_STANDS_IN = note(
    lambda s: s.runs_own_mxfp4 and s.choices["experts"] == "auto",
    _why_ours,
    "backend/optimizations/subject.py: runs_own_mxfp4",
)

MXFP4_CHECKPOINT = (
    *_NATIVE,
    _STANDS_IN,
    fallback(
        lambda s: s.facts.source.kind == "gguf",
        "GGUF weights are dequantized while they are loaded: memory and speed are those of the dense model.",
        "transformers 5.22: quantizers/quantizer_gguf.py, dequantize=True",
        becomes="none",
        fix=(),
    ),
)

_DENSE_GPT_OSS = blocked(
    lambda s: s.facts.architecture == "gpt_oss" and not s.has_mxfp4,
    "These weights are dense, and what transformers quantizes on the fly fails at the first step. Use a checkpoint "
    "in MXFP4, such as openai/gpt-oss-20b.",
    "transformers 5.22: integrations/mxfp4.py, Mxfp4Quantize leaves the packed shape; run on one H200",
)
_NOT_GPT_OSS = blocked(
    lambda s: s.facts.architecture != "gpt_oss",
    "MXFP4 is supported for the experts of gpt-oss only.",
    "transformers 5.22: integrations/mxfp4.py, replace_with_mxfp4_linear",
)

MXFP4 = (_NOT_GPT_OSS, _DENSE_GPT_OSS, *_NATIVE, _STANDS_IN)

DEQUANTIZED = (
    blocked(
        lambda s: not s.has_mxfp4,
        "There is nothing to dequantize: this checkpoint has no MXFP4 weights.",
        "transformers 5.22: quantizers/auto.py, get_hf_quantizer",
    ),
)
