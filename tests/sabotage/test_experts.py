"""experts: mixtures that are computed in another way than the one that was asked for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from transformers.integrations.moe import (
    ExpertsInterface,
    batched_mm_experts_forward,
    grouped_mm_experts_forward,
)

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
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
