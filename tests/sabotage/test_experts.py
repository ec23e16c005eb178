"""experts: mixtures that are computed in another way than the one that was asked for."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from transformers.integrations.moe import ExpertsInterface, batched_mm_experts_forward, grouped_mm_experts_forward

from tests.sabotage.saboteur import Patch, Which, table, tests_of
from tests.sabotage.small_models import LAYERS, mixtral


def instead(other: Any, where: Which) -> Patch:
    """`other` in the mixtures `where`, counted by layer; None: the model's own loop over experts."""

    @contextmanager
    def broken() -> Iterator[None]:
        original, met = ExpertsInterface.get_interface, list[Any]()

        def get(self: Any, name: str, default: Any) -> Any:
            asked = original(self, name, default)

            def compute(module: Any, *args: Any, **kwargs: Any) -> Any:
                if not any(one is module for one in met):
                    met.append(module)
                layer = next(i for i, one in enumerate(met) if one is module)
                return ((other or default) if where(layer) else asked)(module, *args, **kwargs)

            return compute

        with mock.patch.object(ExpertsInterface, "get_interface", get):
            yield

    return broken


def layers(other: Any) -> dict[str, Patch]:
    return {
        "one layer": instead(other, lambda layer: layer == LAYERS - 1),
        "half of the layers": instead(other, lambda layer: layer % 2 == 0),
        "removed": instead(other, lambda layer: True),
    }


OTHERS = {
    "auto": None,
    "grouped_mm": batched_mm_experts_forward,
    "batched_mm": None,
    "eager": grouped_mm_experts_forward,
}
SABOTEURS = table("experts", {choice: layers(other) for choice, other in OTHERS.items()}, model=mixtral)
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
