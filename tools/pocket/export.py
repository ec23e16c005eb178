"""Write the checkpoints that the app ships: bf16, and the same weights with experts in MXFP4.

python -m tools.pocket.export --weights FOLDER/weights.safetensors --tokenizer FOLDER --out presets/models
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from tools.pocket.mxfp4 import quantize
from tools.pocket.train import SHAPE

LIMIT_BYTES = 10_000_000
EXPERTS = ("gate_up_proj", "down_proj")
KEPT = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]  # as gpt-oss does
GENERATION = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 1}


def as_mxfp4(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Replace every expert matrix by its blocks and scales."""
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if name.endswith(EXPERTS):
            packed[f"{name}_blocks"], packed[f"{name}_scales"] = quantize(weight)
        else:
            packed[name] = weight
    return packed


def write(folder: Path, weights: dict[str, Tensor], settings: dict[str, Any], tokenizer: Path) -> None:
    """Write one model folder and check its size."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    if path.stat().st_size >= LIMIT_BYTES:
        raise SystemExit(f"{path} has {path.stat().st_size} bytes, the limit is {LIMIT_BYTES}")
    for name, content in {"config.json": settings, "generation_config.json": GENERATION}.items():
        (folder / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(tokenizer / name, folder / name)
    print(path, path.stat().st_size)


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    weights = {name: weight.to(torch.bfloat16).contiguous() for name, weight in load_file(args.weights).items()}
    settings = json.loads(SHAPE.read_text())
    write(args.out / "pocket", weights, settings, args.tokenizer)
    method = {"quant_method": "mxfp4", "modules_to_not_convert": KEPT}
    write(args.out / "pocket-mxfp4", as_mxfp4(weights), settings | {"quantization_config": method}, args.tokenizer)


if __name__ == "__main__":
    main()
