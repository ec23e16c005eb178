"""experts: mixtures that are computed in another way than the one that was asked for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import torch
import transformers.models.gpt_oss.modeling_gpt_oss as gpt_oss_code
import transformers.models.mixtral.modeling_mixtral as mixtral_code
from transformers import MixtralConfig
from transformers.integrations.moe import (
    ExpertsInterface,
    batched_mm_experts_forward,
    grouped_mm_experts_forward,
)

from tests.sabotage.damage import in_layers
from tests.sabotage.saboteur import Sabotage, Tier, tests_of
from tests.sabotage.small_models import LAYERS, mixtral

Which = Callable[[int], bool]


def instead(other: Any, where: Which, beside: bool = False) -> Callable[[], AbstractContextManager[None]]:
    """`other` in the mixtures `where`, counted by layer; None: the model's own loop over experts. `beside`: what was
    asked for is computed as well, and thrown away."""

    @contextmanager
    def broken() -> Iterator[None]:
        real, met = ExpertsInterface.get_interface, list[Any]()

        def get(self: Any, name: str, default: Any) -> Any:
            asked = real(self, name, default)

            def compute(module: Any, *rest: Any, **more: Any) -> Any:
                if not any(one is module for one in met):
                    met.append(module)
                layer = next(i for i, one in enumerate(met) if one is module)
                if where(layer) and beside:
                    asked(module, *rest, **more)
                return ((other or default) if where(layer) else asked)(module, *rest, **more)

            return compute

        with mock.patch.object(ExpertsInterface, "get_interface", get):
            yield

    return broken


def fewer_inside(where: Which) -> Callable[[], AbstractContextManager[None]]:
    """What computes the experts `where` takes the first of a token's experts and leaves the others out."""

    @contextmanager
    def broken() -> Iterator[None]:
        real, met = ExpertsInterface.get_interface, list[Any]()

        def get(self: Any, name: str, default: Any) -> Any:
            asked = real(self, name, default)

            def compute(module: Any, hidden: Any, index: Any, weights: Any) -> Any:
                if not any(one is module for one in met):
                    met.append(module)
                layer = next(i for i, one in enumerate(met) if one is module)
                kept = 1 if where(layer) else index.shape[-1]
                return asked(module, hidden, index[:, :kept], weights[:, :kept])

            return compute

        with mock.patch.object(ExpertsInterface, "get_interface", get):
            yield

    return broken


@contextmanager
def every_expert() -> Iterator[None]:
    """All experts compute each token, and those that it was not routed to count nothing: right, and not sparse."""
    real = ExpertsInterface.get_interface

    def get(self: Any, name: str, default: Any) -> Any:
        asked = real(self, name, default)

        def compute(module: Any, hidden: Any, index: Any, weights: Any) -> Any:
            experts = torch.arange(module.num_experts).expand(len(hidden), -1).contiguous()
            all_weights = torch.zeros(experts.shape, dtype=weights.dtype).scatter(1, index, weights)
            return asked(module, hidden, experts, all_weights)

        return compute

    with mock.patch.object(ExpertsInterface, "get_interface", get):
        yield


def always_the_same(code: Any, name: str) -> Callable[[], AbstractContextManager[Any]]:
    """Routers of that class score as ever, and send each token to the first experts, in every pass."""
    kind = getattr(code, name)
    plain = kind.forward

    def forward(self: Any, hidden: Any) -> Any:
        *scores, chosen = plain(self, hidden)
        return *scores, torch.arange(chosen.shape[-1], device=chosen.device).expand_as(chosen).contiguous()

    return lambda: mock.patch.object(kind, "forward", forward)


def _ignored(layer: Any) -> None:
    """Its router's scores go nowhere: each token goes to the first experts with equal shares."""

    def instead(_: Any, given: Any, output: Any) -> Any:
        scores, weights, chosen = output
        chosen = torch.arange(chosen.shape[-1], device=chosen.device).expand_as(chosen).contiguous()
        return scores, torch.full_like(weights, 1 / weights.shape[-1]), chosen

    layer.mlp.gate.register_forward_hook(instead)


def _one_for_two(layer: Any) -> None:
    """Its router chooses one expert for each token."""
    layer.mlp.gate.top_k = 1


@contextmanager
def one_in_the_config() -> Iterator[None]:
    """The model is built for one expert for each token, and its config says so too."""
    plain = MixtralConfig.__init__

    def begin(self: Any, *args: Any, **more: Any) -> None:
        plain(self, *args, **more)
        self.num_experts_per_tok = 1

    with mock.patch.object(MixtralConfig, "__init__", begin):
        yield


MANNERS: list[tuple[str, Which, Tier]] = [
    ("one layer", lambda layer: layer == LAYERS - 1, "slow"),
    ("half of the layers", lambda layer: layer % 2 == 0, "full"),
    ("removed", lambda layer: True, "full"),
]
OTHERS = [
    ("auto", None),
    ("grouped_mm", batched_mm_experts_forward),
    ("batched_mm", None),
    ("eager", grouped_mm_experts_forward),
]
SABOTEURS = [
    Sabotage("experts", choice, manner, instead(other, where), model=mixtral, tier=tier)
    for choice, other in OTHERS
    for manner, where, tier in MANNERS
] + [
    Sabotage(
        "experts", choice, "all, computed and thrown away", instead(other, lambda layer: True, True), model=mixtral,
        tier="full",
    )
    for choice, other in OTHERS
] + [
    Sabotage("experts", choice, f"one expert for two in {share} of the layers", in_layers(share, _one_for_two),
             model=mixtral, turns_to=("partial",), tier="full")
    for choice, _ in OTHERS
    for share in ("one", "half", "all")
] + [
    Sabotage("experts", choice, "every expert computes each token", every_expert, model=mixtral, turns_to=("partial",),
             tier="slow" if choice == "grouped_mm" else "full")
    for choice, _ in OTHERS
] + [
    Sabotage("experts", choice, "one expert for two behind the router of one layer",
             fewer_inside(lambda layer: layer == 1), model=mixtral, turns_to=("partial",), tier="full")
    for choice, _ in OTHERS
] + [
    Sabotage("experts", choice, "all routers choose the same", always_the_same(mixtral_code, "MixtralTopKRouter"),
             model=mixtral, turns_to=("partial",), tier="full")
    for choice, _ in OTHERS
] + [
    Sabotage("experts", choice, f"what routers of {share} of the layers find is ignored", in_layers(share, _ignored),
             model=mixtral, turns_to=("partial",), tier="full")
    for choice, share in (("auto", "one"), ("eager", "half"))
] + [
    Sabotage("experts", "auto", "all routers choose the same", always_the_same(gpt_oss_code, "GptOssTopKRouter"),
             turns_to=("partial",), tier="full"),
    Sabotage("experts", "auto", "all routers choose the same, by the custom loop",
             always_the_same(gpt_oss_code, "GptOssTopKRouter"), (("cache", "static"), ("loop", "own")),
             turns_to=("partial",), tier="full"),
    Sabotage("experts", "auto", "one expert for two in the config", one_in_the_config, model=mixtral,
             turns_to=("partial",), tier="full"),
    Sabotage("experts", "batched_mm", "one expert for two in a batch", in_layers("one", _one_for_two), model=mixtral,
             work=(("batch_size", 3),), turns_to=("partial",), tier="full"),
    Sabotage("experts", "auto", "one expert for two and draft tokens", in_layers("one", _one_for_two),
             (("speculation", "prompt-lookup"),), mixtral, turns_to=("partial",), tier="full"),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
