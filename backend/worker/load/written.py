"""Writes random weights as files: `python -m tokendyno.backend.worker.load.written random:NAME FOLDER`."""

import json
import sys
from pathlib import Path

import torch

from tokendyno.backend.models import resolve
from tokendyno.backend.worker.load.random_model import byte_tokenizer, random_model


def write(model: str, folder: Path) -> None:
    """`model` (as `--model` takes it) at its real shape in its own dtype, with a tokenizer."""
    config_json = resolve(model).source.config_json
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random_model(config_json, "auto", None, device).save_pretrained(folder)
    byte_tokenizer(json.loads(config_json)["vocab_size"]).save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
