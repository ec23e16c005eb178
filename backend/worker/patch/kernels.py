"""Replaces a model's layers by kernels: of the Hub, as transformers or the user maps them, or of a local folder."""

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernels import (
    LocalLayerRepository,
    Mode,
    get_local_kernel,
    kernelize,
    replace_kernel_forward_from_hub,
    use_kernel_mapping,
)
from kernels.layer.layer import KernelizeFallback, LayerRepository, _get_kernel_layer
from torch import nn
from transformers.integrations.hub_kernels import get_kernel_mapping_transformers
from transformers.pytorch_utils import Conv1D

from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import hub_offline, kernel_packages
from tokendyno.backend.hardware.kernel_packages import local_overrides
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.loop.step import STEP_END, StepEnd
from tokendyno.backend.worker.patch.projections import offer_layers
from tokendyno.backend.worker.patch.shards import GatheredLinear, SummedEmbedding, SummedLinear
from tokendyno.backend.worker.prove.compile_log import first_line


def apply(model: Any, plan: LoadPlan) -> None:
    """Replace layers as planned, after undoing what an earlier model left. InputError where kernels cannot be had."""
    for function in _functions(model):
        function.__dict__.pop("forward", None)
    if plan.kernels == "off":
        return
    if plan.kernels == "mapping":
        mapping = mapping_of(dict(plan.kernels_mapping), plan.device)
    elif plan.kernels == "local":
        packages = kernel_packages.layers(Path(plan.kernels_path), plan.device)
        mapping = local_mapping(packages, plan.device)
        if StepEnd.__name__ in mapping and model.can_generate():
            add_step_end(model)
        add_exchanges()
        if plan.kernels_rows:
            store_by_rows(model)
    else:
        mapping = hub_mapping(replaceable_layers(model), plan.device)
    try:
        replace_layers(model, mapping, plan.device, plan.kernels_compiled)
    except Exception as error:
        if plan.kernels != "mapping":
            raise
        named = ", ".join(f"{layer} by {kernel}" for layer, kernel in plan.kernels_mapping)
        raise InputError(
            f"These kernels cannot be had: {named}. {type(error).__name__}: {first_line(str(error)).rstrip('.')}. Name "
            "others, or set kernels=off."
        ) from error


def replace_layers(model: Any, mapping: dict[str, Any], device: str, compiled: bool) -> None:
    """Let kernels replace the layers of `mapping`. `compiled`: only kernels that torch.compile can trace."""
    mode = Mode.INFERENCE | Mode.TORCH_COMPILE if compiled else Mode.INFERENCE
    logging.getLogger("kernels.layer.layer").setLevel(logging.ERROR)  # it warns about each layer without a kernel
    with use_kernel_mapping(mapping, inherit_mapping=False):
        kernelize(model, mode=mode, device=device, use_fallback=KernelizeFallback.ALL)


def _functions(model: Any) -> list[Any]:
    """Functions that act as layers: all models of a process share them."""
    return [function for module in model.modules() for function in getattr(module, "_kernel_funcs", {}).values()]


def replaceable_layers(model: Any) -> set[str]:
    layers = map(type, (*model.modules(), *_functions(model)))
    return {layer.kernel_layer_name for layer in layers if hasattr(layer, "kernel_layer_name")}


def local_mapping(packages: Mapping[str, str | Path], device: str) -> dict[str, Any]:
    """Layer -> local kernel. `packages`: kernel class -> folder of its package. A class has the name of the layer that
    it replaces, or of the Hub's kernel for that layer; with a name of torch.nn (Linear) it replaces exactly that class:
    quantized subclasses compute differently."""
    mapped = get_kernel_mapping_transformers()
    aliases = {repo.layer_name: layer for layer, by_device in mapped.items() for _, _, repo in _repositories(by_device)}
    mapping: dict[str, Any] = {}
    for name, package in packages.items():
        layer = name if name in mapped else aliases.get(name, name)
        if hasattr(nn, layer) and layer != "RMSNorm":  # its epsilon has another name than in the layer that is replaced
            _make_replaceable(getattr(nn, layer))
        mapping[layer] = {device: LayerOfDevice(Path(package), name, device)}
    return mapping


def mapping_of(named: Mapping[str, str], device: str) -> dict[str, Any]:
    """Layer -> kernel, as `kernels` takes it. `named`: layer -> org/name:Layer or org/name@revision:Layer, any of the
    Hub; a repository that LOCAL_KERNELS names is read from its folder."""
    folders, mapping = local_overrides(), dict[str, Any]()
    for layer, text in named.items():
        if layer == "Linear":
            _make_replaceable(nn.Linear)
        name, _, kernel = text.partition(":")
        repo, _, revision = name.partition("@")
        version = {"revision": revision} if revision else {"version": 1}
        mapping[layer] = {
            device: LayerOfDevice(folders[repo], kernel, device)
            if repo in folders
            else LayerRepository(repo, layer_name=kernel, trust_remote_code=True, **version)
        }
    return mapping


class LayerOfDevice(LocalLayerRepository):  # type: ignore[misc]
    """A layer of a local package, from the build for the model's device: by itself, `kernels` takes the build for CUDA
    wherever torch was compiled for it, even without a GPU (0.17: backends.py, _backend)."""

    def __init__(self, repo_path: Path, layer_name: str, device: str) -> None:
        super().__init__(repo_path=repo_path, layer_name=layer_name)
        self._backend = "cpu" if device == "cpu" else None

    def load(self) -> Any:
        return _get_kernel_layer(self, get_local_kernel(self._repo_path, backend=self._backend))


def _make_replaceable(layer_class: type) -> None:
    if not hasattr(layer_class, "kernel_layer_name"):
        replace_kernel_forward_from_hub(layer_class, layer_class.__name__, lambda module: type(module) is layer_class)


def add_step_end(model: Any) -> None:
    """Let a kernel replace the end of the custom decode loop's step, which is no layer of a model."""
    replace_kernel_forward_from_hub(StepEnd, StepEnd.__name__)
    model.add_module(STEP_END, StepEnd())


def add_exchanges() -> None:
    """Let kernels replace the layers in which ranks exchange their parts."""
    for layer in (SummedLinear, SummedEmbedding, GatheredLinear):
        replace_kernel_forward_from_hub(layer, layer.__name__)


def hub_mapping(layers: Iterable[str], device: str) -> dict[str, Any]:
    """transformers' own mapping for these layers, restricted to the trusted publisher.

    A repository that LOCAL_KERNELS names is read from its folder: by itself, `kernels` 0.17 asks the Hub for the
    repository's revision first. Offline, what is not cached is left out.
    """
    mapped = get_kernel_mapping_transformers()
    folders, cached = local_overrides(), kernel_packages.offline_repos()
    mapping: dict[str, Any] = {}
    for layer in layers:
        for kind, mode, repo in _repositories(mapped.get(layer, {})):
            name = repo._repo_id
            trusted = name.startswith(f"{kernel_packages.PUBLISHER}/")
            if kind != device or not trusted or (hub_offline() and name not in cached):
                continue
            if name in folders:
                repo = LayerOfDevice(folders[name], repo.layer_name, device)
            mapping.setdefault(layer, {}).setdefault(device, {})[mode] = repo
    return mapping


def _repositories(by_device: dict[Any, Any]) -> Iterable[tuple[str, Any, LayerRepository]]:
    """(device type, mode, repository) of one layer's entry in a mapping."""
    for device, options in by_device.items():
        if isinstance(device, str):  # else a Device, for one chip only
            for mode, repo in options.items() if isinstance(options, dict) else [(Mode.FALLBACK, options)]:
                yield device, mode, repo


# --- GPT-2 ---------------------------------------------------------------------------------------

# Its q, k and v are one matrix from the start. Kernels that replace a whole layer read it by rows.


def store_by_rows(model: Any) -> None:
    """Store each Conv1D by rows, as kernels read a matrix, in its own memory; its shape stays (in, out). Then kernels
    may replace such layers."""
    for module in model.modules():
        if type(module) is Conv1D and module.weight.is_contiguous():
            rows = module.weight.data.t().contiguous()
            module.weight.data = module.weight.data.view(rows.shape).copy_(rows).t()
    for block_class in {type(module) for module in model.modules() if type(module).__name__ == "GPT2Block"}:
        replace_kernel_forward_from_hub(block_class, "DecoderLayerOfGPT2", _is_stored)
    offer_layers(model)


def _is_stored(block: Any) -> bool:
    """Whether kernels may replace this layer: dense, stored by rows, with an activation that they compute."""
    config, attention = block.attn.config, block.attn.c_attn
    stored = type(attention) is Conv1D and not attention.weight.is_contiguous()
    computed = config.activation_function in ("gelu_new", "gelu_pytorch_tanh")
    return stored and computed and not config.add_cross_attention
