"""The controls of an arm come from the registry of axes."""

import json

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.optimizations import axis_names, prompt_axes
from tokendyno.ui.compare.arm_column import UNSUPPORTED, fold_button, folded, folded_axes, titles

# --- titles ---------------------------------------------------------------------------------------


def marked(entries: list[tuple[str, str]]) -> set[str]:
    return {name for title, name in entries if title.endswith(UNSUPPORTED)}


def test_what_runs_here_or_needs_another_choice_first_is_not_marked() -> None:
    by_axis = dict(zip((axis.name for axis in prompt_axes()), titles(facts(), CPU).choices, strict=True))
    assert not marked(by_axis["dtype"])
    assert not marked(by_axis["attention"]) & {"auto", "eager", "sdpa"}  # sdpa falls back: that is no refusal
    assert "default" not in marked(by_axis["compile"])  # with cache=static
    assert not marked(titles(facts(), CPU).presets) & {"baseline", "unwindowed", "static", "compiled"}


def test_what_is_refused_is_marked() -> None:
    huge = facts("gpt-oss-120b")
    assert "baseline" in marked(titles(huge, CPU).presets)  # no room
    assert "baseline" not in marked(titles(huge, H200).presets)
    encoder = facts("bert-base-uncased")
    assert "static" in marked(titles(encoder, CPU).presets)


# --- folding --------------------------------------------------------------------------------------

REST = [axis.name for axis in prompt_axes() if not axis.leading]


def test_at_first_the_leading_axes_are_shown() -> None:
    assert folded_axes({}, None) == REST
    assert 0 < len(REST) < len(prompt_axes())
    assert {"attention", "cache", "compile"} & set(REST) == set()


@pytest.mark.parametrize("name", REST)
def test_what_was_set_is_never_folded(name: str) -> None:
    axis = next(axis for axis in prompt_axes() if axis.name == name)
    for choice in axis.choices:
        hidden = folded_axes({name: choice.name}, facts())
        assert (name in hidden) == (choice.name == axis.default)


@pytest.mark.parametrize("name", ["pocket", "random:gpt2", "bert-base-uncased"])
def test_a_leading_axis_that_changes_nothing_with_this_model_is_folded(name: str) -> None:
    model = facts(name)
    hidden = set(folded_axes({}, model))
    assert hidden == set(REST) | {axis.name for axis in prompt_axes() if not axis.matters(model)}
    assert ("cache" in hidden) == (model.kind == "encoder")


def test_the_component_says_which_controls_it_hides_and_hides_them_from_the_start() -> None:
    assert json.loads(folded("b", {}, None)) == {"arm": "b", "folded": REST}
    button = fold_button("b", {}, None)
    assert f"#axis-b-{REST[0]}" in button.html_template and 'aria-controls="axes-b"' in button.html_template
    everything = dict.fromkeys(axis_names(), "set")
    assert "display: none" not in fold_button("b", everything, None).html_template.replace("#none { display: none", "")
