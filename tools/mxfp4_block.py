"""A block of MXFP4 in the embedded model beside the weights that it was made from: `python -m tools.mxfp4_block`."""

import msgspec
import torch
from safetensors.torch import load_file

from tokendyno.backend.ablation.sweep_view import Line, LineChart
from tokendyno.backend.claims.curves import CURVES, Drawn
from tokendyno.backend.paths import PRESETS
from tools.pocket.mxfp4 import BLOCK, value

EXPERTS = "model.layers.0.mlp.experts.gate_up_proj"


def drawn() -> Drawn:
    """The first block: of the first expert's first row."""
    packed = load_file(PRESETS / "models" / "pocket-mxfp4" / "model.safetensors")
    given = load_file(PRESETS / "models" / "pocket" / "model.safetensors")[EXPERTS][0, :BLOCK, 0]
    pairs = packed[f"{EXPERTS}_blocks"][0, 0, 0].int()
    exponent = int(packed[f"{EXPERTS}_scales"][0, 0, 0]) - 127
    numbers = value(torch.stack([pairs & 15, pairs >> 4], -1).flatten())
    lines = [
        _line("bfloat16", given.tolist(), [f"{weight:.4f}" for weight in given.tolist()]),
        _line(
            "MXFP4", (numbers * 2.0**exponent).tolist(), [f"{number:g} x 2^{exponent}" for number in numbers.tolist()]
        ),
    ]
    places = [str(place) for place in range(1, BLOCK + 1)]
    source = f"pocket-mxfp4, {EXPERTS}, first expert, first row"
    return Drawn(source, "Weight", places, False, LineChart("Weights", "", lines))


def _line(title: str, values: list[float], texts: list[str]) -> Line:
    return Line(title, [*values], [None] * len(values), [None] * len(values), texts)


if __name__ == "__main__":
    (CURVES / "mxfp4-block.json").write_bytes(msgspec.json.format(msgspec.json.encode(drawn()), indent=1) + b"\n")
