"""What cannot run with a model on this machine has a sign where it is chosen."""

from backend.arms.presets import arm_presets
from backend.optimizations import prompt_axes
from tests.support.machines import CPU, H200, facts
from ui.compare.unsupported import UNSUPPORTED, titles


def unsupported(entries: list[tuple[str, str]]) -> set[str]:
    return {name for title, name in entries if title.endswith(UNSUPPORTED)}


def test_without_a_model_every_title_is_plain() -> None:
    assert titles(None, CPU).presets == [(preset.title, preset.name) for preset in arm_presets()]
    assert titles(None, CPU).choices == [
        [(choice.title, choice.name) for choice in axis.choices] for axis in prompt_axes()
    ]


def test_what_runs_here_or_needs_another_choice_first_is_not_marked() -> None:
    by_axis = dict(zip((axis.name for axis in prompt_axes()), titles(facts(), CPU).choices, strict=True))
    assert not unsupported(by_axis["dtype"])
    assert not unsupported(by_axis["attention"]) & {"auto", "eager", "sdpa"}  # sdpa falls back: that is no refusal
    assert "default" not in unsupported(by_axis["compile"])  # with cache=static
    assert not unsupported(titles(facts(), CPU).presets) & {"baseline", "unwindowed", "static", "compiled"}


def test_what_is_refused_is_marked() -> None:
    huge = facts("gpt-oss-120b")
    assert "baseline" in unsupported(titles(huge, CPU).presets)  # no room
    assert "baseline" not in unsupported(titles(huge, H200).presets)
    encoder = facts("bert-base-uncased")
    assert "static" in unsupported(titles(encoder, CPU).presets)
