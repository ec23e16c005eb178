"""Where a visit begins."""

from types import SimpleNamespace
from typing import Any

import pytest

from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.ui.page import first_page
from tokendyno.ui.visitor import KEY


@pytest.mark.parametrize(
    ("device", "newest", "asked", "page"),
    [
        ("cpu", None, {}, "stories"),
        ("cuda", None, {}, "stories"),
        ("cpu", "run1", {}, "compare"),
        ("cpu", None, {"run": "run1"}, "compare"),
        ("cpu", None, {"model": "gpt2"}, "compare"),
    ],
)
def test_a_visitor_without_a_run_begins_with_a_story(
    device: str, newest: str | None, asked: dict[str, str], page: str
) -> None:
    bench: Any = SimpleNamespace(
        machine=lambda: SimpleNamespace(device=device), runs=SimpleNamespace(newest=lambda owner: newest)
    )
    request: Any = SimpleNamespace(query_params=asked, scope={KEY: LOCAL_USER})
    assert first_page(bench, request) == page
