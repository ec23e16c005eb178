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
    return f"const settings = {msgspec.json.encode(settings).decode()};\n{script}" if settings else script
