"""The page's own CSS by its parts, in the order in which they are joined: later rules win. Needs no Gradio."""

from pathlib import Path

_FOLDER = Path(__file__).resolve().parent / "css"

_PARTS = ("base", "arms", "live", "answer", "slide", "below", "narrow", "pages")
SHEETS = tuple(_FOLDER / f"{name}.css" for name in _PARTS)
"""What all pages share. Pages with a stylesheet of their own have it in their folder."""
