"""Sabotage of choices that only a GPU can run, and of those that a GPU runs with other operators and kernels."""

import functools
import itertools
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import torch

from tests.sabotage import test_attention, test_dtype, test_experts, test_kernels, test_loop, test_projections
from tests.sabotage.saboteur import SHARES, Patch, in_layers, table, tests_of
from tests.sabotage.small_models import LAYERS, bert
from tests.sabotage.test_batching import CONTINUOUS, REQUESTS, set_up_with
from tests.sabotage.test_compile import COMPILES, OWN, STATIC, eager_layers, one_step_in_three, removed
from tests.sabotage.test_compile import forgotten as forgotten
from tests.sabotage.test_experts import instead
from tests.sabotage.test_quantization import DENSE
from tokendyno.backend.paths import PRESETS

QWEN = "random:Qwen3-0.6B"
REPLAYING, CAPTURED = STATIC | {"compile": "reduce-overhead"}, OWN | {"cuda_graphs": "manual"}
COMPILED = CAPTURED | {"compile": "default"}


@functools.cache
def checkpoint() -> str:
    """Folder of the embedded model's weights: a checkpoint whose files are read."""
    folder = f"{tempfile.mkdtemp(prefix='checkpoint-')}/pocket"
    shutil.copytree(PRESETS / "models" / "pocket", folder)
    return folder


def without_graphs() -> Any:
    """Compiled, in the mode that launches its kernels one by one."""
    plain = torch.compile
    return mock.patch.object(torch, "compile", lambda model, **how: plain(model, **how | {"mode": "default"}))


def steps_by(how: Callable[..., Callable[[], None]]) -> Patch:
    """The custom loop's step: `how` makes what the loop calls of the step and of its replay."""
    from tokendyno.backend.worker.loop.cuda_graph import capture

    return lambda: mock.patch(
        "tokendyno.backend.worker.loop.loop.capture", lambda step, rewind: how(step, capture(step, rewind))
    )


def one_in_three(step: Callable[[], None], replay: Callable[[], None]) -> Callable[[], None]:
    count = itertools.count()
    return lambda: (replay if next(count) % 3 == 0 else step)()


def passes_by_hand(every: int) -> Patch:
    """One in so many of an encoder's captured passes is no replay."""
    from tokendyno.backend.worker.loop.cuda_graph import CapturedPasses

    plain, count = CapturedPasses.__call__, itertools.count()

    def call(self: Any, **inputs: Any) -> Any:
        return self._function(**inputs) if next(count) % every == 0 else plain(self, **inputs)

    return lambda: mock.patch.object(CapturedPasses, "__call__", call)


def never_captured() -> Any:
    from tokendyno.backend.worker.loop.step import Step

    return mock.patch.object(Step, "make_prompts", lambda step, *how: None)


def steps_without_experts() -> Any:
    """Whole layers that leave their experts out: the prompt is computed with them, and no step is."""
    from kernels import get_local_kernel

    from tokendyno.backend.hardware import kernel_packages

    whole = sys.modules[f"{get_local_kernel(kernel_packages.ROUTED).__name__}.decoder_layer"]
    plain = whole.layer

    def without(module: Any, hidden: Any, *more: Any) -> Any:
        with (
            mock.patch.object(whole.experts, "up", lambda codes, unit, *rest: (codes, unit)),
            mock.patch.object(whole.experts, "down", lambda *rest, **kw: rest[7].zero_()),
        ):
            return plain(module, hidden, *more)

    return mock.patch.object(whole, "layer", without)


def stays(share: str) -> Patch:
    """One, half or all of the layers are never copied to host memory, although the cache asks them to."""
    from transformers.cache_utils import CacheLayerMixin

    plain, made, every = CacheLayerMixin.offload, itertools.count(), {"one": 28, "half": 2, "all": 1}[share]

    def offload(self: Any) -> None:
        if not hasattr(self, "place"):
            self.place = next(made)
        if self.place % every != every // 2:  # the first layer is fetched ahead: it may be on the GPU
            plain(self)

    return lambda: mock.patch.object(CacheLayerMixin, "offload", offload)


def densify(layer: Any) -> None:
    """Replace packed experts by dense ones of the same shape."""
    from transformers.models.gpt_oss.modeling_gpt_oss import GptOssExperts

    with torch.device("cuda"):
        dense = GptOssExperts(layer.mlp.experts.config).to(torch.bfloat16)
    for weight in dense.parameters():
        torch.nn.init.normal_(weight, std=0.02)
    for weight in (dense.gate_up_proj, dense.down_proj):  # by rows, as our kernels read them
        weight.data = weight.data.transpose(1, 2).contiguous().transpose(1, 2)
    layer.mlp.experts = dense


def without_warm_up() -> Any:
    """transformers reserves nothing before it reads."""
    return mock.patch("transformers.modeling_utils.caching_allocator_warmup", lambda *args, **more: None)


def placed_at_once() -> Any:
    """Weights go to the GPU as they are read, whatever was planned."""
    return mock.patch("tokendyno.backend.worker.load.loader.device_keywords", lambda plan: {"device_map": plan.device})


AS_ON_A_CPU = [
    replace(one, tier="gpu")
    for module in (test_attention, test_dtype, test_experts, test_kernels, test_loop, test_projections)
    for one in module.SABOTEURS
    if one.manner
    in ("one layer", "half of the layers", "half in parts", "half of the steps", "products may be rounded")
]
"""What a trace shows of a GPU is another matter: operators beside kernels, in half precision or float32."""
NO_GRAPHS = {"nothing is compiled": removed, "without CUDA graphs": without_graphs}
HALF = {"half of the layers are not": eager_layers(lambda layer: layer >= LAYERS // 2)}
NOT_ALL = HALF | {"kernels are launched one by one": without_graphs, "one step in three is": one_step_in_three}
SELDOM = {
    "never replayed": steps_by(lambda step, replay: step),
    "one step in three is replayed": steps_by(one_in_three),
}
ENCODER = {"an encoder: never replayed": passes_by_hand(1), "an encoder: every other pass is": passes_by_hand(2)}
PARTS: dict[str, Callable[[int], bool]] = {
    "one layer": lambda layer: layer == 1,
    "half": lambda layer: layer % 2 == 0,
    "removed": lambda layer: True,
}
WHOLE_LAYERS = OWN | {"projections": "fused", "kernels": "local"}
STAYING = {f"{share} of the layers stay on the GPU": stays(share) for share in SHARES}
DENSE_EXPERTS = {f"experts of {share} of the layers dense": in_layers(share, densify) for share in SHARES}
on_a_gpu = functools.partial(table, tier="gpu")
SABOTEURS = [
    *AS_ON_A_CPU,
    *on_a_gpu("compile", {"reduce-overhead": NO_GRAPHS}, STATIC),
    *on_a_gpu("cuda_graphs", {"compile": NOT_ALL}, REPLAYING),
    *on_a_gpu("cuda_graphs", {"manual": SELDOM}, OWN),
    *on_a_gpu("cuda_graphs", {"manual": ENCODER}, model=bert),
    *on_a_gpu("prefill", {"captured": {"never captured": never_captured}}, CAPTURED),
    *on_a_gpu("prefill", {"compiled": {"never captured": never_captured}}, COMPILED),
    *on_a_gpu("experts", {"triton": {name: instead(None, where) for name, where in PARTS.items()}}, model="pocket"),
    *on_a_gpu("experts", {"triton": {"its steps": steps_without_experts}}, WHOLE_LAYERS, "pocket"),
    *on_a_gpu("quantization", {"mxfp4": DENSE_EXPERTS}, {"experts": "triton"}, "random:pocket"),
    *on_a_gpu("quantization", dict.fromkeys(("torchao-int4", "bnb-nf4-double", "bnb-fp4-double"), DENSE), model=QWEN),
    *on_a_gpu("cache", dict.fromkeys(("offloaded", "offloaded_static"), STAYING), model=QWEN),
    *on_a_gpu("loading", {"device_map": {"without the warm-up": without_warm_up}}, model=checkpoint),
    *on_a_gpu("loading", {"plain": {"placed as it is read": placed_at_once}}, model=checkpoint),
    *on_a_gpu(
        "async_batching", {"on": {"one step after the other": set_up_with(use_async_batching=False)}}, CONTINUOUS,
        "pocket", traffic=REQUESTS,
    ),
    *on_a_gpu(
        "batch_graphs", {"on": {"no graphs": set_up_with(use_cuda_graph=False)}}, CONTINUOUS, "pocket",
        traffic=REQUESTS,
    ),
]  # fmt: skip
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS, *COMPILES)
