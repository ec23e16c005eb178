"""Sabotage of quantizations, caches and ways of loading that only a GPU can run."""

import contextlib
import functools
import itertools
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from tests.sabotage.damage import beside, in_layers, unpack
from tests.sabotage.saboteur import Sabotage, tests_of

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
SHAPE, LAYERS = "random:Qwen3-0.6B", 28
PACKED = "bnb-int8", "bnb-nf4", "bnb-fp4-double", "torchao-int8", "torchao-fp8", "torchao-int4", "quanto-int8"
STAYING = {"one": frozenset({3}), "half": frozenset(range(0, LAYERS, 2)), "all": frozenset(range(LAYERS))}


@functools.cache
def checkpoint() -> str:
    """Folder of the embedded model's weights in float32: a checkpoint whose files are read."""
    import shutil

    from backend.paths import PRESETS

    folder = f"{tempfile.mkdtemp(prefix='checkpoint-')}/pocket"
    shutil.copytree(PRESETS / "models" / "pocket", folder)
    return folder


def without_warm_up() -> Any:
    """transformers reserves nothing before it reads."""
    return mock.patch("transformers.modeling_utils.caching_allocator_warmup", lambda *args, **more: None)


def placed_at_once() -> Any:
    """Weights go to the GPU as they are read, whatever was planned."""
    return mock.patch("backend.worker.load.loader.device_keywords", lambda plan: {"device_map": plan.device})


@contextlib.contextmanager
def never_offloaded() -> Iterator[None]:
    """The cache stays on the GPU."""
    from transformers import DynamicCache, StaticCache

    with contextlib.ExitStack() as stack:
        for kind in (DynamicCache, StaticCache):
            plain = kind.__init__

            def init(self: Any, *args: Any, plain: Any = plain, **more: Any) -> None:
                more.pop("offloading", None)
                plain(self, *args, **more)

            stack.enter_context(mock.patch.object(kind, "__init__", init))
        yield


@contextlib.contextmanager
def _staying(layers: frozenset[int]) -> Iterator[None]:
    """These layers are never copied to host memory, although the cache asks them to."""
    from transformers.cache_utils import CacheLayerMixin

    plain, made = CacheLayerMixin.offload, itertools.count()

    def offload(self: Any) -> None:
        if not hasattr(self, "place"):
            self.place = next(made) % LAYERS
        if self.place not in layers:
            plain(self)

    with mock.patch.object(CacheLayerMixin, "offload", offload):
        yield


def _of_the_same_shape(experts: Any) -> Any:
    """Dense experts."""
    import torch
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts

    with torch.device("cuda"):
        dense = GptOssExperts(experts.config).to(torch.bfloat16)
    for weight in dense.parameters():
        torch.nn.init.normal_(weight, std=0.02)
    for weight in (dense.gate_up_proj, dense.down_proj):  # by rows, as our kernels read them
        weight.data = weight.data.transpose(1, 2).contiguous().transpose(1, 2)
    return dense


def _dense_experts(layer: Any) -> None:
    """Replace packed experts by dense ones of the same shape."""
    layer.mlp.experts = _of_the_same_shape(layer.mlp.experts)


def _experts_beside(layer: Any) -> None:
    """Packed experts stay where they are; dense ones beside them compute."""
    layer.mlp.experts.forward = _of_the_same_shape(layer.mlp.experts).forward


SABOTEURS = [
    Sabotage("quantization", "mxfp4", f"experts of {share} of the layers dense", in_layers(share, _dense_experts),
             beside=(("experts", "triton"),), model="random:pocket",
             turns_to=("failed",) if share == "all" else ("partial",), tier="gpu")
    for share in ("one", "half", "all")
] + [
    Sabotage("quantization", "mxfp4", f"dense copies of {share} compute", in_layers(share, _experts_beside),
             beside=(("experts", "triton"),), model="random:pocket", turns_to=("partial",), tier="gpu")
    for share in ("one", "all")
] + [
    Sabotage("quantization", choice, f"dense copies of {share} multiply", in_layers(share, beside), model=SHAPE,
             turns_to=("partial",), tier="gpu")
    for choice in PACKED
    for share in ("one", "all")
] + [
    Sabotage("quantization", choice, f"{share} of the layers dense", in_layers(share, unpack), model=SHAPE,
             turns_to=("failed",) if share == "all" else ("partial",), tier="gpu")
    for choice in ("torchao-int4", "bnb-nf4-double", "bnb-fp4-double")
    for share in ("one", "half", "all")
] + [
    Sabotage("cache", choice, "never offloaded", never_offloaded, model=SHAPE, turns_to=("failed",), tier="gpu")
    for choice in ("offloaded", "offloaded_static")
] + [
    Sabotage("cache", choice, f"{share} of the layers stay on the GPU", functools.partial(_staying, layers),
             model=SHAPE, turns_to=("failed",) if share == "all" else ("partial",), tier="gpu")
    for choice in ("offloaded", "offloaded_static")
    for share, layers in STAYING.items()
] + [
    Sabotage("loading", "device_map", "without the warm-up", without_warm_up, model=checkpoint, turns_to=("failed",),
             tier="gpu"),
    Sabotage("loading", "plain", "placed as it is read", placed_at_once, model=checkpoint, turns_to=("failed",),
             tier="gpu"),
]  # fmt: skip
REASONS = {
    (
        "loading",
        "no-warmup",
    ): "It is the absence of a step: device_map without its warm-up turns into it.",
}
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
