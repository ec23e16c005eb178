"""The JavaScript of components: `ui/bundle/`, which `npm run build` writes from the modules of `ui/**/js`."""

from pathlib import Path
from typing import Any

import msgspec

BUNDLES = Path(__file__).resolve().parents[1] / "bundle"


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
