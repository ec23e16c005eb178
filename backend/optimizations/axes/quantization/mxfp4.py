"""Rules of MXFP4, in which gpt-oss alone is published: where it runs as it is, and where it is dequantized."""

from dataclasses import replace

from tokendyno.backend.optimizations import mxfp4, routed
from tokendyno.backend.optimizations.conditions import compute_dtype
from tokendyno.backend.optimizations.subject import Rule, When, blocked, fallback, note

_NONE = (("quantization", "none"),)
_VALIDATE = "transformers 5.22: quantizers/quantizer_mxfp4.py, validate_environment"
_DEQUANTIZES = "transformers dequantizes the weights to bfloat16"


def _falls_back(obstacle: When, reason: str, source: str = _VALIDATE) -> Rule:
    return fallback(
        lambda s: mxfp4.available(s) and obstacle(s) and not mxfp4.own(s),
        reason,
        source,
        becomes="mxfp4-dequantized",
        fix=(("quantization", "mxfp4-dequantized"),),
    )


_NATIVE = (
    _falls_back(routed.no_gpu, f"MXFP4 weights run on NVIDIA GPUs only; {_DEQUANTIZES}, with a warning."),
    _falls_back(mxfp4.old_gpu, f"The MXFP4 kernels need compute capability 7.5: {_DEQUANTIZES}, with a warning."),
    _falls_back(mxfp4.old_triton, f"The MXFP4 kernels need triton 3.4: {_DEQUANTIZES}, with a warning."),
    _falls_back(
        routed.no_kernels_package,
        f"The MXFP4 kernels are loaded by the package kernels, which is not installed: {_DEQUANTIZES}, with a warning.",
    ),
    _falls_back(
        mxfp4.kernel_unreachable,
        f"The kernel {mxfp4.KERNELS} is neither in the Hub cache nor in LOCAL_KERNELS, the Hub is offline, and "
        f"tokendyno's own kernels (experts=triton) cannot run here: {_DEQUANTIZES}.",
        "kernels 0.17: load.py, get_kernel",
    ),
)

_STANDS_IN = note(
    lambda s: mxfp4.available(s) and s.choices["experts"] == "auto" and mxfp4.own(s),
    f"Across ranks, and where the kernel {mxfp4.KERNELS} cannot be had, tokendyno's own kernels compute the experts "
    "(experts=triton).",
    "backend/optimizations/mxfp4.py: own",
)

_OTHER_DTYPE = note(
    lambda s: mxfp4.native(s) and not mxfp4.own(s) and compute_dtype(s) != "bfloat16",
    "The MXFP4 kernels compute in bfloat16: another dtype is untested.",
    "triton_kernels 3.5: tensor_details/layout_details/hopper_value.py, mxfp4_to_bf16_triton",
    fix=(("dtype", "bfloat16"),),
)


def _of_a_checkpoint(rule: Rule) -> Rule:
    """The rule for a checkpoint in MXFP4, not for random weights that could be."""
    return replace(rule, when=lambda s: mxfp4.published(s) and rule.when(s))


NONE = (
    *(_of_a_checkpoint(rule) for rule in (*_NATIVE, _STANDS_IN, _OTHER_DTYPE)),
    fallback(
        lambda s: s.facts.source.kind == "gguf",
        "GGUF weights are dequantized while they are loaded: memory and speed are those of the dense model.",
        "transformers 5.22: quantizers/quantizer_gguf.py, dequantize=True",
        becomes="none",
    ),
)

_DENSE_GPT_OSS = blocked(
    lambda s: s.facts.architecture == "gpt_oss" and not mxfp4.available(s),
    "These weights are dense, and what transformers quantizes on the fly fails at the first step. Use a checkpoint "
    "in MXFP4, such as openai/gpt-oss-20b.",
    "transformers 5.22: integrations/mxfp4.py, Mxfp4Quantize leaves the packed shape; run on one H200",
    _NONE,
)
_NOT_GPT_OSS = blocked(
    lambda s: s.facts.architecture != "gpt_oss",
    "MXFP4 is supported for the experts of gpt-oss only.",
    "transformers 5.22: integrations/mxfp4.py, replace_with_mxfp4_linear",
    _NONE,
)

_ODD_BLOCKS = blocked(
    lambda s: mxfp4.available(s) and any(m.columns % 32 for m in s.facts.matrices if m.kind == "expert"),
    "MXFP4 quantizes blocks of 32 weights, and the width of this model's experts is not a multiple of 32.",
    "OCP Microscaling Formats v1.0, table 1",
    _NONE,
)

MXFP4 = (_NOT_GPT_OSS, _DENSE_GPT_OSS, _ODD_BLOCKS, *_NATIVE, _STANDS_IN, _OTHER_DTYPE)

DEQUANTIZED = (
    _ODD_BLOCKS,
    blocked(
        lambda s: not mxfp4.available(s),
        "There is nothing to dequantize: this checkpoint has no MXFP4 weights.",
        "transformers 5.22: quantizers/auto.py, get_hf_quantizer",
        _NONE,
    ),
)
