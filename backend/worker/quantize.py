"""From a plan's quantization to what `from_pretrained` is told of it, and what is left to do afterwards."""

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch

from backend.plan import LoadPlan
from backend.worker.caches import unpack_with_torch
from backend.worker.loading import Observed

_INTEGRATIONS = "transformers.integrations"
_OPERATIONS = {  # what packs or unpacks one tensor while a checkpoint is read
    "bnb-int8": (f"{_INTEGRATIONS}.bitsandbytes", "Bnb8bitQuantize"),
    "bnb": (f"{_INTEGRATIONS}.bitsandbytes", "Bnb4bitQuantize"),
    "torchao": (f"{_INTEGRATIONS}.torchao", "TorchAoQuantize"),
    "quanto": (f"{_INTEGRATIONS}.quanto", "QuantoQuantize"),
    "mxfp4-dequantized": (f"{_INTEGRATIONS}.mxfp4", "Mxfp4Dequantize"),
    "mxfp4": (f"{_INTEGRATIONS}.mxfp4", "Mxfp4Deserialize"),
}


def packs(plan: LoadPlan) -> bool:
    """Whether dense weights are packed while they are loaded."""
    return plan.quantization != "none" and not plan.quantization.startswith("mxfp4")


def keywords(plan: LoadPlan, dtype: torch.dtype | None) -> dict[str, Any]:
    """What `from_pretrained` is told. `dtype`: that of the activations; None: float32."""
    found: dict[str, Any] = {}
    settings = _settings(plan, dtype or torch.float32)
    if settings is not None:
        found["quantization_config"] = settings
    if plan.quantization.startswith("bnb") and plan.device == "cpu":
        found["device_map"] = "cpu"  # else bitsandbytes takes a GPU if there is one
    return found


def _settings(plan: LoadPlan, dtype: torch.dtype) -> Any:
    """The `quantization_config`; None to leave all to the checkpoint. Packages are imported when they are asked for."""
    from transformers import BitsAndBytesConfig, GgufConfig, Mxfp4Config, QuantoConfig, TorchAoConfig

    match plan.quantization.split("-"):
        case ["none"]:  # a GGUF file would stay packed wherever the Hub has a kernel for this device and is reached
            return GgufConfig(dequantize=True) if plan.source.kind == "gguf" else None
        case ["bnb", "int8"]:
            return BitsAndBytesConfig(load_in_8bit=True)
        case ["bnb", table, *double]:
            return BitsAndBytesConfig(
                load_in_4bit=True, bnb_4bit_quant_type=table, bnb_4bit_use_double_quant=double == ["double"],
                bnb_4bit_compute_dtype=dtype,  # left out, it is float32, and slow
            )  # fmt: skip
        case ["torchao", number]:
            return TorchAoConfig(_torchao(number))
        case ["quanto", number]:
            if number == "int4" and plan.device == "cpu":
                unpack_with_torch()  # a worker that is ended while it builds quanto's helper leaves a lock for ever
            return QuantoConfig(weights=number)
        case ["mxfp4", *unpacked]:
            return Mxfp4Config(dequantize=unpacked == ["dequantized"])
        case _:
            raise NotImplementedError(plan.quantization)


def _torchao(number: str) -> Any:
    """A configuration that leaves Inductor's settings alone: how kernels are searched for is the compiler's axis, and
    torchao's own settings let one model compile for more than four minutes."""
    from torchao.quantization import Float8WeightOnlyConfig, Int4WeightOnlyConfig, Int8WeightOnlyConfig

    if number == "int4":
        return Int4WeightOnlyConfig(
            group_size=128, int4_packing_format="tile_packed_to_4d", set_inductor_config=False
        )  # fmt: skip
    return {"int8": Int8WeightOnlyConfig, "fp8": Float8WeightOnlyConfig}[number](set_inductor_config=False)


@contextlib.contextmanager
def observing(plan: LoadPlan, observed: Observed) -> Iterator[None]:
    """Around `from_pretrained`: the seconds in which tensors are packed or unpacked are a stage of their own.

    quanto's 4-bit tensors can be used in inference mode, in which the bench generates, only if they were made in it
    ("Cannot set version_counter for inference tensor").
    """
    name = plan.quantization
    found = _OPERATIONS.get(name) or _OPERATIONS.get(name.split("-")[0])
    if found is None:
        yield
        return
    operation = getattr(importlib.import_module(found[0]), found[1])
    plain = operation.convert

    def convert(self: Any, *args: Any, **more: Any) -> Any:
        with observed.stage("quantize"):
            converted = plain(self, *args, **more)
            if plan.device != "cpu":
                torch.cuda.synchronize()
            return converted

    operation.convert = convert
    try:
        with torch.inference_mode(name.startswith("quanto")):
            yield
    finally:
        operation.convert = plain


def finish(model: Any, plan: LoadPlan) -> None:
    """transformers unpacks MXFP4 experts to bfloat16, whatever the dtype: bring them into that of the rest."""
    if plan.quantization == "mxfp4-dequantized":
        for name, weight in model.named_parameters():
            if ".experts." in name:
                weight.data = weight.data.to(model.dtype)
    if plan.device != "cpu" and plan.quantization != "none":
        torch.cuda.empty_cache()  # what was dense for a moment would be counted as the process's
