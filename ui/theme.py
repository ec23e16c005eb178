"""Colours and fonts. The page is grey; blue and coral stand for the arms; green, amber and red for proof, fallback
and failure; nothing else is coloured. Fonts are the system's, so nothing is fetched from another server."""

from pathlib import Path

import gradio as gr

from tokendyno.ui.components.scripts import SHEETS

_OWN = ("advise", "batching", "fit", "history", "claims", "worth")
STYLES = [*SHEETS, *(Path(__file__).resolve().parent / page / "style.css" for page in _OWN)]

_SANS = ("system-ui", "-apple-system", "Segoe UI", "Roboto", "Noto Sans", "sans-serif")
_MONO = ("ui-monospace", "SFMono-Regular", "Menlo", "Consolas", "Liberation Mono", "monospace")

_SAME = {
    "block_background_fill": "transparent",
    "block_border_width": "0px",
    "block_shadow": "none",
    "block_title_text_color": "*body_text_color_subdued",
}
_COLOURS = {
    "body_background_fill": ("white", "#11151c"),
    "background_fill_primary": ("white", "#171c25"),
    "background_fill_secondary": ("#f6f7f9", "#1d232e"),
    "input_background_fill": ("white", "#11151c"),
    "input_border_color": ("#cbd2dc", "#3a4352"),
    "border_color_primary": ("#e1e5eb", "#2c3440"),
    "body_text_color": ("#1b2230", "#e6e9ef"),
    "body_text_color_subdued": ("#586174", "#9aa4b5"),
    "button_primary_background_fill": ("#1b2230", "#e6e9ef"),
    "button_primary_background_fill_hover": ("#333d50", "white"),
    "button_primary_text_color": ("white", "#11151c"),
    "button_secondary_background_fill": ("#eceff3", "#2c3440"),
    "button_secondary_background_fill_hover": ("#dfe4ea", "#3a4352"),
}
"""Light and dark."""

_SIZES = {
    "block_padding": "0px",
    "block_label_text_size": "12px",
    "block_title_text_size": "12px",
    "block_title_text_weight": "500",
    "input_border_width": "1px",
}


def theme() -> gr.themes.Base:
    """Gradio's base theme with less spacing and this page's colours."""
    base = gr.themes.Base(
        primary_hue=gr.themes.colors.slate,
        secondary_hue=gr.themes.colors.slate,
        neutral_hue=gr.themes.colors.slate,
        text_size=gr.themes.sizes.text_sm,
        spacing_size=gr.themes.sizes.spacing_sm,
        radius_size=gr.themes.sizes.radius_sm,
        font=_SANS,
        font_mono=_MONO,
    )
    light = _SIZES | _SAME | {name: colour for name, (colour, _) in _COLOURS.items()}
    dark = _SAME | {name: colour for name, (_, colour) in _COLOURS.items()}
    return base.set(**light, **{f"{name}_dark": value for name, value in dark.items()})


def style() -> str:
    """The page's own CSS."""
    return "".join(file.read_text(encoding="utf-8") for file in STYLES)
