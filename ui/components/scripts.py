"""Scripts of plain components, each with the helpers that they share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

_OWN = Path(__file__).resolve().parent / "js"
PRESS = _OWN / "press.js"
"""Redraws that take no button away while it is pressed."""

THEME = _OWN / "theme.js"
"""Draws again when the theme changes."""

HELPERS = (_OWN / "add.js", PRESS)
PLOT = _OWN / "plot.js"
"""Draws with plotly.js, which the script has to bring along."""
PARETO = _OWN / "pareto.js"
"""Charts of arms by time and memory, drawn by `PLOT`."""


def with_settings(script: str, **settings: Any) -> str:
    """The script behind a constant `settings`, which it reads. They are no properties of the component: Gradio empties
    those when an event leaves a component as it is that was not shown yet."""
    return f"const settings = {msgspec.json.encode(settings).decode()};\n{script}"


def with_helper(files: Iterable[Path]) -> str:
    """One script for `gr.HTML(js_on_load=...)`: these files, behind the helpers."""
    return "\n".join(file.read_text(encoding="utf-8") for file in (*HELPERS, *files))
