"""The controls of an arm come from the registry of axes."""

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.compare.page import UNSUPPORTED, titles


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
