"""The counts that ship in presets/counted.json are those that the counter gives for the catalogue's models.

`python -m tests.backend.models.test_shipped_counts` counts all anew and writes the file.
"""

import json
import re
from typing import Any
from unittest import mock

import msgspec
import pytest

from tokendyno.backend.models import CatalogueEntry, catalogue
from tokendyno.backend.models.counting import SHIPPED, VERSION, Counted, Shipped, config_key, counted_by
from tokendyno.backend.models.families import FAMILIES


def config(entry: CatalogueEntry) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(entry.config)
    return found


COUNTED = [entry for entry in catalogue() if config(entry)["model_type"] not in FAMILIES]


def counted(entry: CatalogueEntry) -> Counted:
    """Whole, however slow the machine is: elsewhere a pass that takes long is left out."""
    from tokendyno.backend.counter import workspace
    from tokendyno.backend.counter.model import count

    with mock.patch.object(workspace, "SECONDS", 60.0):
        return count(config(entry))


def test_every_model_outside_the_table_ships_its_count_and_nothing_else_ships() -> None:
    shipped = msgspec.json.decode(SHIPPED.read_bytes(), type=Shipped)
    assert set(shipped.counted) == {config_key(config(entry)) for entry in COUNTED}
    assert (shipped.version, shipped.transformers) == (VERSION, counted_by())


@pytest.mark.full
@pytest.mark.parametrize("entry", COUNTED, ids=lambda entry: entry.name)
def test_a_shipped_count_is_what_is_counted_here(entry: CatalogueEntry) -> None:
    shipped = msgspec.json.decode(SHIPPED.read_bytes(), type=Shipped)
    assert counted(entry) == shipped.counted[config_key(config(entry))]


def main() -> None:
    found = {config_key(config(entry)): counted(entry) for entry in COUNTED}
    text = msgspec.json.encode(Shipped(VERSION, counted_by(), found)).decode()
    SHIPPED.write_text(re.sub(r'("[0-9a-f]{16}":)', r"\n\1", text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
