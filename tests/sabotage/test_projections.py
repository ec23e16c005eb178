"""projections: groups that are computed as separate products all the same."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from tests.backend.optimizations.axes.test_projections import apart
from tests.sabotage.saboteur import Patch, Which, table, tests_of
from tokendyno.backend.worker.load import loader
from tokendyno.backend.worker.patch import projections as patch


def removed() -> Any:
    return mock.patch.object(loader, "fuse", lambda model: 0)


def in_parts(where: Which) -> Patch:
    """The groups `where` keep their fused weight, and multiply with each part of it."""

    @contextmanager
    def broken() -> Iterator[None]:
        original, made = patch.Fused.forward, list[Any]()

        def forward(self: Any, x: Any) -> Any:
            if not any(module is self for module in made):
                made.append(self)
            index = next(i for i, one in enumerate(made) if one is self)
            return apart(self, x) if where(index) else original(self, x)

        with mock.patch.object(patch.Fused, "forward", forward):
            yield

    return broken


HALF, ALL = in_parts(lambda i: i % 2 == 0), in_parts(lambda i: True)
SABOTEURS = table("projections", {"fused": {"removed": removed, "half in parts": HALF, "in parts": ALL}})
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
