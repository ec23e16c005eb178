"""What the axes of many requests conclude from the counters of a run: each count on both sides of each edge."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from tokendyno.backend.counts import counts_of
from tokendyno.backend.evidence import Evidence
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find, find_all

AXES = {axis.name: axis for axis in all_axes()}
LAYERS = 3
MODEL = SimpleNamespace(
    config=SimpleNamespace(get_text_config=lambda decoder: SimpleNamespace(num_hidden_layers=LAYERS))
)
STATIC = {"batch_requests": 4, "batches": 2, "rows_seen": 4, "padding_tokens": 9}
PAGED = {"paged_steps": 5, "paged_layer_calls": 5 * LAYERS, "useful_tokens": 12, "paged_tokens": 12}
FULL = {"batch_steps": 3, "batch_requests": 6, "slot_steps": 12, "fullest_step": 4}
PAGES = {"paged_steps": 5, "page_tokens": 16, "pages_taken": 7, "pages_needed": 7}
BUDGET = {"paged_steps": 5, "widest_step_tokens": 128, "full_steps": 2}
TURNS = {"paged_steps": 5, "contended_steps": 4, "prefill_first_steps": 4}
ORDER = {"order_pairs": 3, "order_arrival": 3, "order_sorted": 1}


def row(name: str, counts: Mapping[str, float], **batch: Any) -> tuple[str, str, int | None, int | None]:
    """(status, effective, reached, expected) of an axis, where its planned choice had been asked for."""
    plan = Plan(LoadPlan(ModelSource("random"))).with_batch(**batch)
    finding = find(name, Observation(MODEL, None, plan, counts=counts_of(counts)))
    evidence = Evidence(finding.effective, finding.effective, finding, AXES[name].off)
    return evidence.status, finding.effective, finding.reached, finding.expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("verified", "static", 4, 4)),
        ({"rows_seen": 3}, ("partial", "static", 3, 4)),
        ({"batches": 4} | ORDER, ("no_effect", "static", None, None)),
        ({"batches": 4}, ("not_applicable", "static", None, None)),  # no two were there at once
        ({"batch_requests": 0}, ("off", "off", None, None)),
        (PAGED, ("verified", "continuous", 15, 15)),
        (PAGED | {"paged_layer_calls": 14}, ("partial", "continuous", 14, 15)),
        (PAGED | {"paged_layer_calls": 16}, ("verified", "continuous", 15, 15)),
        (PAGED | {"paged_tokens": 11}, ("partial", "continuous", 11, 12)),
        ({"paged_steps": 5, "useful_tokens": 12}, ("partial", "continuous", 0, 12)),
    ],
)
def test_batching(more: dict[str, float], expected: tuple[Any, ...]) -> None:
    assert row("batching", STATIC | more, kind="static") == expected


def test_one_request_after_the_other_is_no_batch() -> None:
    assert row("batching", STATIC | {"batches": 4}, kind="off")[:2] == ("off", "off")


def test_a_prompt_that_a_graph_replays_shows_no_rows() -> None:
    alone = STATIC | {"batches": 4, "rows_seen": 0}
    plan = Plan(LoadPlan(ModelSource("random"))).with_batch(kind="off")
    replayed = msgspec.structs.replace(plan, generate=msgspec.structs.replace(plan.generate, prefill_graphs=True))
    counts = counts_of(alone)
    assert find("batching", Observation(MODEL, None, replayed, counts=counts)).effective == "off"
    assert find("batching", Observation(MODEL, None, plan, counts=counts)).effective == "static"


@pytest.mark.parametrize(
    ("rows", "more", "expected"),
    [
        (4, {}, ("verified", "4")),
        (0, {}, ("verified", "auto")),
        (4, {"fullest_step": 5}, ("verified", "5")),  # which is not what was planned
        (4, {"fullest_step": 3}, ("not_applicable", "4")),
        (0, {"batch_requests": 3, "fullest_step": 3, "slot_steps": 9}, ("verified", "auto")),
    ],
)
def test_batch_size(rows: int, more: dict[str, float], expected: tuple[str, str]) -> None:
    assert row("batch_size", FULL | more, rows=rows, kind="static")[:2] == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("verified", "16", 7, 7)),
        ({"pages_taken": 6}, ("partial", "16", 6, 7)),
        ({"pages_taken": 9}, ("partial", "16", 7, 9)),
        ({"pages_taken": 9, "restarts": 1}, ("verified", "16", None, None)),
    ],
)
def test_page_size(more: dict[str, float], expected: tuple[Any, ...]) -> None:
    assert row("page_size", PAGES | more, page_tokens=16) == expected


def test_pages_of_sliding_layers_alone_are_not_counted() -> None:
    assert row("page_size", {"paged_steps": 5, "page_tokens": 16}, page_tokens=16) == ("verified", "16", None, None)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("verified", "128")),
        ({"widest_step_tokens": 129}, ("verified", "129")),  # which is not what was planned
        ({"full_steps": 0}, ("not_applicable", "128")),
    ],
)
def test_batch_tokens(more: dict[str, float], expected: tuple[str, str]) -> None:
    assert row("batch_tokens", BUDGET | more, step_tokens=128)[:2] == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, ("verified", "prefill_first", 4, 4)),
        ({"prefill_first_steps": 2}, ("partial", "fifo", 2, 4)),
        ({"prefill_first_steps": 0}, ("verified", "fifo", 4, 4)),
        ({"contended_steps": 0, "prefill_first_steps": 0}, ("not_applicable", "prefill_first", None, None)),
    ],
)
def test_scheduler(more: dict[str, float], expected: tuple[Any, ...]) -> None:
    assert row("scheduler", TURNS | more, scheduler="prefill_first") == expected


@pytest.mark.parametrize(
    ("order", "more", "expected"),
    [
        ("arrival", {}, ("verified", "arrival", 3, 3)),
        ("sorted", {}, ("verified", "arrival", 3, 3)),  # which is not what was planned
        ("sorted", {"order_sorted": 3}, ("verified", "sorted", 3, 3)),
        ("arrival", {"order_arrival": 2}, ("partial", "arrival", 2, 3)),
        ("arrival", {"order_pairs": 0}, ("not_applicable", "arrival", None, None)),
        ("arrival", {"paged_steps": 1}, ("not_applicable", "arrival", None, None)),
    ],
)
def test_batch_order(order: str, more: dict[str, float], expected: tuple[Any, ...]) -> None:
    assert row("batch_order", ORDER | more, order=order) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"paged_steps": 5, "overlapped_steps": 4}, ("verified", "on", 4, 4)),
        ({"paged_steps": 5, "overlapped_steps": 3}, ("partial", "on", 3, 4)),
    ],
)
def test_async_batching(counts: dict[str, float], expected: tuple[Any, ...]) -> None:
    assert row("async_batching", counts, asynchronous=True) == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"paged_steps": 5, "paged_replays": 5}, ("verified", "on", 5, 5)),
        ({"paged_steps": 5, "paged_replays": 4, "paged_captures": 1}, ("partial", "on", 4, 5)),
        ({"paged_steps": 5, "paged_captures": 1}, ("partial", "on", 0, 5)),
        ({"paged_steps": 5}, ("off", "off", None, None)),
    ],
)
def test_batch_graphs(counts: dict[str, float], expected: tuple[Any, ...]) -> None:
    assert row("batch_graphs", counts, graphs=True) == expected


@pytest.mark.parametrize(
    ("axis", "choice", "planned"),
    [
        ("batch_order", "sorted", {"order": "sorted"}),
        ("batch_graphs", "on", {"graphs": True}),
    ],
)
def test_what_was_chosen_is_planned(axis: str, choice: str, planned: dict[str, Any]) -> None:
    plan = Plan(LoadPlan(ModelSource("random")))
    unread: Any = None
    assert AXES[axis].edit(plan, choice, unread) == plan.with_batch(**planned)


@pytest.mark.parametrize(("counts", "why"), [({}, "no two requests"), ({"paged_steps": 1}, "forms no batches")])
def test_why_no_order_could_be_seen_is_said(counts: dict[str, float], why: str) -> None:
    finding = find(
        "batch_order", Observation(MODEL, None, Plan(LoadPlan(ModelSource("random"))), counts=counts_of(counts))
    )
    assert why in finding.proof


def test_what_steps_of_continuous_batching_have_is_not_applicable_without_one() -> None:
    """The axes that say so are those whose witness reads pages, whatever else was counted."""
    counts = counts_of({"batch_requests": 4, "paged_replays": 5, "overlapped_steps": 4})
    findings = find_all(Observation(MODEL, None, Plan(LoadPlan(ModelSource("random"))), counts=counts))
    without = {row.axis: row.effective for row in findings if row.proof == "no step of continuous batching"}
    assert without == {
        "page_size": "256",
        "batch_tokens": "512",
        "scheduler": "fifo",
        "async_batching": "off",
        "batch_graphs": "off",
    }
