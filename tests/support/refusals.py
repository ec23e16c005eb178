"""Which arms the rules may refuse in tests that run everything: any other refusal is a failure, not a skip.

A rule that wrongly forbids would look green if its tests were skipped. What is missing on a machine is looked up here
without the rules: by the installed packages and the folders of kernels.
"""

import os
from importlib import metadata
from pathlib import Path

import pytest

FLASH2, FLASH3 = "kernels-community/flash-attn2", "kernels-community/vllm-flash-attn3"
IMPOSSIBLE = {
    ("", "quantization=mxfp4"): "MXFP4 is supported for the experts of gpt-oss only",
    ("", "quantization=mxfp4-dequantized"): "nothing to dequantize",
    ("", "attention=hub"): "No kernel of the Hub is named",
    ("", "kernels=mapping"): "No kernel of the Hub is named",
    ("random:bert-base-uncased", "quantization=torchao-int4"): "supports bfloat16 only",
    **{
        ("random:bert-base-uncased", f"attention={name}"): "float16 and bfloat16 only"
        for name in ("flash_attention_2", "flash_attention_3", "flash_attention_4", FLASH2, FLASH3)
    },
}
"""By model ("" is any) and arm: words of the reason why no machine can run it. The checkpoint of BERT is in float32."""

PACKAGES = ("hqq", "optimum-quanto")
"""What a machine may lack."""

LAYERS = ("liger-kernels", "activation", "rotary", "megablocks")
NEEDED = {
    "attention=flash_attention_2": ("flash-attn", FLASH2, FLASH3),
    "attention=flash_attention_3": ("flash-attn-3", FLASH3),
    "attention=flash_attention_4": ("flash-attn-4", "kernels-community/flash-attn4"),
    f"attention={FLASH2}": ("", FLASH2, FLASH3),
    f"attention={FLASH3}": ("", FLASH3),
    "quantization=mxfp4": ("", "kernels-community/gpt-oss-triton-kernels"),
    "kernels=hub": ("", *(f"kernels-community/{name}" for name in LAYERS)),
}
"""By choice: the package, and the kernels that are taken instead (the last ones for attention sinks)."""

SINKS = ("pocket", "gpt-oss")
"""Models whose attention has sinks, in part of the name: for others no kernels stand in for FlashAttention 2."""

TOO_MANY = (
    "cannot be split",
    "has no experts to share out",
    "ranks need",
    "would hold all",
    "GPUs needs",
    "this machine has none",
)
"""Words of the reason why a model cannot be shared by so many devices, or not on this machine."""

GPU_ONLY = {
    "quantization=torchao-int4",
    "cache=offloaded",
    "cache=offloaded_static",
    "cuda_graphs=compile",
    "cuda_graphs=manual",
    "prefill=captured",
    *(choice for choice in NEEDED if choice.startswith("attention=")),
}
"""Refused on a CPU."""


def skip_or_fail(arm: str, reason: str, model: str = "", device: str = "cuda") -> None:
    """Skip the test if this refusal is expected, else fail it."""
    if why := expected(arm, reason, model, device):
        pytest.skip(f"{why}: {reason}")
    pytest.fail(
        f"{arm!r} on {model or 'any model'} was refused, and tests/support/refusals.py does not list it: {reason}"
    )


def expected(arm: str, reason: str, model: str = "", device: str = "cuda") -> str:
    """Why this refusal is as it should be, "" if it is not."""
    words = IMPOSSIBLE.get((model, arm)) or IMPOSSIBLE.get(("", arm))
    if words is not None and words in reason:
        return "impossible"
    choices = arm.split(",")
    if "parallel=" in arm and any(words in reason for words in TOO_MANY):
        return "impossible"
    if device == "cpu" and GPU_ONLY & set(choices) and "GPU" in reason.replace("CUDA device", "GPU"):
        return "for GPUs"
    if any(f"{package} is not installed" in reason and not _installed(package) for package in PACKAGES):
        return "missing here"
    for choice in choices:
        if choice in NEEDED and "Hub" in reason:
            package, *kernels = NEEDED[choice]
            if model and FLASH2 in kernels and not any(name in model for name in SINKS):
                kernels.remove(FLASH3)
            if absent(package, *kernels):
                return "missing here"
    return ""


def absent(package: str, *kernels: str) -> bool:
    """Whether neither the package nor any of the kernels that stand in for it can be had on this machine."""
    if os.environ.get("HF_HUB_OFFLINE", "0") in ("", "0"):
        return False
    local = os.environ.get("LOCAL_KERNELS", "")
    cache = Path(os.environ.get("HF_HOME", Path.home() / ".cache" / "huggingface")) / "hub"
    found = [name for name in kernels if f"{name}=" in local or _cached(cache, name)]
    return not found and (not package or not _installed(package))


def _cached(cache: Path, repository: str) -> bool:
    return any((cache / f"{kind}--{repository.replace('/', '--')}").exists() for kind in ("models", "kernels"))


def _installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True
