"""projections: groups that are not fused."""

from typing import Any
from unittest import mock

from tests.sabotage.saboteur import table, tests_of
from tokendyno.backend.worker.load import loader
from tokendyno.backend.worker.patch.projections import fuse


def removed() -> Any:
    return mock.patch.object(loader, "fuse", lambda model: 0)


def in_half_of_the_layers() -> Any:
    return mock.patch.object(loader, "fuse", lambda model: sum(map(fuse, model.model.layers[::2])))


SABOTEURS = table("projections", {"fused": {"removed": removed, "in half of the layers": in_half_of_the_layers}})
test_sabotage_turns_a_row, test_the_control_is_verified = tests_of(SABOTEURS)
