"""kernels: layers that keep the model's own code."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tests.sabotage.saboteur import Patch, table, tests_of
from tokendyno.backend.worker.patch import kernels as patch


def taken_out(where: Callable[[int, int], bool]) -> Patch:
    """`where` gets the number of a norm, and of all norms."""

    @contextmanager
    def broken() -> Iterator[None]:
        original = patch.replace_layers

        def replace(model: Any, *args: Any) -> None:
            original(model, *args)
            norms = [
                module for module in model.modules() if getattr(type(module), "kernel_layer_name", "") == "RMSNorm"
            ]
            for i, norm in enumerate(norms):
                if where(i, len(norms)):
                    del norm.forward

        with mock.patch.object(patch, "replace_layers", replace):
            yield

    return broken


LEFT = {
    "one layer": taken_out(lambda i, n: i == n - 1),
    "half of the layers": taken_out(lambda i, n: i % 2 == 0),
    "all but one": taken_out(lambda i, n: i > 0),
    "removed": taken_out(lambda i, n: True),
}
SABOTEURS = table("kernels", {"local": LEFT})
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
