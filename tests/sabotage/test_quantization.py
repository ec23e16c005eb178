"""Quantization that reaches only some matrices, or none."""

from backend.paths import PRESETS
from tests.sabotage.damage import beside, in_layers, unpack
from tests.sabotage.saboteur import Sabotage, tests_of

PACKED = str(PRESETS / "models" / "pocket-mxfp4")
ON_A_CPU = ("torchao-int8", "torchao-fp8", "quanto-int8", "quanto-int4", "bnb-int8", "bnb-nf4", "bnb-fp4")
MANNERS = {"one": "one layer of eight is dense", "half": "half of the layers are dense", "all": "all layers are dense"}


def _scattered(layer: object) -> None:
    """Give the experts values that no 4-bit float has."""
    for module in layer.modules():  # type: ignore[attr-defined]
        if "down_proj" in module._parameters:
            module.down_proj.data.normal_()


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
        "quantization", "mxfp4-dequantized", f"experts of {share} are not from MXFP4", in_layers(share, _scattered),
        model=PACKED, turns_to=("failed",) if share == "all" else ("partial",),
        tier="slow" if share == "one" else "full",
    )
    for share in ("one", "half", "all")
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
