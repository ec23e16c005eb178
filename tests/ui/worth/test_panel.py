"""What a browser gets of an ablation and of a sweep."""

import json
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from tests.support.ablations import stored, stored_sweep
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.worth.page import SweepForm, _Handlers, sweep_panel, worth_panel


def panels(courses: Courses) -> tuple[Any, Any]:
    """Of ablations and of sweeps."""
    with gr.Blocks(analytics_enabled=False):
        return worth_panel(courses), sweep_panel(courses)


def test_whoever_knows_the_id_gets_the_waterfall_and_others_a_sentence(tmp_path: Path) -> None:
    stored(tmp_path)
    bench = open_bench(tmp_path / "history.sqlite")
    courses = Courses(bench)
    found = json.loads(panels(courses)[0].pull({"id": "stored-worth"}))
    assert found["figures"] == ["Time per token", "Peak memory", "KL divergence from A"]
    assert [group["title"] for group in found["groups"]] == ["One after the other", "Each alone", "All but one"]
    questions: list[object] = [{"id": "unknown-one"}, {"id": "../stored-worth"}, {"id": 7}, {}, [], {"id": "x" * 65}]
    for question in questions:
        assert json.loads(panels(courses)[0].pull(question)).keys() == {"error"}, question
    bench.close()


def test_each_panel_shows_its_own_kind(tmp_path: Path) -> None:
    stored(tmp_path)
    stored_sweep(tmp_path)
    bench = open_bench(tmp_path / "history.sqlite")
    courses = Courses(bench)
    assert len(json.loads(panels(courses)[1].pull({"id": "stored-sweep"}))["table"]) == 7
    assert "no such sweep" in json.loads(panels(courses)[1].pull({"id": "stored-worth"}))["error"]
    assert "no such ablation" in json.loads(panels(courses)[0].pull({"id": "stored-sweep"}))["error"]
    bench.close()


def test_a_choice_of_compare_that_cannot_be_read_is_named() -> None:
    nothing: Any = None
    page, arms = _Handlers(nothing, nothing, nothing, nothing, 1), [axis.default for axis in prompt_axes()] * 2
    assert page.named("pocket", *arms) == "pocket. A: defaults. B: defaults."
    assert page.named("pocket", "no-such", *arms[1:]).startswith("Unknown ")


def test_values_are_read_as_they_are_typed() -> None:
    assert SweepForm("A", [("batch_size", "1, 8 ,"), ("cache", "static")], False).values() == {
        "batch_size": ["1", "8"],
        "cache": ["static"],
    }
    with pytest.raises(InputError, match="varies twice"):
        SweepForm("A", [("cache", "a,b"), ("cache", "c,d")], False).values()
