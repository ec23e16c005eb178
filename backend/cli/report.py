"""`tokendyno report`: a run that is over as a table, HTML, CSV or JSON; an ablation or a sweep as HTML."""

import argparse
import contextlib
from pathlib import Path

from tokendyno.backend.ablation.courses import kept_journal, trial_note
from tokendyno.backend.ablation.kinds import course_of_journal
from tokendyno.backend.cli.files import check_distinct, check_folder, check_writable, write_json, write_text
from tokendyno.backend.cli.options import Add, add_all, add_models_dir, add_output
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.run_table import run_blocks
from tokendyno.backend.cli.stored import WHAT, add_history, find_run, other_runs
from tokendyno.backend.cli.terminal import show
from tokendyno.backend.errors import InputError, shown
from tokendyno.backend.executors import open_bench
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.quality import gate_of
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.document import document
from tokendyno.backend.views.share import code_file, series_csv
from tokendyno.ui.report.page import course_report
from tokendyno.ui.report.page import report as html_report
from tokendyno.ui.report.scripts import scripts_of

JOURNAL = ".jsonl"
"""How the file of a journal ends."""


def report(options: argparse.Namespace) -> int:
    targets = {"--html": options.html, "--csv": options.csv, "--json": options.json, "--code": options.code}
    for option, target in targets.items():
        check_writable(target, option)
    check_distinct(targets)
    check_folder(options.models_dir)
    journal = _journal(options.run, options.history)
    if journal is not None:
        return _report_of_journal(options, journal)
    run = find_run(options.run, options.history)
    if run.request.traffic is not None or run.request.quality is not None:
        raise InputError(
            "A report is of one prompt; this run is of many requests or given texts. Open it on the page. `tokendyno "
            f"replay {shown(options.run)}` prints its table, as `tokendyno history show` does of one in the history."
        )
    if note := trial_note(options.history, run.request.trial):
        say(f"note: {note}")
    with other_runs(options.history) as others:
        return _report_of_run(options, run, others)


def _report_of_run(options: argparse.Namespace, run: Run, others: RunLog) -> int:
    if options.html is not None:
        scripts = scripts_of(run, open_bench(None, options.models_dir))
        write_text(options.html, html_report(run, scripts, others), "--html")
    if options.csv is not None:
        write_text(options.csv, series_csv(run), "--csv")
    if options.json is not None:
        write_json(options.json, document(run, gate_of(run.snapshot(), others.reading)))
    if options.code is not None:
        if not (code := code_file(run.snapshot())):
            raise InputError("No code was generated in this run: no arm of it was compiled by Inductor and proved.")
        write_text(options.code, code, "--code")
    if written := [target for target in (options.html, options.csv, options.json, options.code) if target is not None]:
        if files := [target for target in written if target != "-"]:
            say(f"Wrote {', '.join(files)}.")
    else:
        show(run_blocks(run, options.all, others.reading), options.color)
    return 0


def _journal(what: str, history: Path) -> Path | None:
    """The journal that `what` names: a file, or one of the page's by its id; None where it names a run."""
    path = Path(what).expanduser()
    if path.suffix == JOURNAL:
        return path
    kept = kept_journal(history, what)
    return kept if kept is not None and kept.is_file() else None


def _report_of_journal(options: argparse.Namespace, journal: Path) -> int:
    if options.html is None or any((options.csv, options.json, options.code)):
        raise InputError(
            "Of an ablation, a sweep or advice, report writes --html FILE only. Its figures: the same command "
            "with --journal and --json."
        )
    history = options.history if options.history.is_file() else None  # of advice the run that measured again is there
    with contextlib.closing(open_bench(history, options.models_dir)) as bench:
        write_text(options.html, course_report(course_of_journal(bench, journal)), "--html")
    if options.html != "-":
        say(f"Wrote {options.html}.")
    return 0


def add_commands(add: Add) -> None:
    details = "An arm's script that this machine cannot write is replaced by the line that writes it where it ran."
    sub = add("report", report, "a run that is over as a table, an HTML file, CSV or JSON", details, json=True)
    sub.add_argument(
        "run",
        metavar="RUN",
        help=f"{WHAT}; with --html also the journal of an ablation, a sweep or advice, or its id on the page",
    )
    add_output(sub, "--html", "one file that opens offline: charts, figures, ledger, scripts")
    add_output(sub, "--csv", "a line for each token of the first run, and each sample of memory")
    add_output(sub, "--code", "the code that torch.compile generated for each graph")
    add_all(sub)
    add_history(sub)
    add_models_dir(sub)
