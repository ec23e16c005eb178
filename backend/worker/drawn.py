"""Random weights as a checkpoint, so that transformers packs or unpacks them by the way that real ones go.

Nothing is written: a tensor is made, or let go of, when transformers reads it.
"""

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from backend.plan import LoadPlan
from backend.worker import noise, quantize
from backend.worker.loading import Observed, device_keywords, moved, observing

MXFP4_MEAN_SQUARE = 8.5625  # of the 16 values of a 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives
NOT_MXFP4 = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
"""What the published gpt-oss checkpoints name as not packed."""


def load_packed(plan: LoadPlan, observed: Observed) -> Any:
    """A model of random weights that are packed, or unpacked, while they are loaded."""
    with observed.stage("fill"):
        drawn = draw(plan)
    dtype = drawn.config.dtype
    more = device_keywords(plan) | quantize.keywords(plan, dtype)
    with observing(plan, observed), quantize.observing(plan, observed):
        model = drawn.kind.from_pretrained(None, config=drawn.config, state_dict=dict(drawn.state), dtype=dtype, **more)
    del drawn
    quantize.finish(model, plan)
    return moved(model, plan, observed)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What `kind.from_pretrained(None, config=config, state_dict=state)` takes."""

    kind: Any
    config: Any
    state: Mapping[str, "Once | Packed"]


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


def draw(plan: LoadPlan) -> Checkpoint:
    """The weights of `noise.random_model`, as a checkpoint; for MXFP4 the experts are drawn packed: other numbers.

    They are drawn on the plan's device where it has room for all of them, else in host memory, where the same seed
    gives other numbers.
    """
    model = noise.shell(plan.source.config_json, plan.dtype, plan.attention)
    packed: dict[str, Packed] = {}
    if plan.quantization.startswith("mxfp4"):
        packed = _packed_experts(model, plan.device)
        model.config.quantization_config = {"quant_method": "mxfp4", "modules_to_not_convert": NOT_MXFP4}
    model = noise.filled(model, plan.device if plan.device == "cpu" or _fits_twice(model) else "cpu")
    again = {*model.all_tied_weights_keys, *(name.rpartition("_")[0] for name in packed)}
    tensors = {name: tensor for name, tensor in model.state_dict().items() if name not in again}
    state: dict[str, Once | Packed] = {name: Once(tensors, name) for name in tensors}
    return Checkpoint(type(model), model.config, state | packed)


def _fits_twice(model: Any) -> bool:
    """Whether the GPU has room for the dense model and, at 8 bits and some more, its packed copy."""
    dense_bytes = int(sum(parameter.nbytes for parameter in model.parameters()))
    return 1.6 * dense_bytes < float(torch.cuda.mem_get_info()[0])


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
