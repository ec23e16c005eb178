"""projections: groups that are computed as separate products all the same."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

from backend.worker.load import loader
from backend.worker.patch import projections as patch
from tests.backend.optimizations.axes.test_projections import apart
from tests.sabotage.saboteur import Sabotage, tests_of
from tests.sabotage.small_models import llama


@contextmanager
def unfused() -> Iterator[None]:
    with mock.patch.object(loader, "fuse", lambda model: 0):
        yield


def in_parts(where: Callable[[int], bool]) -> Callable[[], AbstractContextManager[None]]:
    """The groups `where` keep their fused weight, and multiply with each part of it."""

    @contextmanager
    def broken() -> Iterator[None]:
        real, made = patch.Fused.forward, list[Any]()

        def forward(self: Any, x: Any) -> Any:
            if not any(one is self for one in made):
                made.append(self)
            index = next(i for i, one in enumerate(made) if one is self)
            return apart(self, x) if where(index) else real(self, x)

        with mock.patch.object(patch.Fused, "forward", forward):
            yield

    return broken


@contextmanager
def thrown_away() -> Iterator[None]:
    """The fused product is computed, and so are those with its parts, which alone are used."""
    real = patch.Fused.forward

    def forward(self: Any, x: Any) -> Any:
        real(self, x)
        return apart(self, x)

    with mock.patch.object(patch.Fused, "forward", forward):
        yield


@contextmanager
def each_slice_anew() -> Iterator[None]:
    """What the fused product gave for a slice is not used: the whole product is made again for it."""
    fused_forward, slice_forward = patch.Fused.forward, patch.Slice.forward
    made = dict[int, Any]()

    def forward(self: Any, x: Any) -> Any:
        made[id(self.later)] = self
        return fused_forward(self, x)

    def take(self: Any, x: Any) -> Any:
        made[id(self.later)].whole(x)
        return slice_forward(self, x)

    with mock.patch.object(patch.Fused, "forward", forward), mock.patch.object(patch.Slice, "forward", take):
        yield


SABOTEURS = [
    Sabotage("projections", "fused", "in parts", in_parts(lambda i: True), model=llama),
    Sabotage("projections", "fused", "half in parts", in_parts(lambda i: i % 2 == 0), model=llama, tier="full"),
    Sabotage("projections", "fused", "one in parts", in_parts(lambda i: i == 5), model=llama, tier="full"),
    Sabotage("projections", "fused", "in parts, after a fused product", thrown_away, model=llama, tier="full"),
    Sabotage("projections", "fused", "each slice makes the product again", each_slice_anew, model=llama, tier="full"),
    Sabotage("projections", "fused", "removed", unfused, model=llama, tier="full"),
    Sabotage(
        "projections", "fused", "packed, one in parts", in_parts(lambda i: i == 0),
        (("quantization", "torchao-int8"),), llama, tier="full",
    ),
]  # fmt: skip
test_sabotage_turns_the_row, test_the_control_is_verified = tests_of(SABOTEURS)
