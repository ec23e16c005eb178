"""The lines of an exported script that quantize weights while they are loaded."""

import json

from tokendyno.backend.optimizations.axes.quantization.settings import (
    COMPUTE_DTYPE,
    casts_experts,
    needs_cpu_device_map,
    quantization_config,
    unpacks_with_torch,
)
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import quoted


def write_settings(script: Script, load: LoadPlan) -> None:
    """The `quantization_config`, and what belongs to it."""
    config = quantization_config(load)
    if config is None:
        return
    script.imports.update(config.imports())
    dtype = _dtype(script, load) if config.needs(COMPUTE_DTYPE) else ""
    script.prepare.append(config.source("quantization_config = ", **{COMPUTE_DTYPE: dtype}))
    script.load["quantization_config"] = "quantization_config"
    if needs_cpu_device_map(load):
        script.load["device_map"] = "DEVICE"
    if unpacks_with_torch(load):
        script.define("worker/patch/quanto.py", "unpack_with_torch")
        script.prepare.append("unpack_with_torch()")
    if casts_experts(load) and load.dtype not in ("auto", "bfloat16"):
        script.define("worker/load/quantization.py", "cast_experts")
        script.patch.append("cast_experts(model)")
    if load.quantization.startswith("mxfp4") and load.source.kind == "random":
        script.define("worker/load/random_checkpoint.py", "random_mxfp4_experts")
        script.empty.append("experts = random_mxfp4_experts(model, DEVICE)")
        script.state.append("experts")


def _dtype(script: Script, load: LoadPlan) -> str:
    """The dtype of the activations, which a plan leaves open where it is the checkpoint's own."""
    if load.dtype != "auto":
        return f"torch.{load.dtype}"
    if load.source.kind == "random":
        return f"torch.{json.loads(load.source.config_json).get('dtype', 'float32')}"
    script.imports.add("from transformers import AutoConfig")
    revision = f", revision={quoted(load.source.revision)}" if load.source.revision else ""
    return f"AutoConfig.from_pretrained(MODEL{revision}).dtype"
