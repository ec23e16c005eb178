"""What a browser gets of an ablation and of a sweep."""

import json
from pathlib import Path
from typing import Any

import gradio as gr
import pytest
from starlette.requests import Request

from tests.support.ablations import stored, stored_sweep
from tokendyno.backend.ablation.courses import Courses
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.visitor import KEY
from tokendyno.ui.worth.course import wire_course
from tokendyno.ui.worth.page import MISSING, Part, SweepForm, _Handlers, sweep_panel, worth_panel


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


def test_what_was_refused_is_over_once_something_else_on_the_page_is_begun(tmp_path: Path) -> None:
    bench = open_bench(tmp_path / "history.sqlite")
    courses, answers = Courses(bench), iter(["course-id"])
    with gr.Blocks(analytics_enabled=False) as page:
        panel, refused, other = worth_panel(courses), gr.HTML(), gr.HTML()

        def begin() -> dict[Any, Any]:
            for course_id in answers:
                return {panel: course_id}
            raise InputError("The arms differ in nothing.")

        wire_course(panel, refused, courses, begin, [], [other])
    begins = next(fn for fn in page.fns.values() if any(kind == "begin" for _, kind in fn.targets))
    assert begins.fn() == {panel: "course-id", refused: "", other: ""}
    assert begins.fn() == {refused: "The arms differ in nothing.", other: ""}, "what was refused elsewhere is over too"
    bench.close()


def test_an_address_of_nothing_that_is_kept_says_so_in_its_panel(tmp_path: Path) -> None:
    stored_sweep(tmp_path)
    bench = open_bench(tmp_path / "history.sqlite")
    with gr.Blocks(analytics_enabled=False):
        ablations, sweeps = Part(gr.HTML(), gr.HTML()), Part(gr.HTML(), gr.HTML())
    page = _Handlers(bench, Courses(bench), ablations, sweeps, 1)

    def opened(query: str) -> list[Any]:
        scope = {"type": "http", "query_string": query.encode(), "headers": [], KEY: LOCAL_USER}
        updates = page.opened(gr.Request(request=Request(scope)))
        return [updates[part] for part in (ablations.panel, sweeps.panel, ablations.message, sweeps.message)]

    assert opened("worth=unknown-one") == ["", "", MISSING, ""]
    assert opened("sweep=unknown-one") == ["", "", "", MISSING]
    assert opened("worth=stored-sweep") == ["", "stored-sweep", "", ""]
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
