"""What the browser is given, without Gradio, for reports too: JavaScript of components, which `npm run build` writes
to `ui/bundle/` from the modules of `ui/**/js`, plotly.js, and the page's own CSS."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

_UI = Path(__file__).resolve().parents[1]
BUNDLES = _UI / "bundle"

_PLOTLY = find_spec("plotly")
assert _PLOTLY is not None and _PLOTLY.origin is not None, "plotly is a dependency"
PLOTLY_JS = Path(_PLOTLY.origin).resolve().parent / "package_data" / "plotly.min.js"
"""Of the plotly package, which is not imported (4.1; Gradio ships an older one)."""

_PARTS = ("base", "arms", "live", "answer", "slide", "below", "narrow", "pages")
SHEETS = tuple(_UI / "css" / f"{name}.css" for name in _PARTS)
"""The CSS that all pages share, in the order in which it is joined: later rules win. Pages with a stylesheet of their
own have it in their folder."""


def bundle(name: str, **settings: Any) -> str:
    """The function body of a component, for `gr.HTML(js_on_load=...)` and reports, behind a constant `settings` that
    it reads. They are no properties of the component: Gradio empties those when an event leaves a component as it is
    that was not shown yet."""
    script = (BUNDLES / f"{name}.js").read_text(encoding="utf-8")
    return _told(settings) + script if settings else script


def script_of(elem_id: str, **settings: Any) -> str:
    """The same where the page has a component with this script and with settings already: it is not sent twice."""
    return _told(settings) + (
        "const { js_on_load } = window.gradio_config.components.find(({ props }) => "
        f"props.elem_id === {elem_id!r}).props;\n"
        "Function('element', 'trigger', 'props', 'server', 'watch', 'settings', "
        "js_on_load.slice(js_on_load.indexOf('\\n')))(element, trigger, props, server, watch, settings);"
    )


def _told(settings: dict[str, Any]) -> str:
    return f"const settings = {msgspec.json.encode(settings).decode()};\n"
