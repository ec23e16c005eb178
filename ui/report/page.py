"""A run, an ablation or a sweep as one HTML file that opens offline: the panel of the page itself, which reads from the
file what it otherwise pulls from the server; below it the prompt, the command, what is known of the quality, and the
arms of a run as scripts, the machine and the versions.

What was measured lies in the file as JSON, packed and encoded in base64, so that no text of it is markup.
"""

import base64
import gzip
import html
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tokendyno.backend.ablation.advise.view import advice_view
from tokendyno.backend.ablation.kinds import Ablation, AdviceCourse, AnyCourse, Sweep
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.ablation.sweep_view import sweep_view
from tokendyno.backend.ablation.view import worth_view
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.run import Columns, Run
from tokendyno.backend.views import live
from tokendyno.backend.views.share import code_file, command_of
from tokendyno.ui.components.scripts import PLOTLY_JS, SHEETS, bundle
from tokendyno.ui.live.sources import TEMPLATE, panel_settings
from tokendyno.ui.worth.sources import advise_template, sweep_template, worth_template

FOLDER = Path(__file__).resolve().parent
STYLES = (FOLDER / "report.css", *SHEETS, *(FOLDER.parent / page / "style.css" for page in ("worth", "advise")))

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><style>{style}</style></head>
<body><div class="gradio-container td-report"><h1>{title}</h1>
<div class="td-panel"><div id="live">{panel}</div></div>
{scripts}
<h2>Machine and versions</h2><table class="td-facts-table">{facts}</table>
<p class="td-made">{made}</p></div>
<script>{plotly}</script>
<script>const REPORT = {report};
{start}
function panel(element, settings, props, server, trigger, watch) {{
{code}
}}</script></body></html>
"""


class Packed(msgspec.Struct, frozen=True):
    """What the page's script is given. `value`: id of what is shown; `reply`: the answer to every pull, JSON packed by
    gzip, in base64."""

    value: str
    reply: str
    settings: dict[str, object]


def report(run: Run, scripts: Mapping[str, str], runs: RunLog | None = None) -> str:
    """The file of a run. `scripts`: an arm's script by its title, or why there is none; `runs`: among which its texts
    may have been read."""
    created, work = run.created, run.request.workload
    answer = whole(run, runs)
    assert answer.head is not None
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(created.created))
    code = code_file(run.snapshot())
    details = "".join(
        f"<details><summary>{html.escape(name)}</summary><pre>{html.escape(text)}</pre></details>"
        for name, text in {**scripts, **({"Code that torch.compile generated": code} if code else {})}.items()
    )
    texts = {
        "System message": work.system,
        "Prompt": work.prompt or f"synthetic, {work.prompt_tokens:,} tokens",
        "Command": command_of(run.request),
        "Quality": answer.head.verdict.gate,
    }
    sections = "".join(f"<h2>{title}</h2><pre>{html.escape(text)}</pre>" for title, text in texts.items() if text)
    return _file(
        answer.head.heading or created.model_label,
        TEMPLATE,
        f"{sections}<h2>Scripts</h2>{details}",
        {**created.machine, **created.versions},
        f"Run {run.id}, {date}.",
        _packed(run.id, msgspec.json.encode(answer), panel_settings()),
        bundle("live"),
    )


def course_report(course: AnyCourse) -> str:
    """The file of an ablation, a sweep or advice, as far as it is measured."""
    heading = course.heading
    match course:
        case Ablation():
            key, template, reply = "worth", worth_template(), msgspec.json.encode(worth_view(course))
        case Sweep():
            key, template, reply = "sweep", sweep_template(), msgspec.json.encode(sweep_view(course))
        case AdviceCourse():
            key, template, reply = "advise", advise_template(), msgspec.json.encode(advice_view(course))
    trials = course.journal.trials.values()
    facts = {
        "model": heading.model,
        "arm": arm_text(heading.base),
        "changes": "; ".join(f"{name}={choice}" for name, choice in heading.changes),
        "machine": heading.machine,
        "device": heading.device,
        "GPUs": ", ".join(sorted({trial.gpu for trial in trials if trial.gpu})),
        "machines": ", ".join(sorted({trial.node for trial in trials if trial.node})),
        **heading.versions,
    }
    what = {"worth": "ablation", "sweep": "sweep", "advise": "advice"}[key]
    return _file(
        f"{heading.model}: {what}",
        template,
        "",
        {name: text for name, text in facts.items() if text},
        f"Journal {course.id}.",
        _packed(course.id, reply, {"key_of_address": key}),
        bundle(key),
    )


def _packed(value: str, reply: bytes, settings: dict[str, object]) -> Packed:
    return Packed(value, base64.b64encode(gzip.compress(reply, mtime=0)).decode(), settings)


def _file(title: str, panel: str, scripts: str, facts: Mapping[str, str], note: str, packed: Packed, code: str) -> str:
    """`panel` and `scripts` are markup, `code` is JavaScript; everything else is text."""
    return _PAGE.format(
        title=html.escape(title),
        style="\n".join(_read(path) for path in STYLES),
        panel=panel,
        scripts=scripts,
        facts="".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in facts.items()),
        made=html.escape(f"{note} Written by tokendyno."),
        plotly=_read(PLOTLY_JS).replace("</script", "<\\/script"),
        report=msgspec.json.encode(packed).decode().replace("<", "\\u003c"),
        start=bundle("report"),
        code=code,
    )


def whole(run: Run, runs: RunLog | None = None) -> live.Delta:
    """Everything about a run in one answer, which otherwise takes a pull for every few thousand tokens."""
    answer = live.delta(run, -1, [(0, 0, 0)] * len(run.arms), run.elapsed_s, others=runs)
    assert answer.head is not None
    verdict = msgspec.structs.replace(answer.head.verdict, gate_run="")  # no link leads out of a file
    head, columns = msgspec.structs.replace(answer.head, verdict=verdict), answer.columns
    while True:
        more = live.delta(run, answer.version, [(c.end, c.end_sample, c.end_character) for c in columns], 0.0).columns
        if all(new.end == old.end for new, old in zip(more, columns, strict=True)):
            return msgspec.structs.replace(answer, head=head, columns=columns, ended=True)
        columns = [_joined(old, new) for old, new in zip(columns, more, strict=True)]


def _joined(old: Columns, new: Columns) -> Columns:
    names = ("t_s", "latency_s", "kv_sliding", "kv_growing", "kv_latent", "kv_state", "kv_index")
    longer = {name: getattr(old, name) + getattr(new, name) for name in names}
    return msgspec.structs.replace(old, end=new.end, **longer)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
