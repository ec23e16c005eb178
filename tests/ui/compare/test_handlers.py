"""What the Compare page shows when it is opened, over a history that holds runs: handlers of the real page."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.runs.store import Store
from tokendyno.ui.page import build
from tokendyno.ui.visitor import KEY


@pytest.fixture(scope="module")
def attach(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., dict[str, Any]]]:
    """Opens the page at an address; returns the new values by the ids of their components. The newest run was measured,
    five pairs in batches of 4."""
    history = tmp_path_factory.mktemp("opening") / "history.sqlite"
    store, first = Store(history), created("measured")
    work = replace(first.request.workload, prompt="Asked elsewhere", repeats=5, batch_size=4)
    first = msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, workload=work))
    for record in (first, *arm_records("A", 5), *arm_records("B", 5), ended()):
        store.add("measured", record)
    store.close()
    bench = open_bench(history, None, LIMITS["local"], "subprocess")
    handlers = [one.fn for one in build(bench).fns.values() if one.fn]
    (opened,) = [fn for fn in handlers if getattr(inspect.unwrap(fn), "__qualname__", "") == "Handlers.attach"]

    def ask(**query: str) -> dict[str, Any]:
        updates = opened(SimpleNamespace(query_params=query, scope={KEY: LOCAL_USER}))
        return {part.elem_id: value for part, value in updates.items()}

    yield ask
    bench.close()


def test_a_page_comes_back_with_its_newest_run(attach: Callable[..., dict[str, Any]]) -> None:
    assert attach()["live"] == attach(run="measured")["live"] == "measured"


@pytest.mark.parametrize("query", [{}, {"run": "measured"}])
def test_run_means_the_same_whatever_the_run_that_is_shown_made(
    attach: Callable[..., dict[str, Any]], query: dict[str, str]
) -> None:
    shown = attach(**query)
    assert "seconds" not in shown and (shown["batch-size"], shown["prompt"]) == (4, "Asked elsewhere")


@pytest.mark.parametrize("query", [{"model": "gpt2"}, {"model": "gpt2", "view": "compare"}])
def test_an_address_that_names_a_model_takes_nothing_over_from_another_run(
    attach: Callable[..., dict[str, Any]], query: dict[str, str]
) -> None:
    shown = attach(**query)
    assert shown["live"] == "" and shown["model"] == "gpt2" and "prompt" not in shown
