"""Random weights presented as a checkpoint, so that transformers quantizes them on its normal loading path.

Nothing is written to disk: a tensor is generated, or handed over, when transformers reads it. The GPU generates the
numbers and host memory keeps them, as if they came from a file: dense tensors on the GPU would leave memory reserved
between the quantized ones.
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tokendyno.backend import hardware
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.load import parallel, quantization, random_model, staging
from tokendyno.backend.worker.load.device import Observed, device_keywords, moved, observing
from tokendyno.backend.worker.load.drawn import Drawn, drawn_state

MXFP4_MEAN_SQUARE = 8.5625  # of the 16 values of a 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
HOST_SHARE = 0.8
"""Of host memory, that copies of a model for all ranks may take."""

_DRAWN = "no room for {} {}: drawn tensor by tensor, which gives different numbers"

NOT_MXFP4 = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
"""Modules that the published gpt-oss checkpoints list as not quantized."""


def load_as_checkpoint(plan: LoadPlan, observed: Observed, where: staging.Staging | None = None) -> Any:
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
    """A uint8 tensor of random values from `low` to `high`, generated when it is read; the same for the same name."""

    def __init__(self, name: str, shape: tuple[int, ...], low: int, high: int, device: str) -> None:
        self._seed, self._shape, self._range, self._device = zlib.crc32(name.encode()), shape, (low, high + 1), device

    def get_dtype(self) -> str:
        """The dtype's name, as a safetensors slice gives it."""
        return "U8"

    def __getitem__(self, index: Any) -> torch.Tensor:
        generator = torch.Generator(self._device).manual_seed(self._seed)  # read by several threads: none is shared
        return torch.randint(*self._range, self._shape, generator=generator, dtype=torch.uint8, device=self._device)


def random_checkpoint(plan: LoadPlan, where: staging.Staging | None = None) -> Checkpoint:
    """The weights of `random_model.random_model` as a checkpoint. MXFP4 experts are generated in MXFP4, so theirs are
    different numbers.

    where   where they are generated and kept; None: chosen by the free memory
    """
    model = random_model.empty_model(plan.source.config_json, plan.dtype, plan.attention)
    experts: dict[str, RandomBytes] = {}
    if plan.quantization.startswith("mxfp4"):
        experts = random_mxfp4_experts(model, plan.device)
    if plan.quantization == "none" and (note := _too_large(model, plan)):
        return Checkpoint(type(model), model.config, drawn_state(model, plan.device), note)
    where = where or _choose_staging(model, plan.device)
    model = random_model.initialize(model, where.device)
    excluded = {*model.all_tied_weights_keys, *(name.rpartition("_")[0] for name in experts)}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in excluded}
    if where.to_host:
        tensors = staging.copy_to_host(tensors)
        model.to("meta")  # frees the GPU's copy, whoever still holds the model
        torch.cuda.empty_cache()
    if plan.parallel.ranks > 1:  # parts of them are read
        return Checkpoint(type(model), model.config, tensors, where.note)
    state: dict[str, ReadOnce | RandomBytes] = {name: ReadOnce(tensors, name) for name in tensors}
    return Checkpoint(type(model), model.config, {**state, **experts}, where.note)


def _too_large(model: Any, plan: LoadPlan) -> str:
    """A note where several devices hold the model and nothing else can: host memory a copy for each rank, or the first
    GPU the whole. For ranks by the size of the memory, which does not change, since all must find the same. "" where
    there is room."""
    dense_bytes = _dense_bytes(model)
    if plan.parallel.ranks > 1 and plan.parallel.ranks * dense_bytes > HOST_SHARE * hardware.host_memory()[0]:
        return _DRAWN.format("a copy for each rank", "in host memory")
    if plan.parallel.devices > 1 and _choose_staging(model, plan.device).device == "cpu":
        return _DRAWN.format("the whole model", "on the first GPU")
    return ""


def _dense_bytes(model: Any) -> int:
    return int(sum(parameter.nbytes for parameter in model.parameters()))


def _choose_staging(model: Any, device: str) -> staging.Staging:
    """`model` has no memory yet (meta device)."""
    if device == "cpu":
        return staging.Staging("cpu")
    dense_bytes = _dense_bytes(model)
    return staging.choose_staging(dense_bytes, device, torch.cuda.mem_get_info()[0], hardware.host_memory()[1])


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
