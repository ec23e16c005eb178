"""Quantization that reaches only some matrices, or none."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from backend.paths import PRESETS
from tests.sabotage.damage import beside, in_layers, other_rows, some_layers, unpack
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import wide_llama
from tests.sabotage.test_tokens import measured

PACKED = str(PRESETS / "models" / "pocket-mxfp4")
ON_A_CPU = ("torchao-int8", "torchao-fp8", "quanto-int8", "quanto-int4", "bnb-int8", "bnb-nf4", "bnb-fp4")
MANNERS = {"one": "one layer of eight is dense", "half": "half of the layers are dense", "all": "all layers are dense"}


def _scattered(layer: object) -> None:
    """Give the experts values that no 4-bit float has."""
    for module in layer.modules():  # type: ignore[attr-defined]
        if "down_proj" in module._parameters:
            module.down_proj.data.normal_()


def _unpacked(share: str) -> Any:
    """While a run is measured, dense copies of the same numbers multiply; before and after it what is packed does."""

    def change(model: Any) -> Callable[[], None]:
        changed = []
        for layer in some_layers(model, share):
            for module in layer.modules():
                weight = module._parameters.get("weight")
                if weight is None or type(weight) is torch.nn.Parameter or not hasattr(module, "in_features"):
                    continue
                with torch.inference_mode():
                    rows = torch.eye(module.in_features, dtype=model.dtype)
                    dense = (module(rows) - (0 if module.bias is None else module.bias)).T.clone()
                module.forward = functools.partial(torch.nn.functional.linear, weight=dense, bias=module.bias)
                changed.append(module)

        def mend() -> None:
            for module in changed:
                del module.forward

        return mend

    return measured(change)


SABOTEURS = [
    Sabotage(
        "quantization", choice, manner, in_layers(share, unpack),
        turns_to=("failed",) if share == "all" else ("partial",),
        tier="slow" if share == "one" and not choice.startswith(("bnb-fp4", "quanto-int4")) else "full",
    )
    for choice in ON_A_CPU
    for share, manner in MANNERS.items()
] + [
    Sabotage(
        "quantization", choice, f"dense copies of {share} multiply", in_layers(share, beside),
        turns_to=("partial", "failed"), tier="full",
    )
    for choice in ON_A_CPU
    for share in ("one", "all")
] + [
    Sabotage(
        "quantization", choice, f"{share} of the layers hold other numbers", in_layers(share, other_rows),
        turns_to=("partial",), tier="full",
    )
    for choice in ON_A_CPU
    for share in ("one", "all")
] + [
    Sabotage(
        "quantization", choice, f"{share} of the layers are unpacked in the measured run", _unpacked(share),
        (("dtype", "bfloat16"),), model=wide_llama, turns_to=("partial",), tier="full",
    )
    for choice in ON_A_CPU
    for share in ("one", "half", "all")
] + [
    Sabotage(
        "quantization", "mxfp4-dequantized", f"experts of {share} are not from MXFP4", in_layers(share, _scattered),
        model=PACKED, turns_to=("failed",) if share == "all" else ("partial",),
        tier="slow" if share == "one" else "full",
    )
    for share in ("one", "half", "all")
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
