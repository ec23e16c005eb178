"""Random weights as a checkpoint, so that transformers packs or unpacks them by the way that real ones go.

Nothing is written: a tensor is made, or let go of, when transformers reads it. A GPU draws them and host memory keeps
them, as if they came from a file: dense tensors that lay on the GPU would leave memory reserved between packed ones.
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from backend import hardware
from backend.plan import LoadPlan
from backend.worker import host, noise, quantize
from backend.worker.loading import Observed, device_keywords, moved, observing

MXFP4_MEAN_SQUARE = 8.5625  # of the 16 values of a 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
NOT_MXFP4 = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
"""What the published gpt-oss checkpoints name as not packed."""


def load_packed(plan: LoadPlan, observed: Observed, where: host.Places | None = None) -> Any:
    """A model of random weights that are packed, or unpacked, while they are loaded."""
    with observed.stage("fill"):
        drawn = draw(plan, where)
    observed.note = drawn.note
    if plan.device != "cpu":
        torch.cuda.reset_peak_memory_stats()  # a checkpoint's load has no such peak
    dtype = drawn.config.dtype
    more = device_keywords(plan) | quantize.keywords(plan, dtype)
    with observing(plan, observed), quantize.observing(plan, observed):
        model = drawn.kind.from_pretrained(None, config=drawn.config, state_dict=dict(drawn.state), dtype=dtype, **more)
    del drawn
    quantize.finish(model, plan)
    return moved(model, plan, observed)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What `kind.from_pretrained(None, config=config, state_dict=state)` takes; `note` says what is unusual of it."""

    kind: Any
    config: Any
    state: Mapping[str, "Once | Packed"]
    note: str = ""


class Once:
    """A tensor that is handed over: whoever reads it holds the only reference."""

    def __init__(self, tensors: dict[str, torch.Tensor], name: str) -> None:
        self._tensors, self._name = tensors, name
        self._format = {torch.float32: "F32", torch.float16: "F16"}.get(tensors[name].dtype, "BF16")

    def get_dtype(self) -> str:
        """As a safetensors slice says it."""
        return self._format

    def __getitem__(self, index: Any) -> torch.Tensor:
        return self._tensors.pop(self._name)


class Packed:
    """Random bytes from `low` to `high`, drawn when they are read; the same for the same name."""

    def __init__(self, name: str, shape: tuple[int, ...], low: int, high: int, device: str) -> None:
        self._seed, self._shape, self._range, self._device = zlib.crc32(name.encode()), shape, (low, high + 1), device

    def get_dtype(self) -> str:
        """As a safetensors slice says it."""
        return "U8"

    def __getitem__(self, index: Any) -> torch.Tensor:
        source = torch.Generator(self._device).manual_seed(self._seed)  # threads read: none may share a generator
        return torch.randint(*self._range, self._shape, generator=source, dtype=torch.uint8, device=self._device)


def draw(plan: LoadPlan, where: host.Places | None = None) -> Checkpoint:
    """The weights of `noise.random_model`, as a checkpoint; for MXFP4 the experts are drawn packed: other numbers.

    `where` they are drawn; None: as there is room.
    """
    model = noise.shell(plan.source.config_json, plan.dtype, plan.attention)
    packed: dict[str, Packed] = {}
    if plan.quantization.startswith("mxfp4"):
        packed = _packed_experts(model, plan.device)
        model.config.quantization_config = {"quant_method": "mxfp4", "modules_to_not_convert": NOT_MXFP4}
    where = where or _as_there_is_room(model, plan.device)
    model = noise.filled(model, where.drawn)
    again = {*model.all_tied_weights_keys, *(name.rpartition("_")[0] for name in packed)}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in again}
    if where.copied:
        tensors = host.copied(tensors)
        model.to("meta")  # whoever still holds the model holds nothing of the GPU's
        torch.cuda.empty_cache()
    state: dict[str, Once | Packed] = {name: Once(tensors, name) for name in tensors}
    return Checkpoint(type(model), model.config, state | packed, where.note)


def _as_there_is_room(model: Any, device: str) -> host.Places:
    """For a model that has no memory yet."""
    if device == "cpu":
        return host.Places("cpu")
    dense_bytes = int(sum(parameter.nbytes for parameter in model.parameters()))
    return host.places(dense_bytes, device, torch.cuda.mem_get_info()[0], hardware.host_memory()[1])


def _packed_experts(model: Any, device: str) -> dict[str, Packed]:
    """Blocks and scales in place of each experts' matrices, which the model then no longer holds.

    A matrix (E, in, out) becomes blocks (E, out, in / 32, 16), two numbers a byte, and scales (E, out, in / 32), powers
    of two with a bias of 127: about as large as initialisation would make the numbers.
    """
    power = 127 + round(math.log2(model.config.initializer_range / math.sqrt(MXFP4_MEAN_SQUARE)))
    found: dict[str, Packed] = {}
    for name, module in model.named_modules():
        for part in ("gate_up_proj", "down_proj"):
            weight = module._parameters.get(part)
            if weight is None or weight.dim() != 3:
                continue
            experts, columns, rows = weight.shape
            shape = (experts, rows, columns // 32)
            for kind, size, low, high in (("blocks", (*shape, 16), 0, 255), ("scales", shape, power - 1, power + 1)):
                found[f"{name}.{part}_{kind}"] = Packed(f"{name}.{part}_{kind}", size, low, high, device)
            module._parameters[part] = torch.nn.Parameter(weight.new_empty(0))
    return found
