"""Reads a model folder within bounds: its config, weight files and tokenizer, and whether they can be loaded.

A safetensors file is the length of its header in 8 bytes (little endian), a JSON header, then the tensors' bytes
(https://github.com/huggingface/safetensors#format). It is read without the library, which imports numpy.
"""

import json
import math
import re
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.models.files.config_fields import read_json, show

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
NOT_WEIGHTS = ("training_args.bin", "optimizer.bin", "scheduler.bin", "optimizer.pt", "scheduler.pt")

QUANTIZED_BESIDE = {
    "hf_quant_config.json": ("quantization", "quant_algo"),  # ModelOpt; null: only the KV cache is quantized
    "quantize_config.json": ("bits",),  # AutoGPTQ
    "quant_config.json": ("w_bit",),  # AutoAWQ
}
"""Files in which quantizing programs say beside config.json how they packed the weights, and where in them.
transformers 5.22 reads none of them (`get_hf_quantizer` in quantizers/auto.py)."""

MAX_INDEX_BYTES = 32 << 20
"""DeepSeek-V3's index has 9 MB and 91,991 weights."""

MAX_TEMPLATE_BYTES = 1 << 20
VARIABLES = ("reasoning_effort", "enable_thinking", "thinking")
"""Variables by which published chat templates know how long to reason: gpt-oss's effort, Qwen 3's switch, DeepSeek
V3.1's and Granite's."""

_TEXT = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"", re.DOTALL)
_GOES_THROUGH = re.compile(r"\bin\s+\w+\.content\b|\.content\s*\[\s*\d")
_ASKS = re.compile(r"\bis\s+(?:not\s+)?(?:string|iterable|mapping|sequence)\b")


class FilesMissing(InputError):
    """Some weight files are not there. `count`: how many of how many."""

    def __init__(self, folder: Path, missing: list[str], of: int) -> None:
        self.count = f"{len(missing)} of {of} weight files are missing"
        super().__init__(f"{self.count} in {folder}, first {missing[0]}. Download or copy the folder again.")


@dataclass(frozen=True, slots=True)
class Weights:
    """What weight files contain, by their headers.

    dtype  torch's name of the dtype that transformers takes where the config names none: that of the first file's first
           tensor, by name, that is a float of at least 16 bits (`get_state_dict_dtype` in modeling_utils.py of 5.22)
    """

    tensor_bytes: int
    elements: int
    dtype: str | None


def read_config(folder: Path) -> dict[str, Any]:
    """The folder's config.json. InputError if there is none, or if the weights are pickles."""
    path = folder / "config.json"
    if not path.is_file():
        gguf = next((p.name for p in sorted(folder.glob("*.gguf"))), None)
        advice = (
            f"Give the GGUF file itself: {folder / gguf}."
            if gguf
            else "Give a folder that save_pretrained wrote or that was downloaded from the Hub."
        )
        raise InputError(f"The folder {folder} has no config.json. {advice}")
    refuse_pickles(folder)
    return read_json(path)


def refuse_pickles(folder: Path) -> None:
    """InputError for a folder whose only weights are pickles, since a pickle can run code when it is loaded."""
    names = [p.name for p in folder.iterdir() if p.is_file()]
    if any(name.endswith(".safetensors") for name in names):
        return
    pickle = next((n for n in sorted(names) if n.endswith(PICKLES) and n not in NOT_WEIGHTS), None)
    if pickle:
        raise InputError(
            f"The weights in {folder} are a pickle ({pickle}), which can run code when it is loaded, "
            "and there is no .safetensors file. If you trust them, convert them once: "
            "AutoModelForCausalLM.from_pretrained(folder).save_pretrained(new_folder)."
        )


def refuse_quantized_beside(folder: Path, config: dict[str, Any], repo: str = "") -> None:
    """InputError for weights that are packed as one of `QUANTIZED_BESIDE` says and config.json does not. `repo`: whose
    files they are, where the folder is the Hub's cache."""
    text = config.get("text_config")
    if config.get("quantization_config") or (isinstance(text, dict) and text.get("quantization_config")):
        return
    for name, keys in QUANTIZED_BESIDE.items():
        stated: Any = read_json(folder / name) if (folder / name).is_file() else None
        for key in keys:
            stated = stated.get(key) if isinstance(stated, dict) else None
        if stated:
            raise InputError(
                f"{f'{name} of {repo}' if repo else folder / name} says that the weights are quantized ({keys[-1]}: "
                f"{show(stated)}), and config.json has no quantization_config. transformers 5.22 reads that alone, so "
                "it cannot load these weights. Use the original checkpoint, or one whose config.json says how it is "
                "quantized."
            )


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


def named_files(path: Path) -> list[str]:
    """The weight files that an index names, sorted. InputError if it is unreadable or names others."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_INDEX_BYTES + 1)
        names = set(msgspec.json.decode(data, type=_Index).weight_map.values())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check the path and its permissions.") from None
    except UNDECODABLE:
        raise InputError(f"{path} is no index of weight files. Copy it again from the original checkpoint.") from None
    if len(data) > MAX_INDEX_BYTES or not names:
        raise InputError(f"{path} names no weight files, or is too large. Copy it again from the original checkpoint.")
    for name in names:
        if not name.endswith(".safetensors") or Path(name).name != name:
            raise InputError(f"{path} names {show(name)}, which is not in that folder. Download it again.")
    return sorted(names)


def weight_files(folder: Path) -> tuple[Path, ...]:
    """The files that transformers would load; empty without weights. InputError if one of them is missing."""
    if (folder / SINGLE).is_file():
        return (folder / SINGLE,)
    if not (folder / INDEX).is_file():
        return ()
    names = named_files(folder / INDEX)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise FilesMissing(folder, missing, len(names))
    return tuple(folder / name for name in names)


def read_weights(folder: Path) -> Weights | None:
    """The folder's weights by their headers; None if there are none or they are damaged."""
    try:
        headers = [read_header(file) for file in weight_files(folder)]
    except InputError:
        return None
    if not headers:
        return None
    return Weights(sum(h.tensor_bytes for h in headers), sum(h.elements for h in headers), headers[0].dtype)


def check_weights(folder: Path) -> None:
    """InputError unless all weight files are present and complete."""
    if not folder.is_dir():
        raise InputError(f"The folder {folder} no longer exists. Choose another model.")
    refuse_pickles(folder)
    files = weight_files(folder)
    if not files:
        raise InputError(
            f"The folder {folder} has no weights (no {SINGLE}). Add them, or run its architecture "
            f"with random weights: random:{folder}."
        )
    if not sum(read_header(file).elements for file in files):
        raise InputError(f"{files[0]} holds no weights at all. Download or copy the folder again.")


# --- chat templates ------------------------------------------------------------------------------


def chat_template(folder: Path) -> str | None:
    """The text of the folder's chat templates, "" if its tokenizer settings have none; None where that is not known."""
    try:
        texts = [_short(path) for path in sorted(folder.glob("chat_template.j*")) if path.is_file()]
        if any((folder / name).exists() for name in ("tekken.json", "additional_chat_templates")):
            return None
        if (folder / "tokenizer_config.json").is_file():
            template = read_json(folder / "tokenizer_config.json").get("chat_template")
            texts.append(template if isinstance(template, str) else json.dumps(template) if template else "")
    except (InputError, OSError, UnicodeDecodeError):
        return None  # the worker reports what is wrong with it
    return "\n".join(texts) if texts else None


def template_variables(template: str) -> tuple[str, ...]:
    """The names of `VARIABLES` that a template reads in its code, and does not set itself."""
    code = _TEXT.sub("''", _code(template))
    uses = {name: re.search(rf"(?<![\w.]){name}(?!\w)\s*(=(?!=))?", code) for name in VARIABLES}
    return tuple(name for name, first_use in uses.items() if first_use and not first_use[1])


def takes_parts(template: str) -> bool:
    """Whether a template goes through the content of a message as a list of parts, and does not ask whether it is a
    text. Runs and exported scripts go by this."""
    code = re.sub(r"\[\s*(['\"])content\1\s*\]", ".content", _code(template))
    return bool(_GOES_THROUGH.search(code)) and not _ASKS.search(code)


def _code(template: str) -> str:
    """What stands between the braces of a template, roughly and in linear time."""
    return " ; ".join(re.split(r"[%}]\}", part, maxsplit=1)[0] for part in re.split(r"\{[%{]", template)[1:])


def _short(path: Path) -> str:
    if path.stat().st_size > MAX_TEMPLATE_BYTES:
        raise InputError(f"{path} is no chat template: it has more than {MAX_TEMPLATE_BYTES:,} bytes.")
    return path.read_text(encoding="utf-8")


# --- safetensors ---------------------------------------------------------------------------------

MAX_HEADER_BYTES = 25_000_000
"""The format allows 100 MB. DeepSeek-V3 needs 13 MB if all of its 91,000 tensors were in one file."""

TORCH_NAMES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}

Extent = Annotated[int, msgspec.Meta(ge=0, le=1 << 48)]


class _Tensor(msgspec.Struct):
    dtype: str
    shape: Annotated[list[Extent], msgspec.Meta(max_length=16)]
    data_offsets: tuple[Extent, Extent]


def read_header(path: Path) -> Weights:
    """What one safetensors file holds. InputError for a damaged or truncated file."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > min(size - 8, MAX_HEADER_BYTES):
                raise _broken(path, "its header is truncated")
            raw = msgspec.json.decode(file.read(length), type=dict[str, msgspec.Raw])
        raw.pop("__metadata__", None)
        tensors = [msgspec.json.decode(raw[name], type=_Tensor) for name in sorted(raw)]
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from None
    except UNDECODABLE:
        raise _broken(path, "its header is invalid") from None
    expected = 8 + length + max((tensor.data_offsets[1] for tensor in tensors), default=0)
    if size != expected:
        raise _broken(path, f"it has {size:,} bytes, and {expected:,} by its header")
    dtype = next((TORCH_NAMES[tensor.dtype] for tensor in tensors if tensor.dtype in TORCH_NAMES), None)
    return Weights(size - 8 - length, sum(math.prod(tensor.shape) for tensor in tensors), dtype)


def _broken(path: Path, reason: str) -> InputError:
    return InputError(f"{path} is not a complete safetensors file ({reason}). Download or copy it again.")


# --- the tokenizer -------------------------------------------------------------------------------

FAST, SETTINGS = "tokenizer.json", "tokenizer_config.json"
BOUNDED = (FAST, SETTINGS, "special_tokens_map.json", "added_tokens.json")
"""Files that transformers reads whole."""

VOCABULARIES = (FAST, "tekken.json", "vocab.json", "vocab.txt", "merges.txt", "bpe.codes", "dict.txt")
VOCABULARY_ENDINGS = (".model", ".spm", ".tiktoken")
WITHOUT_VOCABULARY = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
"""Tokenizers of bytes or characters."""

MAX_TOKENIZER_BYTES = 128 << 20
"""Gemma 3's tokenizer.json has 33 MB."""


class _Tokenizer(msgspec.Struct):
    model: dict[str, msgspec.Raw] | None = None


def has_tokenizer(folder: Path) -> bool:
    """Whether there is a vocabulary by any name that transformers reads, or a tokenizer that needs none."""
    names = [path.name for path in folder.iterdir() if path.is_file()]
    if any(name in VOCABULARIES or name.endswith(VOCABULARY_ENDINGS) for name in names):
        return True
    with suppress(InputError):
        return SETTINGS in names and read_json(folder / SETTINGS).get("tokenizer_class") in WITHOUT_VOCABULARY
    return False


def check_tokenizer(folder: Path) -> None:
    """InputError unless there is a vocabulary, a whole one where it is in tokenizer.json, and no file is too large."""
    if not has_tokenizer(folder):
        raise InputError(
            f"The folder {folder} has no tokenizer (no {FAST}). Copy the tokenizer's files of the original "
            "model into it: save_pretrained of a tokenizer writes them."
        )
    for path in (folder / name for name in BOUNDED):
        if path.is_file() and (damage := _damage(path, path.stat().st_size, path.stat().st_mtime_ns)):
            raise InputError(
                f"The tokenizer cannot be read: {path} {damage}. Copy the tokenizer's files of the original model "
                "again: save_pretrained of a tokenizer writes them."
            )


@lru_cache(maxsize=64)
def _damage(path: Path, size: int, changed_ns: int) -> str:
    """What is wrong with a file of that size and time, as the end of a sentence; "" if nothing is."""
    if size > MAX_TOKENIZER_BYTES:
        return f"has more than {MAX_TOKENIZER_BYTES:,} bytes, more than any tokenizer's"
    try:
        if path.name == FAST and msgspec.json.decode(path.read_bytes(), type=_Tokenizer).model is None:
            return 'has no vocabulary (no "model")'
    except OSError as error:
        return f"cannot be opened ({error.strerror})"
    except UNDECODABLE:
        return "is cut off, or no JSON object"
    return ""
