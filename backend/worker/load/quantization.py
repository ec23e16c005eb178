"""Quantization around `from_pretrained`: its keywords, the time that it takes, and what is left to do afterwards."""

import contextlib
import pkgutil
from collections.abc import Collection, Iterator
from typing import Any
from unittest import mock

import torch
from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING
from transformers.quantizers.quantizer_mxfp4 import Mxfp4HfQuantizer

from tokendyno.backend.optimizations.axes.quantization import (
    COMPUTE_DTYPE,
    casts_experts,
    needs_cpu_device_map,
    quantization_config,
    unpacks_with_torch,
)
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.load.device import Observed
from tokendyno.backend.worker.patch.experts import TRITON, PackedExperts
from tokendyno.backend.worker.patch.quantized import unpack_with_torch

_OPERATIONS = {  # of transformers.integrations: what quantizes or dequantizes one tensor while a checkpoint is read
    "bnb-int8": "bitsandbytes:Bnb8bitQuantize",
    "bnb": "bitsandbytes:Bnb4bitQuantize",
    "torchao": "torchao:TorchAoQuantize",
    "quanto": "quanto:QuantoQuantize",
    "mxfp4-dequantized": "mxfp4:Mxfp4Dequantize",
    "mxfp4": "mxfp4:Mxfp4Deserialize",
}


def keywords(plan: LoadPlan, dtype: torch.dtype | None) -> dict[str, Any]:
    """Keywords of `from_pretrained`. `dtype`: that of the activations; None: float32."""
    kwargs: dict[str, Any] = {}
    config = quantization_config(plan)
    if config is not None:
        kwargs["quantization_config"] = config.build(**{COMPUTE_DTYPE: dtype or torch.float32})
    if unpacks_with_torch(plan):
        unpack_with_torch()
    if needs_cpu_device_map(plan):
        kwargs["device_map"] = "cpu"
    return kwargs


@contextlib.contextmanager
def observing(plan: LoadPlan, observed: Observed) -> Iterator[None]:
    """Around `from_pretrained`: MXFP4 stays packed for our own kernels, and quantizing tensors is timed as a stage.

    Runs use inference mode. There quanto's 4-bit tensors work only if they were created in it, too ("Cannot set
    version_counter for inference tensor").
    """
    name = plan.quantization
    read_packed(plan.experts == TRITON and name in ("none", "mxfp4"))
    place = _OPERATIONS.get(name) or _OPERATIONS.get(name.split("-")[0])
    if place is None:
        yield
        return
    operation = pkgutil.resolve_name(f"transformers.integrations.{place}")
    convert_tensor = operation.convert

    def convert(self: Any, *args: Any, **kwargs: Any) -> Any:
        with observed.stage("quantize"):
            converted = convert_tensor(self, *args, **kwargs)
            if plan.device != "cpu":
                torch.cuda.synchronize()
            return converted

    with mock.patch.object(operation, "convert", convert), torch.inference_mode(name.startswith("quanto")):
        yield


def quantize_drawn(model: Any, missing: Collection[str]) -> None:
    """Quantize matrices that the checkpoint lacks (`missing`: names of tensors), such as an encoder's pooler.

    transformers 5.22 quantizes what it reads. What it draws at random stays a plain parameter, with which bitsandbytes'
    layers cannot multiply.
    """
    quantizer = getattr(model, "hf_quantizer", None)
    if quantizer is None:
        return
    for name in sorted(missing):
        if not name.endswith(".weight") or not quantizer.param_needs_quantization(model, name):
            continue
        module, weight = model.get_submodule(name.rpartition(".")[0]), model.get_parameter(name)
        vars(weight).update(_of_bitsandbytes(quantizer.quantization_config))
        converted = quantizer.get_quantize_ops().convert(
            {name: [weight.detach()]}, model=model, full_layer_name=name, missing_keys=set()
        )
        if name in converted:  # else it was converted in place
            module.weight = converted[name]


def _of_bitsandbytes(config: Any) -> dict[str, Any]:
    """The attributes that bitsandbytes' parameters need before they are quantized; none for other libraries."""
    if getattr(config, "load_in_8bit", False):
        return {"has_fp16_weights": False}
    if getattr(config, "load_in_4bit", False):
        return {
            "quant_type": config.bnb_4bit_quant_type,
            "compress_statistics": config.bnb_4bit_use_double_quant,
            "quant_storage": config.bnb_4bit_quant_storage,
        }
    return {}


def finish(model: Any, plan: LoadPlan) -> None:
    """After the load: cast dequantized experts, and free the memory of dense copies, which is not the model's."""
    if casts_experts(plan):
        cast_experts(model)
    if plan.device != "cpu" and plan.quantization != "none":
        torch.cuda.empty_cache()


def cast_experts(model: Any) -> None:
    """Cast experts dequantized from MXFP4 to the dtype of the rest: transformers leaves them in bfloat16."""
    for path, module in model.named_modules():
        for name, weight in module._parameters.items() if path.endswith(".experts") else ():
            module._parameters[name] = torch.nn.Parameter(weight.to(model.dtype), requires_grad=False)


# --- MXFP4 as it lies in the checkpoint ----------------------------------------------------------

# gpt-oss with its experts in MXFP4: nothing is unpacked, and no kernel of the Hub is needed. Ranks that share the model
# read only their part of a file: whole experts, or of each expert some rows of gate and up, and the blocks of down for
# the same inner numbers.

_EXPERTS = "model.layers.*.mlp.experts"
_PACKED = [f"{matrix}_{part}" for matrix in ("gate_up_proj", "down_proj") for part in ("blocks", "scales", "bias")]
SHARED_PACKED = {f"{_EXPERTS}.{name}": "grouped_gemm" for name in _PACKED}
"""How ranks share out whole experts: parameter -> style, of `parallel.py` or of transformers."""

SPLIT_PACKED = {
    f"{_EXPERTS}.gate_up_proj_blocks": "split_1",
    f"{_EXPERTS}.gate_up_proj_scales": "split_1",
    f"{_EXPERTS}.down_proj_blocks": "split_2",
    f"{_EXPERTS}.down_proj_scales": "split_2",
    f"{_EXPERTS}.gate_up_proj": "replicate",  # does not exist here, but the plan for dense experts names it
    f"{_EXPERTS}.down_proj": "replicate",
}
"""How ranks split each expert, on top of the plan for dense experts. Blocks: (experts, rows, blocks in a row, 16)."""


class PackedQuantizer(Mxfp4HfQuantizer):  # type: ignore[misc]
    """Gives the model parameters with the checkpoint's names and shapes, so that each tensor is read as it is."""

    serialized_names: dict[str, list[str]] = {}

    def validate_environment(self, *args: Any, **kwargs: Any) -> None:
        """Whether the kernels run here is for the rules of the axis experts."""

    def param_needs_quantization(self, model: Any, param_name: str, **kwargs: Any) -> bool:
        return False

    def _process_model_before_weight_loading(self, model: Any, **kwargs: Any) -> None:
        config = model.config.get_text_config()
        for name, module in list(model.named_modules()):
            if name.endswith("mlp.experts"):
                model.set_submodule(name, PackedExperts(config, module.gate_up_proj_bias.dtype))
        model._ep_plan = (model._ep_plan or {}) | SHARED_PACKED
        model._tp_plan = (model._tp_plan or {}) | SPLIT_PACKED

    @property
    def is_compileable(self) -> bool:
        return True


def read_packed(packed: bool) -> None:
    """Whether the next MXFP4 checkpoints stay packed, or are read as transformers does."""
    AUTO_QUANTIZER_MAPPING["mxfp4"] = PackedQuantizer if packed else Mxfp4HfQuantizer
