"""Where MXFP4 weights run packed, and where they are unpacked: gpt-oss alone is published in them."""

from collections.abc import Callable
from dataclasses import replace

from packaging.version import Version

from backend.optimizations.base import Rule, Subject
from backend.optimizations.quantization_rules import blocked, compute_dtype

MXFP4_KERNELS = "kernels-community/gpt-oss-triton-kernels"

_MXFP4 = "transformers 5.22: quantizers/quantizer_mxfp4.py, validate_environment"
_UNPACKED = "mxfp4-dequantized"
_NONE = (("quantization", "none"),)
_UNPACK = (("quantization", _UNPACKED),)

When = Callable[[Subject], bool]


def _is_mxfp4(s: Subject) -> bool:
    return s.facts.quantization == "mxfp4"


def held_as_mxfp4(s: Subject) -> bool:
    """Whether there are MXFP4 weights to run: a packed checkpoint, or random ones that are drawn as one."""
    return _is_mxfp4(s) or (s.facts.random and s.facts.architecture == "gpt_oss")


def _old_triton(s: Subject) -> bool:
    version = s.machine.version("triton")
    return version is None or version < Version("3.4")


def _no_kernel(s: Subject) -> bool:
    return s.machine.hub_offline and MXFP4_KERNELS not in s.machine.hub_kernels


def _unpacks(when: When, reason: str, source: str = _MXFP4) -> Rule:
    return Rule("fallback", lambda s: held_as_mxfp4(s) and when(s), reason, source, becomes=_UNPACKED, fix=_UNPACK)


_ON_CUDA = "MXFP4 weights stay packed on an NVIDIA GPU only; transformers unpacks them to bfloat16, with a warning."
_KERNEL = (
    f"The kernel {MXFP4_KERNELS} is neither in the Hub's cache nor in LOCAL_KERNELS, and the Hub is offline: the "
    "weights are unpacked to bfloat16."
)


def _cuda(s: Subject) -> bool:
    return s.machine.device == "cuda"


_NATIVE = (
    _unpacks(lambda s: not _cuda(s), _ON_CUDA),
    _unpacks(
        lambda s: _cuda(s) and s.machine.capability < (7, 5),
        "The MXFP4 kernels need compute capability 7.5: transformers unpacks the weights to bfloat16, with a warning.",
    ),
    _unpacks(
        lambda s: _cuda(s) and _old_triton(s),
        "The MXFP4 kernels need triton 3.4: transformers unpacks the weights to bfloat16, with a warning.",
    ),
    _unpacks(
        lambda s: _cuda(s) and not s.machine.has("kernels"),
        "The MXFP4 kernels come through the kernels package, which is not installed: transformers unpacks the weights "
        "to bfloat16, with a warning.",
    ),
    _unpacks(lambda s: _cuda(s) and _no_kernel(s), _KERNEL, "kernels 0.17: load.py, get_kernel"),
)


def native(s: Subject) -> bool:
    """Whether MXFP4 weights run packed here."""
    return held_as_mxfp4(s) and not any(rule.when(s) for rule in _NATIVE)


def stays_packed(s: Subject) -> bool:
    """Whether this arm's experts stay in MXFP4: it was asked for, or left to the checkpoint, and it runs here."""
    choice = s.choices.get("quantization", "none")
    return (choice == "mxfp4" or (choice == "none" and _is_mxfp4(s))) and native(s)


_OTHER_DTYPE = Rule(
    "note",
    lambda s: native(s) and compute_dtype(s) != "bfloat16",
    "The MXFP4 kernels widen weights to bfloat16: another dtype is untried.",
    "triton_kernels 3.5: tensor_details/layout_details/hopper_value.py, mxfp4_to_bf16_triton",
    fix=(("dtype", "bfloat16"),),
)


def _of_a_checkpoint(rule: Rule) -> Rule:
    """The rule for weights that are packed, not for random ones that could be."""
    return replace(rule, when=lambda s: _is_mxfp4(s) and rule.when(s))


NONE = (
    *(_of_a_checkpoint(rule) for rule in (*_NATIVE, _OTHER_DTYPE)),
    Rule(
        "fallback",
        lambda s: s.facts.source.kind == "gguf",
        "A GGUF file's weights are unpacked while they are loaded: memory and speed are those of the dense model.",
        "transformers 5.22: quantizers/quantizer_gguf.py, dequantize=True",
        becomes="none",
    ),
)  # fmt: skip

_DENSE_GPT_OSS = blocked(
    lambda s: s.facts.architecture == "gpt_oss" and not held_as_mxfp4(s),
    "These weights are dense, and what transformers packs on the fly does not run: its first step fails. Take a "
    "checkpoint that holds MXFP4, such as openai/gpt-oss-20b.",
    "transformers 5.22: integrations/mxfp4.py, Mxfp4Quantize leaves the packed shape; run on one H200",
    _NONE,
)
_NOT_GPT_OSS = blocked(
    lambda s: s.facts.architecture != "gpt_oss",
    "MXFP4 is for the experts of gpt-oss; this is another architecture.",
    "transformers 5.22: integrations/mxfp4.py, replace_with_mxfp4_linear",
    _NONE,
)

_ODD_BLOCKS = blocked(
    lambda s: held_as_mxfp4(s) and any(m.columns % 32 for m in s.facts.matrices if m.kind == "expert"),
    "MXFP4 packs 32 numbers at a time, and the width of this model's experts is no multiple of 32.",
    "OCP Microscaling Formats v1.0, table 1",
    _NONE,
)

MXFP4 = (_NOT_GPT_OSS, _DENSE_GPT_OSS, _ODD_BLOCKS, *_NATIVE, _OTHER_DTYPE)

UNPACKED = (
    _ODD_BLOCKS,
    blocked(
        lambda s: not held_as_mxfp4(s),
        "There is nothing to unpack: this checkpoint holds no MXFP4 weights.",
        "transformers 5.22: quantizers/auto.py, get_hf_quantizer",
        _NONE,
    ),
)
