"""What a model cannot use on this machine is marked where it is chosen."""

from backend.optimizations import axes
from backend.presets import arm_presets
from tests.facts import CPU, H200, facts
from ui.marks import NOT_HERE, titles


def marked(named: list[tuple[str, str]]) -> set[str]:
    return {name for title, name in named if title.endswith(NOT_HERE)}


def test_without_a_model_every_title_is_plain() -> None:
    assert titles(None, CPU).presets == [(preset.title, preset.name) for preset in arm_presets()]
    assert titles(None, CPU).choices == [[(choice.title, choice.name) for choice in axis.choices] for axis in axes()]


def test_what_runs_here_or_needs_another_choice_first_is_not_marked() -> None:
    by_axis = dict(zip((axis.name for axis in axes()), titles(facts(), CPU).choices, strict=True))
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
