"""Chips of what differs from the settings with which a page opens."""

from types import SimpleNamespace

import gradio as gr
import msgspec
import pytest

from tokendyno.backend.errors import InputError
from tokendyno.ui.components.setting_chips import ChipLine, SettingChips


@pytest.fixture
def line() -> SettingChips:
    with gr.Blocks(analytics_enabled=False):
        chips_line = SettingChips("line", "")
        controls = {
            "model": gr.Dropdown(["pocket"], label="Model"),
            "prompt": gr.Textbox("Once", label="Prompt"),
            "seed": gr.Number(0, label="Seed (of sampling)"),
            "low": gr.Number(8, label="Tokens, from"),
            "high": gr.Number(64, label="to"),
        }
        chips_line.watch(controls, Prompt=gr.Dropdown(["fox"]))
    return chips_line


def chips(line: SettingChips, **values: object) -> list[tuple[str, str, str]]:
    shown = msgspec.json.decode(line.value("Run.", values), type=ChipLine)
    return [(chip.title, chip.value, chip.default) for chip in shown.chips]


def test_a_chip_says_what_is_set_and_what_was(line: SettingChips) -> None:
    assert chips(line, prompt="Once", seed=0.0, low=8, high=64) == []
    assert chips(line, prompt="Once upon a time,\nthere was", seed=None, low=8, high=1024) == [
        ("Prompt", "Once upon a time, there\u2026", "Once"),
        ("Seed", "empty", "0"),
        ("Tokens", "8 to 1,024", "8 to 64"),
    ]
    assert chips(line, prompt=["a", "list"], seed=float("inf")) == [("Prompt", "empty", "Once"), ("Seed", "empty", "0")]


def test_a_press_puts_back_all_that_belongs_together(line: SettingChips) -> None:
    back = line.put_back(SimpleNamespace(_data={"titles": ["Prompt"]}))  # type: ignore[arg-type]
    assert back == {line.controls["prompt"]: "Once", line.controls["Prompt"]: "fox"}
    for data in ({"titles": ["gone"]}, {"titles": 3}, None):
        with pytest.raises(InputError, match="Reload the page"):
            line.put_back(SimpleNamespace(_data=data))  # type: ignore[arg-type]
