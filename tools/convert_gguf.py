"""Write a GGUF file once as a folder of safetensors in bfloat16, which quantizing arms can load.

    python -m tools.convert_gguf model.gguf FOLDER

transformers dequantizes the file while it loads it, so whatever its format has lost stays lost: the folder holds the
weights that the GGUF file comes to.
"""

import argparse
import sys
from pathlib import Path


def convert(file: Path, folder: Path) -> int:
    """The number of parameters written. FileNotFoundError without the file, FileExistsError where the folder has
    something in it."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    if not file.is_file():
        raise FileNotFoundError(f"There is no file {file}.")
    if folder.exists() and any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty. Name another folder.")
    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    packed = GgufConfig(dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.bfloat16, quantization_config=packed)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(**source).save_pretrained(folder)
    return int(model.num_parameters())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path, help="the GGUF file")
    parser.add_argument("folder", type=Path, help="where to write; it must be empty or not exist")
    given = parser.parse_args()
    try:
        parameters = convert(given.file, given.folder)
    except OSError as error:
        print(f"convert_gguf: {error}", file=sys.stderr)
        return 2
    print(f"{parameters:,} parameters in {given.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
