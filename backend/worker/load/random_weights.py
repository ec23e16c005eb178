"""Models of their real shape with random weights, and a tokenizer for them, without a download. To write them to disk:
`python -m tokendyno.backend.worker.load.random_weights random:NAME FOLDER`."""

import contextlib
import copy
import json
import math
import sys
import threading
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.integrations.hub_kernels import allow_all_hub_kernels

from tokendyno.backend.models import resolve
from tokendyno.backend.models.families import is_encoder
from tokendyno.backend.models.files.config_fields import decode_config
from tokendyno.backend.plan import RANDOM_SEED, LoadPlan
from tokendyno.backend.worker.load import parallel, quantization
from tokendyno.backend.worker.load.check import blaming_config, reading
from tokendyno.backend.worker.load.device import Observed, device_keywords, moved, observing

_STD = 0.02
"""Standard deviation of parameters that the model's own code does not initialize: transformers' usual one."""


def auto_class(model_type: str) -> Any:
    """AutoModel for an encoder (whose task head is small and the user's own), else AutoModelForCausalLM."""
    return AutoModel if is_encoder(model_type) else AutoModelForCausalLM


def random_model(config_json: str, dtype: str, attention: str | None, device: str) -> Any:
    """A model with random weights on `device`. `config_json`: the text of its config.json."""
    return initialize(empty_model(config_json, dtype, attention), device)


def empty_model(config_json: str, dtype: str, attention: str | None) -> Any:
    """The model on the meta device, where it takes no memory."""
    values = decode_config(config_json)
    with reading("config (config.json)"):
        config = AutoConfig.for_model(values.pop("model_type"), **values)
    torch_dtype = getattr(torch, dtype if dtype != "auto" else str(config.dtype or "bfloat16").removeprefix("torch."))
    build, original = auto_class(config.model_type).from_config, copy.deepcopy(config)
    kernels = allow_all_hub_kernels() if "/" in (attention or "") else contextlib.nullcontext()
    with blaming_config(lambda: build(original, dtype=torch_dtype)), torch.device("meta"), kernels:
        return build(config, dtype=torch_dtype, attn_implementation=attention)


def initialize(model: Any, device: str) -> Any:
    """Allocate a model of the meta device on `device` and draw its numbers, module by module, those within a module
    after its own. The weights are the same for the same seed, device and version of torch."""
    for path, module in list(model.named_modules()):
        for own in (module._parameters, module._buffers):
            for name, tensor in own.items():
                if tensor is not None and f"{path}.{name}" not in model.all_tied_weights_keys:
                    empty = torch.empty_like(tensor, device=device)
                    own[name] = torch.nn.Parameter(empty, tensor.requires_grad) if own is module._parameters else empty
        draw(model, module, path)
    model.tie_weights()
    return model


def draw(model: Any, module: Any, path: str) -> None:
    """Fill a module's own tensors, but for those on the meta device, by the model's initialization, from a seed by its
    path. What that leaves out (the routers of ERNIE 4.5) would hold whatever lies in memory: such parameters are drawn,
    such buffers are zero."""
    own = (*module._parameters.values(), *module._buffers.values())
    tensors = [t for t in own if t is not None and not t.is_meta and t.is_floating_point() and t.numel()]
    with torch.no_grad():
        for tensor in tensors:
            tensor[(0,) * tensor.ndim] = torch.nan
        torch.manual_seed(RANDOM_SEED + zlib.crc32(path.encode()))
        model._init_weights(module)
        for tensor in tensors:
            if tensor[(0,) * tensor.ndim].isnan().item():
                tensor.normal_(0, _STD) if isinstance(tensor, torch.nn.Parameter) else tensor.zero_()


def byte_tokenizer(vocab_size: int) -> PreTrainedTokenizerFast:
    """One token per byte; every further id decodes to a word of its own, so that equal ids give equal text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocab_size < len(letters) + 1:
        raise ValueError(f"A byte-level tokenizer needs {len(letters) + 1} ids, the model has {vocab_size}.")
    vocab = {letter: i for i, letter in enumerate(letters)}
    for i in range(len(vocab), vocab_size - 1):
        vocab[f"Ġ{word_of(i - len(letters))}"] = i
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|end|>")


_LIST = """
again along april area atlas bank basin bean bed bench bloom bold book bowl brave broom bud camel cap chain chest city
clear cloud coin comet corn crane crown daisy day dew dog dream dry eager earth edge elder every fast fern field fire
flame flint flute fox fresh full giant glove goose grass green hand hat heavy high hook hotel ice ink ivory jar juice
kind knot lamp last lawn lemon lime log loud lute marsh melon mild mist mouse near new north oat olive otter paint pan
pear piano plate poppy proud queen quill ready rich ripe river rock root round rug salt sea sheep ship short slate smart
soft spark star storm straw sweet tail thick tiger tower train twig water west white wind wolf
"""
WORDS = _LIST.split()
"""128 plain words. Up to three of them name every id of a vocabulary of two million."""


def word_of(number: int) -> str:
    """A word of its own for each number from 0 on: "river", or "white-river" where the list is too short."""
    higher, lower = divmod(number, len(WORDS))
    return f"{word_of(higher - 1)}-{WORDS[lower]}" if higher else WORDS[lower]


# --- as a checkpoint -----------------------------------------------------------------------------

# Random weights as a checkpoint, which transformers quantizes or splits while it loads them. A tensor is drawn on the
# device when it is read, as if it came from a file: a whole dense model there would leave reserved memory between
# quantized tensors, and host memory has no room for a copy for each rank.

_DRAWING = threading.Lock()
"""transformers reads in several threads, and they share torch's seed."""

ALIGNED = 512
"""A tensor begins at a multiple of so many bytes, as from torch's allocator."""


class Scratch:
    """Memory for the parameters of the largest module, in which those of each module are drawn in turn: several threads
    read at once, and would hold as many whole modules."""

    def __init__(self, modules: Iterable[Any], device: str) -> None:
        sizes = [sum(_aligned_bytes(p) for p in module._parameters.values() if p is not None) for module in modules]
        self._bytes = torch.empty(max(sizes, default=0), dtype=torch.uint8, device=device)

    def tensors(self, module: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Uninitialized parameters and buffers with the names, shapes and dtypes of this module's."""
        parameters, begin = dict(module._parameters), 0
        for name, parameter in module._parameters.items():
            if parameter is not None:
                memory = self._bytes[begin : begin + parameter.nbytes].view(parameter.dtype).view(parameter.shape)
                parameters[name] = torch.nn.Parameter(memory, False)
                begin += _aligned_bytes(parameter)
        device, buffers = self._bytes.device, module._buffers.items()
        return parameters, {name: b if b is None else torch.empty_like(b, device=device) for name, b in buffers}


def _aligned_bytes(tensor: Any) -> int:
    return -(-int(tensor.nbytes) // ALIGNED) * ALIGNED


class Drawn:
    """A parameter or buffer that is drawn when it is read, with the interface of a safetensors slice.

    Its module is drawn whole, with the numbers that `initialize` gives it: each rank draws the same and keeps its part.
    """

    def __init__(self, model: Any, name: str, scratch: Scratch) -> None:
        self._path, _, self._name = name.rpartition(".")
        self._model, self._module, self._scratch = model, model.get_submodule(self._path), scratch
        self._empty = getattr(self._module, self._name)

    def get_dtype(self) -> str:
        return {torch.float32: "F32", torch.float16: "F16"}.get(self._empty.dtype, "BF16")

    def get_shape(self) -> list[int]:
        return list(self._empty.shape)

    def __getitem__(self, index: Any) -> torch.Tensor:
        owner = copy.copy(self._module)
        with _DRAWING:
            owner._parameters, owner._buffers = self._scratch.tensors(self._module)
            draw(self._model, owner, self._path)
            return getattr(owner, self._name).detach()[index].clone()


def drawn_state(model: Any, device: str) -> dict[str, Drawn]:
    """What a checkpoint of a model on the meta device holds, by name: tied weights once, and nothing empty."""
    scratch, tied = Scratch(model.modules(), device), model.all_tied_weights_keys
    names = [name for name, tensor in model.state_dict().items() if tensor.numel() and name not in tied]
    return {name: Drawn(model, name, scratch) for name in names}


MXFP4_MEAN_SQUARE = 8.5625  # of the 16 values of a 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
NOT_MXFP4 = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
"""Modules that the published gpt-oss checkpoints list as not quantized."""


def load_as_checkpoint(plan: LoadPlan, observed: Observed) -> Any:
    """A model with random weights that are quantized, dequantized or split over ranks while they are loaded."""
    model_class, config, state = random_checkpoint(plan)
    keywords = device_keywords(plan) | quantization.keywords(plan, config.dtype)
    keywords |= parallel.keywords(plan, config.model_type)
    with observing(plan, observed), quantization.observing(plan, observed):
        model = model_class.from_pretrained(None, config=config, state_dict=state, dtype=config.dtype, **keywords)
    del state
    if plan.device == "cuda":
        torch.cuda.empty_cache()  # frees the `Scratch`
    quantization.finish(model, plan)
    parallel.finish(model, plan)
    return moved(model, plan, observed)


class RandomBytes:
    """A uint8 tensor of random values from `low` to `high`, generated when it is read. Its name is the seed.

    It is generated expert by expert, so that a rank generates only its own and reserves no memory for others.
    """

    def __init__(self, name: str, shape: tuple[int, ...], low: int, high: int, device: str) -> None:
        self._seed, self._shape, self._range = zlib.crc32(name.encode()), shape, (low, high + 1)
        self._device = torch.empty(0, device=device).device  # this rank's: in the threads that read, "cuda" is GPU 0

    def get_shape(self) -> list[int]:
        return list(self._shape)

    def get_dtype(self) -> str:
        return "U8"

    def __getitem__(self, index: Any) -> torch.Tensor:
        experts, *inner = (slice(None),) if index is Ellipsis else index
        own = range(self._shape[0])[experts]
        empty = torch.empty(self._shape[1:], dtype=torch.uint8, device="meta")
        part = torch.empty(len(own), *empty[tuple(inner)].shape, dtype=torch.uint8, device=self._device)
        for row, expert in enumerate(own):
            generator = torch.Generator(self._device).manual_seed(self._seed + expert)  # several threads read
            whole = torch.randint(
                *self._range, empty.shape, generator=generator, dtype=empty.dtype, device=self._device
            )
            part[row] = whole[tuple(inner)]
        return part


def random_checkpoint(plan: LoadPlan) -> tuple[Any, Any, dict[str, Drawn | RandomBytes]]:
    """Class, config and state of a checkpoint with the weights of `random_model`; only MXFP4 experts have other
    numbers, since they are generated in MXFP4."""
    model = empty_model(plan.source.config_json, plan.dtype, plan.attention)
    experts = random_mxfp4_experts(model, plan.device) if plan.quantization.startswith("mxfp4") else {}
    return type(model), model.config, {**drawn_state(model, plan.device), **experts}


def random_mxfp4_experts(model: Any, device: str) -> dict[str, RandomBytes]:
    """Random MXFP4 blocks and scales for the experts of gpt-oss, by their names in a checkpoint. Removes the dense
    matrices from `model` (on the meta device), and marks its config as quantized.

    A matrix (E, in, out) becomes blocks (E, out, in / 32, 16), two numbers a byte, and scales (E, out, in / 32): powers
    of two with a bias of 127, such that the numbers are about as large as from the model's own initialization.
    """
    power = 127 + round(math.log2(model.config.initializer_range / math.sqrt(MXFP4_MEAN_SQUARE)))
    state: dict[str, RandomBytes] = {}
    for name, module in model.named_modules():
        for part in ("gate_up_proj", "down_proj"):
            weight = module._parameters.get(part)
            if weight is None or weight.dim() != 3:
                continue
            experts, columns, rows = weight.shape
            shape = (experts, rows, columns // 32)
            for kind, size, low, high in (("blocks", (*shape, 16), 0, 255), ("scales", shape, power - 1, power + 1)):
                state[f"{name}.{part}_{kind}"] = RandomBytes(f"{name}.{part}_{kind}", size, low, high, device)
            module._parameters[part] = torch.nn.Parameter(weight.new_empty(0))
    model.config.quantization_config = {"quant_method": "mxfp4", "modules_to_not_convert": NOT_MXFP4}
    return state


def write(model: str, folder: Path) -> None:
    """Write `model` (as `--model` takes it) in its real shape and own dtype, with a tokenizer."""
    config_json = resolve(model).source.config_json
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random_model(config_json, "auto", None, device).save_pretrained(folder)
    byte_tokenizer(json.loads(config_json)["vocab_size"]).save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
