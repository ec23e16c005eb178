"""Scripts of plain components, each with the helpers that they share."""

from collections.abc import Iterable
from pathlib import Path

_OWN = Path(__file__).resolve().parent / "js"
PRESS = _OWN / "press.js"
"""Redraws that take no button away while it is pressed."""

HELPERS = (_OWN / "add.js", PRESS)
PARETO = _OWN / "pareto.js"
"""Charts of arms by time and memory."""


def with_helper(files: Iterable[Path]) -> str:
    """One script for `gr.HTML(js_on_load=...)`: these files, behind the helpers."""
    return "\n".join(file.read_text(encoding="utf-8") for file in (*HELPERS, *files))
