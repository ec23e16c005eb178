"""Models with random weights at their real shape, and a tokenizer for them: no download. Also as files on disk:
`python -m tokendyno.backend.worker.load.random_weights random:NAME FOLDER`."""

import contextlib
import copy
import json
import math
import sys
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, PreTrainedTokenizerFast
from transformers.integrations.hub_kernels import allow_all_hub_kernels

from tokendyno.backend import hardware
from tokendyno.backend.models import resolve
from tokendyno.backend.models.families import is_encoder
from tokendyno.backend.models.files.config_fields import decode_config
from tokendyno.backend.plan import RANDOM_SEED, LoadPlan
from tokendyno.backend.worker.load import parallel, quantization
from tokendyno.backend.worker.load.check import blaming_config, reading
from tokendyno.backend.worker.load.device import Observed, device_keywords, moved, observing

_STD = 0.02
"""Of parameters that nothing else draws: transformers' usual one."""


def auto_class(model_type: str) -> Any:
    """AutoModel for an encoder (a task head is small and the user's own), AutoModelForCausalLM for a decoder."""
    return AutoModel if is_encoder(model_type) else AutoModelForCausalLM


def random_model(config_json: str, dtype: str, attention: str | None, device: str) -> Any:
    """A model of the architecture in `config_json` (the text of a config.json), with random weights on `device`."""
    return initialize(empty_model(config_json, dtype, attention), device)


def empty_model(config_json: str, dtype: str, attention: str | None) -> Any:
    """The architecture on the meta device: no memory yet."""
    values = decode_config(config_json)
    with reading("config (config.json)"):
        config = AutoConfig.for_model(values.pop("model_type"), **values)
    torch_dtype = getattr(torch, dtype if dtype != "auto" else str(config.dtype or "bfloat16").removeprefix("torch."))
    build, original = auto_class(config.model_type).from_config, copy.deepcopy(config)
    kernels = allow_all_hub_kernels() if "/" in (attention or "") else contextlib.nullcontext()
    with blaming_config(lambda: build(original, dtype=torch_dtype)), torch.device("meta"), kernels:
        return build(config, dtype=torch_dtype, attn_implementation=attention)


def initialize(model: Any, device: str) -> Any:
    """Allocate a model of the meta device on `device` and fill it by the model's own initialization.

    The weights are the same for the same seed, device and version of torch. What that initialization leaves out, as it
    does the routers of ERNIE 4.5, would hold whatever lies in memory: such parameters are drawn, buffers are zero.
    """
    model.to_empty(device=device)
    unset = [one for one in (*model.parameters(), *model.buffers()) if one.is_floating_point() and one.numel()]
    unset = [] if device == "meta" else unset
    with torch.no_grad():
        for tensor in unset:
            tensor[(0,) * tensor.ndim] = torch.nan
        torch.manual_seed(RANDOM_SEED)
        model.tie_weights()
        model.initialize_weights()
        model.tie_weights()
        for tensor in unset:
            if tensor[(0,) * tensor.ndim].isnan().item():
                tensor.normal_(0, _STD) if isinstance(tensor, torch.nn.Parameter) else tensor.zero_()
    return model


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


# --- words ---------------------------------------------------------------------------------------


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
    """A word for a number from 0 on: "river", or "white-river" where the list is too short; never the same for two."""
    higher, lower = divmod(number, len(WORDS))
    return f"{word_of(higher - 1)}-{WORDS[lower]}" if higher else WORDS[lower]


# --- as a checkpoint -----------------------------------------------------------------------------

# Random weights presented as a checkpoint, so that transformers quantizes them on its normal loading path. Nothing is
# written to disk: a tensor is generated, or handed over, when transformers reads it. The GPU generates the numbers and
# host memory keeps them, as if they came from a file: dense tensors on the GPU would leave memory reserved between the
# quantized ones.

STAGING_BYTES = 64 << 20
"""Size of the pinned buffer through which tensors are copied to the host. Copying through it is faster than copying
straight into freshly allocated pages."""

HOST_MARGIN_BYTES = 2 << 30  # host memory to leave free for quantizing
GPU_MARGIN_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Staging:
    """Where random weights are generated and where they wait.

    to_host  whether the tensors are copied to host memory to wait there
    note     for the user where this is not the usual way, else ""
    """

    device: str
    to_host: bool = False
    note: str = ""


def choose_staging(dense_bytes: int, gpu: str, gpu_free_bytes: int, host_free_bytes: int) -> Staging:
    """Where to generate and keep dense weights, so that the GPU holds only quantized ones at the end."""
    fits_host = dense_bytes + HOST_MARGIN_BYTES <= host_free_bytes
    if fits_host and dense_bytes + GPU_MARGIN_BYTES <= gpu_free_bytes:
        return Staging(gpu, to_host=True)
    dense = f"{dense_bytes / 1e9:,.1f} GB of dense random weights"
    if not fits_host and 1.6 * dense_bytes < gpu_free_bytes:  # dense, plus 8-bit and some scratch
        return Staging(
            gpu, note=f"no room in host memory for {dense}: quantized on the GPU, which keeps more memory reserved"
        )
    return Staging("cpu", note=f"no room on the GPU for {dense}: generated on the CPU, which gives different numbers")


def copy_to_host(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same tensors in host memory, each with its own allocation, which is freed when the tensor is dropped."""
    on_gpu = any(tensor.is_cuda for tensor in tensors.values())
    buffer = torch.empty(STAGING_BYTES, dtype=torch.uint8, pin_memory=on_gpu)
    return {name: _copy(tensor.detach(), buffer) for name, tensor in tensors.items()}


def _copy(tensor: torch.Tensor, buffer: torch.Tensor) -> torch.Tensor:
    """Copy through `buffer` (bytes,), so that all of torch's threads share the first touch of the new pages."""
    copy = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    if tensor.numel() == 0:
        return copy.copy_(tensor)
    source, target = (one.reshape(-1).view(torch.uint8) for one in (tensor, copy))
    for begin in range(0, source.numel(), buffer.numel()):
        part = source[begin : begin + buffer.numel()]
        staged = buffer[: part.numel()]
        staged.copy_(part)  # waits for the GPU
        target[begin : begin + part.numel()].copy_(staged)
    return copy


# --- drawn tensors -------------------------------------------------------------------------------

# Of a model that several ranks share and whose host memory could not hold a copy for each: a tensor is drawn on the
# device when its part is read, and nothing else is kept.
_TURN = threading.Lock()
"""Readers are several threads, and the seed is the process's."""


ALIGNED = 512
"""Bytes to which the beginning of a tensor is rounded up, as torch's allocator does."""


class Scratch:
    """Room for the parameters of one module, in which all are drawn, one after the other: several threads read at once,
    and would have as many whole modules in memory."""

    def __init__(self, modules: Iterable[Any], device: str) -> None:
        sizes = [sum(_room(one) for one in module._parameters.values() if one is not None) for module in modules]
        self._bytes = torch.empty(max(sizes, default=0), dtype=torch.uint8, device=device)

    def parameters(self, module: Any) -> dict[str, Any]:
        """Without meaningful numbers, in the shapes and dtypes of this module's."""
        found, begin = {}, 0
        for name, one in module._parameters.items():
            found[name] = one
            if one is not None:
                room = self._bytes[begin : begin + one.nbytes].view(one.dtype).view(one.shape)
                found[name] = torch.nn.Parameter(room, False)
                begin += _room(one)
        return found


def _room(tensor: Any) -> int:
    return -(-int(tensor.nbytes) // ALIGNED) * ALIGNED


class Drawn:
    """A parameter that does not exist yet, by the interface of a slice of a safetensors file.

    The model's own initialization draws it as a whole, from a seed of its name: every rank draws the same one and keeps
    its part.
    """

    def __init__(self, model: Any, path: str, name: str, scratch: Scratch) -> None:
        self._model, self._module, self._name, self._scratch = model, model.get_submodule(path), name, scratch
        self._seed = RANDOM_SEED + zlib.crc32(f"{path}.{name}".encode())
        self._shape = tuple(self._module._parameters[name].shape)
        self._format = {torch.float32: "F32", torch.float16: "F16"}.get(self._module._parameters[name].dtype, "BF16")

    def get_dtype(self) -> str:
        """The dtype's name."""
        return self._format

    def get_shape(self) -> list[int]:
        """Of the whole tensor."""
        return list(self._shape)

    def __getitem__(self, index: Any) -> torch.Tensor:
        owner = copy.copy(self._module)
        owner._modules = {}
        with _TURN, torch.no_grad():
            owner._parameters = self._scratch.parameters(self._module)
            torch.manual_seed(self._seed)
            self._model._init_weights(owner)
            return owner._parameters[self._name].data[index].clone()


def drawn_state(model: Any, device: str) -> dict[str, Drawn]:
    """All parameters of a model on the meta device but tied ones, by name."""
    scratch = Scratch(model.modules(), device)
    found = {f"{path}.{name}": Drawn(model, path, name, scratch) for path, name in _owners(model)}
    return {name: one for name, one in found.items() if name not in model.all_tied_weights_keys}


def _owners(model: Any) -> Iterator[tuple[str, str]]:
    for path, module in model.named_modules():
        yield from ((path, name) for name, one in module._parameters.items() if one is not None)


MXFP4_MEAN_SQUARE = 8.5625  # of the 16 values of a 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
HOST_SHARE = 0.8
"""Of host memory, that copies of a model for all ranks may take."""
COPIED_BYTES = 32_000_000_000
"""Of a model that each rank draws whole and copies to host memory; more would take it a minute, all ranks at once."""

_DRAWN = "{}: drawn tensor by tensor, which gives different numbers"

NOT_MXFP4 = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
"""Modules that the published gpt-oss checkpoints list as not quantized."""


def load_as_checkpoint(plan: LoadPlan, observed: Observed, where: Staging | None = None) -> Any:
    """A model with random weights that are quantized, dequantized or split over ranks while they are loaded."""
    with observed.stage("fill"):
        checkpoint = random_checkpoint(plan, where)
    observed.note = checkpoint.note
    if plan.device != "cpu":
        torch.cuda.reset_peak_memory_stats()  # loading a real checkpoint has no such peak
    dtype = checkpoint.config.dtype
    keywords = device_keywords(plan) | quantization.keywords(plan, dtype)
    keywords |= parallel.keywords(plan, checkpoint.config.model_type)
    with observing(plan, observed), quantization.observing(plan, observed):
        model = checkpoint.model_class.from_pretrained(
            None, config=checkpoint.config, state_dict=dict(checkpoint.state), dtype=dtype, **keywords
        )
    del checkpoint
    if plan.parallel.ranks > 1 and plan.device == "cuda":
        torch.cuda.empty_cache()  # the room in which parameters were drawn
    quantization.finish(model, plan)
    parallel.finish(model, plan)
    return moved(model, plan, observed)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Arguments of `model_class.from_pretrained(None, config=config, state_dict=state)`; `note` is a remark for the
    user where the weights were not generated in the usual place."""

    model_class: Any
    config: Any
    state: Mapping[str, "ReadOnce | RandomBytes | Drawn | torch.Tensor"]
    note: str = ""


class ReadOnce:
    """A tensor that is handed over when it is read: the reader then holds the only reference."""

    def __init__(self, tensors: dict[str, torch.Tensor], name: str) -> None:
        self._tensors, self._name = tensors, name
        self._format = {torch.float32: "F32", torch.float16: "F16"}.get(tensors[name].dtype, "BF16")

    def get_dtype(self) -> str:
        """The dtype's name, as a safetensors slice gives it."""
        return self._format

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._tensors.pop(self._name)


class RandomBytes:
    """A uint8 tensor of random values from `low` to `high`, generated when it is read; the same for the same name.

    It is generated expert by expert, so that a rank generates its own alone, and no room for others stays reserved.
    """

    def __init__(self, name: str, shape: tuple[int, ...], low: int, high: int, device: str) -> None:
        self._seed, self._shape, self._range = zlib.crc32(name.encode()), shape, (low, high + 1)
        self._device = torch.empty(0, device=device).device  # of this rank: for threads that read, "cuda" is the first

    def get_shape(self) -> list[int]:
        """Of the whole tensor."""
        return list(self._shape)

    def get_dtype(self) -> str:
        """The dtype's name, as a safetensors slice gives it."""
        return "U8"

    def __getitem__(self, index: Any) -> torch.Tensor:
        experts, *inner = (slice(None),) if index is Ellipsis else index
        own = range(self._shape[0])[experts]
        empty = torch.empty(self._shape[1:], dtype=torch.uint8, device="meta")
        found = torch.empty(len(own), *empty[tuple(inner)].shape, dtype=torch.uint8, device=self._device)
        for place, expert in enumerate(own):
            generator = torch.Generator(self._device).manual_seed(self._seed + expert)  # several threads read
            one = torch.randint(*self._range, empty.shape, generator=generator, dtype=empty.dtype, device=self._device)
            found[place] = one[tuple(inner)]
        return found


def random_checkpoint(plan: LoadPlan, where: Staging | None = None) -> Checkpoint:
    """The weights of `random_model` as a checkpoint. MXFP4 experts are generated in MXFP4, so theirs are
    different numbers.

    where   where they are generated and kept; None: chosen by the free memory
    """
    model = empty_model(plan.source.config_json, plan.dtype, plan.attention)
    experts: dict[str, RandomBytes] = {}
    if plan.quantization.startswith("mxfp4"):
        experts = random_mxfp4_experts(model, plan.device)
    if plan.quantization == "none" and (note := _too_large(model, plan)):
        return Checkpoint(type(model), model.config, drawn_state(model, plan.device), note)
    where = where or _choose_staging(model, plan.device)
    model = initialize(model, where.device)
    excluded = {*model.all_tied_weights_keys, *(name.rpartition("_")[0] for name in experts)}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in excluded}
    if where.to_host:
        tensors = copy_to_host(tensors)
        model.to("meta")  # frees the GPU's copy, whoever still holds the model
        torch.cuda.empty_cache()
    if plan.parallel.ranks > 1:  # parts of them are read
        return Checkpoint(type(model), model.config, {**tensors, **experts}, where.note)
    state: dict[str, ReadOnce | RandomBytes] = {name: ReadOnce(tensors, name) for name in tensors}
    return Checkpoint(type(model), model.config, {**state, **experts}, where.note)


def _too_large(model: Any, plan: LoadPlan) -> str:
    """A note where several devices hold the model and nothing else has room for it, or time to draw it whole, the same
    on all ranks; ""."""
    dense_bytes, ranks = _dense_bytes(model), plan.parallel.ranks
    if ranks > 1 and ranks * dense_bytes > HOST_SHARE * hardware.host_memory()[0]:
        return _DRAWN.format("no room for a copy for each rank in host memory")
    if ranks > 1 and dense_bytes > COPIED_BYTES:
        return _DRAWN.format(f"{dense_bytes / 1e9:,.1f} GB are too much to copy for each rank")
    if plan.parallel.devices > 1 and _choose_staging(model, plan.device).device == "cpu":
        return _DRAWN.format("no room for the whole model on the first GPU")
    return ""


def _dense_bytes(model: Any) -> int:
    return int(sum(parameter.nbytes for parameter in model.parameters()))


def _choose_staging(model: Any, device: str) -> Staging:
    """`model` has no memory yet (meta device)."""
    if device == "cpu":
        return Staging("cpu")
    dense_bytes = _dense_bytes(model)
    return choose_staging(dense_bytes, device, torch.cuda.mem_get_info()[0], hardware.host_memory()[1])


def random_mxfp4_experts(model: Any, device: str) -> dict[str, RandomBytes]:
    """Random MXFP4 blocks and scales by checkpoint name, for the experts of gpt-oss; `model` (on the meta device)
    gives up their dense matrices, and its config says that it is quantized.

    A matrix (E, in, out) becomes blocks (E, out, in / 32, 16), two numbers a byte, and scales (E, out, in / 32): powers
    of two with a bias of 127, about as large as the model's initialization would make the numbers.
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


# --- as files ------------------------------------------------------------------------------------


def write(model: str, folder: Path) -> None:
    """`model` (as `--model` takes it) at its real shape in its own dtype, with a tokenizer."""
    config_json = resolve(model).source.config_json
    device = "cuda" if torch.cuda.is_available() else "cpu"
    random_model(config_json, "auto", None, device).save_pretrained(folder)
    byte_tokenizer(json.loads(config_json)["vocab_size"]).save_pretrained(folder)


if __name__ == "__main__":
    write(sys.argv[1], Path(sys.argv[2]))
