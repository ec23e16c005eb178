"""Puts kernels in the place of a model's layers: from the Hub as transformers maps them, or from a local folder."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernels import LocalLayerRepository, Mode, kernelize, replace_kernel_forward_from_hub, use_kernel_mapping
from kernels.layer.layer import KernelizeFallback, LayerRepository
from torch import nn
from transformers.integrations.hub_kernels import get_kernel_mapping_transformers

from backend import kernel_folders
from backend.errors import InputError
from backend.hardware import hub_offline
from backend.plan import LoadPlan
from backend.worker import ending

_STEP_END = "StepEnd"  # of our own loop: the one layer that no model has


def apply(model: Any, plan: LoadPlan) -> None:
    """Replace what the plan asks for, after taking back what an earlier model of this process left behind.

    Raises InputError where there is nothing to take kernels from, and what `kernels` raises where one does not load.
    """
    reset(model)
    if plan.kernels == "off":
        return
    mode = Mode.INFERENCE | Mode.TORCH_COMPILE if plan.kernels_compiled else Mode.INFERENCE
    if plan.kernels == "local":
        mapping = local_mapping(Path(plan.kernels_path), plan.device)
        if _STEP_END in mapping and model.can_generate():
            replace_kernel_forward_from_hub(ending.StepEnd, _STEP_END)
            model.add_module(ending.NAME, ending.StepEnd())
    else:
        mapping = hub_mapping(points(model), plan.device)
    logging.getLogger("kernels.layer.layer").setLevel(logging.ERROR)  # it warns of each layer that has no kernel
    with use_kernel_mapping(mapping, inherit_mapping=False):
        kernelize(model, mode=mode, device=plan.device, use_fallback=KernelizeFallback.ALL)


def reset(model: Any) -> None:
    """Functions that stand for layers, such as the rotary embedding's, are shared by all models of a process."""
    for module in model.modules():
        for function in getattr(module, "_kernel_funcs", {}).values():
            function.__dict__.pop("forward", None)


def points(model: Any) -> set[str]:
    """Names of the layers that a kernel may stand in for."""
    modules = list(model.modules())
    functions = [f for module in modules for f in getattr(module, "_kernel_funcs", {}).values()]
    return {type(m).kernel_layer_name for m in (*modules, *functions) if hasattr(type(m), "kernel_layer_name")}


def local_mapping(folder: Path, device: str) -> dict[str, Any]:
    """Layer -> local kernel, by the layer's own name or by the name that the Hub's kernel for it has.

    A class named as one of torch.nn (Linear) stands in for that, subclasses apart: quantized ones compute differently.
    """
    known = get_kernel_mapping_transformers()
    aliases = {repo.layer_name: layer for layer, by_device in known.items() for _, _, repo in _repositories(by_device)}
    found: dict[str, Any] = {}
    for name, package in kernel_folders.layers(folder, device).items():
        layer = name if name in known else aliases.get(name, name)
        plain = getattr(nn, layer, None)
        if isinstance(plain, type) and issubclass(plain, nn.Module) and not hasattr(plain, "kernel_layer_name"):
            _extend(plain)
        found[layer] = {device: LocalLayerRepository(repo_path=package, layer_name=name)}
    if not found:
        raise InputError(f"The kernel folder {folder} has no layers for {device}. Name another with TOKENDYNO_KERNELS.")
    return found


def _extend(plain: type) -> None:
    replace_kernel_forward_from_hub(plain, plain.__name__, lambda module: type(module) is plain)


def hub_mapping(layers: Iterable[str], device: str) -> dict[str, Any]:
    """transformers' own mapping for these layers, of the trusted publisher only.

    A repository that LOCAL_KERNELS names is taken from its folder: left to itself, `kernels` 0.17 asks the Hub for the
    revision of a layer's repository first. Offline, what is not at hand is left out.
    """
    known = get_kernel_mapping_transformers()
    folders, near = kernel_folders.overrides(), kernel_folders.at_hand()
    found: dict[str, Any] = {}
    missing: set[str] = set()
    for layer in layers:
        for kind, mode, repo in _repositories(known.get(layer, {})):
            name = repo._repo_id
            if kind != device or not name.startswith(f"{kernel_folders.PUBLISHER}/"):
                continue
            if hub_offline() and name not in near:
                missing.add(name)
                continue
            if name in folders:
                repo = LocalLayerRepository(repo_path=folders[name], layer_name=repo.layer_name)
            found.setdefault(layer, {}).setdefault(device, {})[mode] = repo
    if missing and not found:
        raise InputError(
            f"The Hub is switched off (HF_HUB_OFFLINE), and {', '.join(sorted(missing))} are not in its cache. Name "
            "folders for them in LOCAL_KERNELS, or set kernels=off."
        )
    return found


def _repositories(by_device: dict[Any, Any]) -> Iterable[tuple[str, Any, LayerRepository]]:
    """(device type, mode, repository) of one layer's entry in a mapping."""
    for device, options in by_device.items():
        if isinstance(device, str):  # a Device with properties is for one chip
            for mode, repo in options.items() if isinstance(options, dict) else [(Mode.FALLBACK, options)]:
                yield device, mode, repo
