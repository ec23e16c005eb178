"""Sabotage of choices that only a GPU can run, and of those that a GPU runs with other operators and kernels."""

import itertools
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from unittest import mock

import pytest

from tests.sabotage import test_attention, test_dtype, test_experts, test_kernels, test_loop, test_projections
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import LAYERS, bert, llama
from tests.sabotage.test_compile import (
    OWN,
    STATIC,
    eager_layers,
    forgotten,  # noqa: F401
    one_step_in_three,
    removed,
)
from tests.sabotage.test_experts import instead

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]
WHOLE = (*OWN, ("projections", "fused"), ("kernels", "local"))
COMPILED = (*OWN, ("cuda_graphs", "manual"), ("compile", "default"))
REPLAYING = (*STATIC, ("compile", "reduce-overhead"))


def without_graphs() -> Any:
    """Compiled, in the mode that launches its kernels one by one."""
    import torch

    plain = torch.compile
    return mock.patch.object(torch, "compile", lambda model, **how: plain(model, **how | {"mode": "default"}))


def captured(how: Callable[[Callable[[], None], Callable[[], None]], Callable[[], None]]) -> Any:
    """The custom loop's step: `how` makes what the loop calls of the step and of its replay."""
    from backend.worker.loop.cuda_graph import capture

    return mock.patch("backend.worker.loop.loop.capture", lambda step, rewind: how(step, capture(step, rewind)))


def never_replayed() -> Any:
    return captured(lambda step, replay: step)


def replayed_once_in_three() -> Any:
    def alternating(step: Callable[[], None], replay: Callable[[], None]) -> Callable[[], None]:
        count = itertools.count()
        return lambda: (replay if next(count) % 3 == 0 else step)()

    return captured(alternating)


def passes_by(call: Callable[[Any, dict[str, Any]], Any]) -> Any:
    """An encoder's captured passes: `call` makes a pass of the captured ones and its inputs."""
    from backend.worker.loop.passes import CapturedPasses

    plain = CapturedPasses.__call__

    class Captured:
        """What `call` is given."""

        def __init__(self, captured: Any) -> None:
            self.model = captured._function
            self.replay = lambda **inputs: plain(captured, **inputs)

    return mock.patch.object(CapturedPasses, "__call__", lambda self, **inputs: call(Captured(self), inputs))


def in_turns(captured: Any, inputs: dict[str, Any], count: Any = itertools.count()) -> Any:  # noqa: B008
    return (captured.replay if next(count) % 2 else captured.model)(**inputs)


def once_more_by_hand(captured: Any, inputs: dict[str, Any]) -> Any:
    captured.replay(**inputs)
    return captured.model(**inputs)


def another_text(captured: Any, inputs: dict[str, Any]) -> Any:
    return captured.replay(**{name: one.flip(1) for name, one in inputs.items()})


def first_half_left_out(captured: Any, inputs: dict[str, Any]) -> Any:
    """Of the layers: their graph is shorter."""
    layers = captured.model.encoder.layer
    with mock.patch.object(captured.model.encoder, "layer", layers[len(layers) // 2 :]):
        return captured.replay(**inputs)


def never_captured() -> Any:
    from backend.worker.loop.step import Step

    return mock.patch.object(Step, "make_prompts", lambda step, *how: None)


def half_of_it(captured: Any, inputs: dict[str, Any]) -> Any:
    return captured.replay(**{name: one[:, : one.shape[1] // 2] for name, one in inputs.items()})


def _graphs(choice: str, manner: str, patch: Any, beside: tuple[tuple[str, str], ...]) -> Sabotage:
    return Sabotage("cuda_graphs", choice, manner, patch, beside, llama, tier="gpu")


def steps_without_it() -> Any:
    """Whole layers that leave their experts out: the prompt is computed with them, and no step is."""
    from kernels import get_local_kernel

    from backend.hardware import kernel_packages

    ops = sys.modules[f"{get_local_kernel(kernel_packages.ROUTED).__name__}.ops"]
    plain = ops.layer

    def without(module: Any, hidden: Any, *more: Any) -> Any:
        with (
            mock.patch.object(ops.experts, "up", lambda codes, unit, *rest: (codes, unit)),
            mock.patch.object(ops.experts, "down", lambda *rest, **kw: rest[8].zero_()),
        ):
            return plain(module, hidden, *more)

    return mock.patch.object(ops, "layer", without)


AS_ON_A_CPU = [
    replace(one, tier="gpu")
    for module in (test_attention, test_dtype, test_experts, test_kernels, test_loop, test_projections)
    for one in module.SABOTEURS
    if one.manner in ("half of the layers", "one layer", "half in parts", "in the measured run alone")
    or one.manner.endswith(("hollow", "one thrown away", "are rounded", "is left out", "half are left out"))
    or one.manner.endswith(("in one layer are thrown away", "all routers choose the same", "rounded to 8 bits"))
]
"""What a trace shows of a GPU is another matter: operators beside kernels, in half precision or float32."""

SABOTEURS: list[Sabotage] = [
    *AS_ON_A_CPU,
    Sabotage("compile", "reduce-overhead", "nothing is compiled", removed, STATIC, llama, tier="gpu"),
    Sabotage("compile", "reduce-overhead", "without CUDA graphs", without_graphs, STATIC, llama, tier="gpu"),
    _graphs("compile", "kernels are launched one by one", without_graphs, REPLAYING),
    _graphs("compile", "half of the layers are not", lambda: eager_layers(lambda n: n >= LAYERS // 2), REPLAYING),
    _graphs("compile", "one step in three is", one_step_in_three, REPLAYING),
    _graphs("manual", "captured, and never replayed", never_replayed, OWN),
    _graphs("manual", "one step in three is replayed", replayed_once_in_three, OWN),
    *(
        Sabotage("cuda_graphs", "manual", f"an encoder: {manner}", partial(passes_by, call), (), bert, tier="gpu")
        for manner, call in (
            ("never replayed", lambda captured, inputs: captured.model(**inputs)),
            ("every other pass is", in_turns),
            ("replayed, and computed once more", once_more_by_hand),
            ("another text", another_text),
            ("half of the layers are left out", first_half_left_out),
        )
    ),
    *(
        Sabotage("prefill", "captured", manner, patch, (*OWN, ("cuda_graphs", "manual")), llama, tier="gpu")
        for manner, patch in (
            ("never captured", never_captured),
            ("read by hand", partial(passes_by, lambda captured, inputs: captured.model(**inputs))),
            ("read once more by hand", partial(passes_by, once_more_by_hand)),
            ("another text", partial(passes_by, another_text)),
            ("half of it", partial(passes_by, half_of_it)),
        )
    ),
    Sabotage("prefill", "compiled", "never captured", never_captured, COMPILED, llama, tier="gpu"),
    Sabotage("experts", "triton", "one layer", instead(None, lambda layer: layer == 1), tier="gpu"),
    Sabotage("experts", "triton", "half of the layers", instead(None, lambda layer: layer % 2 == 0), tier="gpu"),
    Sabotage("experts", "triton", "removed", instead(None, lambda layer: True), tier="gpu"),
    Sabotage("experts", "triton", "its steps", steps_without_it, WHOLE, tier="gpu"),
]
_TUNED = "Broken as reduce-overhead is, and compiling with it takes minutes of a GPU."
REASONS: dict[tuple[str, str], str] = {
    ("compile", "max-autotune"): _TUNED,
    ("compile", "max-autotune-no-cudagraphs"): _TUNED,
}
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
