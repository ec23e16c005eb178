"""plotly.js for the browser: from the plotly package (4.1; Gradio ships an older one)."""

from pathlib import Path

import gradio as gr
import plotly

PLOTLY_JS = Path(plotly.__file__).resolve().parent / "package_data" / "plotly.min.js"


def plotly_address() -> str:
    """Where the browser finds it: a static file, by a relative address, for proxies' sub-paths."""
    gr.set_static_paths([PLOTLY_JS])
    return f"gradio_api/file={PLOTLY_JS}"
