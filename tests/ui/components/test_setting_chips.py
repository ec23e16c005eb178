"""Chips of what differs from the settings with which a page opens."""

from types import SimpleNamespace
from typing import Any

import gradio as gr
import msgspec
import pytest

from tokendyno.backend.errors import InputError
from tokendyno.ui.batching import request as batching
from tokendyno.ui.batching import traffic_row
from tokendyno.ui.compare import request as compare
from tokendyno.ui.compare import work_row
from tokendyno.ui.components.setting_chips import ChipLine, SettingChips


@pytest.mark.parametrize("page", [(compare.Fields, work_row.SETTINGS), (batching.Fields, traffic_row.SETTINGS)])
def test_no_control_changes_a_run_without_a_chip(page: Any) -> None:
    fields, settings = page
    assert {name for names in settings.values() for name in names} >= {*fields._fields} - {"model"}


@pytest.fixture
def line() -> SettingChips:
    with gr.Blocks(analytics_enabled=False):
        found = SettingChips("line", "", {"Prompt": ["prompt", "preset"], "Seed": ["seed"], "Tokens": ["low", "high"]})
        low, high = gr.Number(8), gr.Number(64)
        found.watch(
            {
                "prompt": gr.Textbox("Once"),
                "preset": gr.Dropdown(["fox"]),
                "seed": gr.Number(0),
                "low": low,
                "high": high,
            }
        )
    return found


def chips(line: SettingChips, **values: object) -> list[tuple[str, str, str]]:
    found = msgspec.json.decode(line.value("Run.", values), type=ChipLine)
    return [(chip.title, chip.value, chip.default) for chip in found.chips]


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
    assert back == {line.controls["prompt"]: "Once", line.controls["preset"]: "fox"}
    for data in ({"titles": ["gone"]}, {"titles": 3}, None):
        with pytest.raises(InputError, match="Reload the page"):
            line.put_back(SimpleNamespace(_data=data))  # type: ignore[arg-type]
