"""kernels: layers that keep the model's own code, whoever owns the forward."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FunctionType, MethodType
from typing import Any
from unittest import mock

from backend.worker.patch import kernels as patch
from tests.sabotage.saboteur import Sabotage, tests_of

Which = Callable[[int, int], bool]


def own_code(module: Any, hidden_states: Any) -> Any:
    """A kernel that calls what it should replace."""
    return type(module).forward(module, hidden_states)


def taken_out(module: Any) -> None:
    del module.forward


def hollow(module: Any) -> None:
    """A forward that belongs to the kernel's package by its name, and computes nothing itself."""
    fake = FunctionType(own_code.__code__, own_code.__globals__)
    fake.__module__ = module.forward.__func__.__module__
    module.forward = MethodType(fake, module)


def twice(module: Any) -> None:
    """Computes with its kernel, and once more for another one."""
    plain = module.forward.__func__

    def forward(self: Any, hidden_states: Any) -> Any:
        plain(self, hidden_states)
        return plain(self, hidden_states)

    forward.__module__ = plain.__module__
    module.forward = MethodType(forward, module)


def thrown_away(module: Any) -> None:
    """Computes with its kernel, and then with the model's own code, whose result is used."""
    plain = module.forward.__func__

    def forward(self: Any, hidden_states: Any) -> Any:
        plain(self, hidden_states)
        return type(self).forward(self, hidden_states)

    forward.__module__ = plain.__module__
    module.forward = MethodType(forward, module)


@contextmanager
def one_for_another(where: Which) -> Iterator[None]:
    """Every second norm `where` computes twice, and its neighbour with the model's own code: the sum stays."""
    with (
        broken(twice, lambda i, n: where(i, n) and i % 2 == 0),
        broken(hollow, lambda i, n: where(i, n) and i % 2 == 1),
    ):
        yield


@contextmanager
def broken(how: Callable[[Any], None], where: Which) -> Iterator[None]:
    real = patch.replace_layers

    def replace(model: Any, *rest: Any) -> None:
        real(model, *rest)
        replaced = [module for module in model.modules() if getattr(type(module), "kernel_layer_name", "") == "RMSNorm"]
        for i, module in enumerate(replaced):
            if where(i, len(replaced)):
                how(module)

    with mock.patch.object(patch, "replace_layers", replace):
        yield


def breaking(how: Callable[[Any], None], where: Which) -> Callable[[], AbstractContextManager[None]]:
    return lambda: broken(how, where)


SABOTEURS = [
    Sabotage("kernels", "local", "a forward that calls the model's own code", breaking(hollow, lambda i, n: True)),
    Sabotage("kernels", "local", "all but one", breaking(taken_out, lambda i, n: i > 0), tier="full"),
    Sabotage("kernels", "local", "one layer", breaking(taken_out, lambda i, n: i == n - 1), tier="full"),
    Sabotage("kernels", "local", "half of the layers", breaking(taken_out, lambda i, n: i % 2 == 0), tier="full"),
    Sabotage("kernels", "local", "half of them hollow", breaking(hollow, lambda i, n: i % 2 == 0), tier="full"),
    Sabotage("kernels", "local", "one hollow", breaking(hollow, lambda i, n: i == 0), tier="full"),
    Sabotage("kernels", "local", "one twice and its neighbour hollow", lambda: one_for_another(lambda i, n: i < 2),
             turns_to=("partial",), tier="full"),
    Sabotage("kernels", "local", "half twice and half hollow", lambda: one_for_another(lambda i, n: i < n // 2 * 2),
             turns_to=("partial",), tier="full"),
    Sabotage("kernels", "local", "one thrown away", breaking(thrown_away, lambda i, n: i == 1), turns_to=("partial",),
             tier="full"),
    Sabotage("kernels", "local", "half thrown away", breaking(thrown_away, lambda i, n: i % 2 == 0),
             turns_to=("partial",), tier="full"),
    Sabotage("kernels", "local", "removed", breaking(taken_out, lambda i, n: True), tier="full"),
]  # fmt: skip
REASONS = {
    ("kernels", "hub"): "It downloads binaries from the Hub, which no machine of the tests reaches; "
    "`tests/backend/worker/patch/test_kernels.py` loads one of its repositories from a folder.",
}
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
