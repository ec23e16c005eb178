"""A run as one HTML file that opens offline: the live panel itself, which reads from the file what it otherwise pulls
from the server; below it the arms as scripts, the machine and the versions.

The run lies in the file as JSON, packed and encoded in base64, so that no text of it is markup.
"""

import base64
import gzip
import html
import importlib.util
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from backend.runs.run import Columns, Run
from backend.views import live
from ui.live.sources import TEMPLATE, panel_props, script

FOLDER = Path(__file__).resolve().parent
STYLES = (FOLDER / "report.css", FOLDER.parent / "style.css")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}</style></head>
<body><div class="gradio-container td-report"><h1>{title}</h1>
<div class="td-panel"><div id="live">{panel}</div></div>
<h2>Scripts</h2>{scripts}
<h2>Machine and versions</h2><table class="td-facts-table">{facts}</table>
<p class="td-made">{made}</p></div>
<script>{plotly}</script>
<script>const REPORT = {report};
{start}
function panel(element, props, server, trigger, watch) {{
{code}
}}</script></body></html>
"""


class Packed(msgspec.Struct, frozen=True):
    """What the page's script is given. `reply`: the answer to every pull, JSON packed by gzip, in base64."""

    run: str
    reply: str
    props: dict[str, object]


def report(run: Run, scripts: Mapping[str, str]) -> str:
    """The file. `scripts`: arm -> its script, or why there is none."""
    created = run.created
    reply = base64.b64encode(gzip.compress(msgspec.json.encode(whole(run)), mtime=0)).decode()
    packed = msgspec.json.encode(Packed(run.id, reply, panel_props())).decode()
    facts = {**created.machine, **created.versions}
    arms = " and ".join(arm.name for arm in created.arms)
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(created.created))
    return _PAGE.format(
        title=html.escape(f"{created.model_label}: arm {arms}"),
        style="\n".join(_read(path) for path in STYLES),
        panel=TEMPLATE,
        scripts="".join(
            f"<details><summary>Arm {html.escape(name)}</summary><pre>{html.escape(text)}</pre></details>"
            for name, text in scripts.items()
        ),
        facts="".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items()),
        made=html.escape(f"Run {run.id}, {date}. Written by tokendyno."),
        plotly=_plotly().replace("</script", "<\\/script"),
        report=packed.replace("<", "\\u003c"),
        start=_read(FOLDER / "start.js"),
        code=script(),
    )  # fmt: skip


def whole(run: Run) -> live.Delta:
    """Everything about a run in one answer, which otherwise takes a pull for every few thousand tokens."""
    answer = live.delta(run, -1, [(0, 0, 0)] * len(run.arms), run.elapsed_s)
    columns = answer.columns
    while True:
        more = live.delta(run, answer.version, [(c.end, c.end_sample, c.end_character) for c in columns], 0.0).columns
        if all(new.end == old.end for new, old in zip(more, columns, strict=True)):
            return msgspec.structs.replace(answer, columns=columns, ended=True)
        columns = [_joined(old, new) for old, new in zip(columns, more, strict=True)]


def _joined(old: Columns, new: Columns) -> Columns:
    return msgspec.structs.replace(
        old, end=new.end, t_s=old.t_s + new.t_s, latency_s=old.latency_s + new.latency_s,
        kv_sliding=old.kv_sliding + new.kv_sliding, kv_full=old.kv_full + new.kv_full,
    )  # fmt: skip


def _plotly() -> str:
    """plotly.js, without importing the package."""
    found = importlib.util.find_spec("plotly")
    assert found is not None and found.origin is not None, "plotly is a dependency"
    return _read(Path(found.origin).parent / "package_data" / "plotly.min.js")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
