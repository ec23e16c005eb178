"""`tokendyno claims`: what documents claim, what was measured of it, and the tests to measure it again."""

import argparse
import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokendyno.backend import hardware
from tokendyno.backend.claims.declared import Claim, Claims, ClaimTest, Device, shipped_claims
from tokendyno.backend.claims.formula import bounds, drifted
from tokendyno.backend.claims.results import RESULTS, Result, machine_name, read_results, require_storable, store
from tokendyno.backend.claims.samples import doubts, joined, samples
from tokendyno.backend.claims.view import ClaimsDocument, ClaimView, OnMachine, claims_document, measured_text
from tokendyno.backend.cli.batch import batch_of
from tokendyno.backend.cli.commands import bench_of, comparison_of, run_of, submitted
from tokendyno.backend.cli.files import give, typed_path
from tokendyno.backend.cli.main import FAILED, OK, STOPPED
from tokendyno.backend.cli.options import Add, add_models_dir
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.cli.progress import follow, say
from tokendyno.backend.cli.quality import quality_of
from tokendyno.backend.cli.stored import add_history_option
from tokendyno.backend.cli.terminal import Block, Column, Styled, Table, Verbatim
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.checkpoint import written
from tokendyno.backend.hardware import Machine
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import plural


def claims(options: argparse.Namespace) -> int:
    """Show claims; with --run, measure first what this machine can."""
    if options.keep and not options.run:
        raise InputError("--keep is for measuring: add --run.")
    known = shipped_claims()
    wanted = known.named(options.names)
    folder = options.results or RESULTS
    if options.keep:
        require_storable(folder)
    elif not folder.is_dir():
        raise InputError(f"There is no folder of results {folder}. Name another with --results, or leave it out.")
    stored = read_results(known.tests, folder)
    code = _run(options, known, wanted, stored, folder) if options.run else OK
    document = claims_document(known, stored, wanted)
    give(options, claims_blocks(document, detailed=len(wanted) == 1), document)
    return code


def _run(
    options: argparse.Namespace, known: Claims, wanted: Sequence[Claim], stored: dict[str, list[Result]], folder: Path
) -> int:
    """Measure, compare with what is stored, and replace it. FAILED where something failed or drifted."""
    measured: dict[str, Result] = {}
    stopped = failed = False
    with bench_of(options) as bench:
        tests = _tests_here(known, wanted, bench.machine())
        here = machine_name(bench.machine().describe())
        try:
            bench.start(prewarm=2)
            failed = _measure(bench, tests, folder if options.keep else None, measured)
        except KeyboardInterrupt:
            stopped = True
            kept = " Their results are kept." if options.keep and measured else ""
            say(f"stopped after {len(measured)} of {plural(len(tests), 'test')}.{kept}")
    before = {name: result for name, results in stored.items() for result in results if result.on == here}
    for name, result in measured.items():
        stored[name] = [*(other for other in stored.get(name, ()) if other.on != here), result]
    drifts = _drifts(known, before, measured)
    for drift in drifts:
        say(drift)
    if stopped:
        return STOPPED
    return FAILED if failed or (drifts and not options.keep) else OK


def _measure(bench: Bench, tests: Sequence[ClaimTest], folder: Path | None, measured: dict[str, Result]) -> bool:
    """Carry tests out, one after the other, and keep results in a folder. True where one failed. `measured`: what each
    came to, by name, also where Ctrl-C ends this."""
    failed = False
    for number, test in enumerate(tests, 1):
        say(f"test {number} of {len(tests)}: {test.name}: {test.line}")
        try:
            result = measured[test.name] = _result(bench, test)
        except InputError as error:
            say(f"not measured: {error}")
            failed = True
            continue
        try:
            if folder:
                say(f"kept in {store(result, folder)} ({result.seconds:g} s)")
        except InputError as error:
            say(f"measured, but not kept: {error}")
            failed = True
    return failed


def _result(bench: Bench, test: ClaimTest) -> Result:
    """What one test measured. InputError where it fails, takes longer than its limit or cannot run here."""
    begin_s = time.monotonic()
    with written(test.model) if test.loads else contextlib.nullcontext() as folder:
        request = request_of(test, str(folder or test.model))
        runs = [_carried_out(bench, test, request) for _ in range(test.loads or test.starts or 1)]
    return Result(
        "claim-test",
        2,
        test.name,
        test.line,
        runs[0].created.machine,
        hardware.versions(),
        time.strftime("%Y-%m-%d", time.gmtime()),
        round(time.monotonic() - begin_s, 1),
        joined([samples(run) for run in runs]),
        [doubt for run in runs for doubt in doubts(run)],
    )


def _carried_out(bench: Bench, test: ClaimTest, request: Request) -> Snapshot:
    """One run of a test, which ended well; by new workers where it loads or starts several times."""
    run = submitted(bench, request, fresh=bool(test.loads or test.starts))
    late = threading.Event()

    def end() -> None:
        late.set()
        bench.cancel(run.id)

    timer = threading.Timer(test.limit_s, end)
    timer.daemon = True
    timer.start()
    try:
        stopped = follow(bench, run)
    finally:
        timer.cancel()
    if stopped:
        raise KeyboardInterrupt
    if late.is_set():
        raise InputError(f"{test.name} was ended after {test.limit_s:g} s.")
    if run.status != "done":
        raise InputError(f"{test.name}: {run.message}")
    return run.snapshot()


def request_of(test: ClaimTest, model: str) -> Request:
    """What the command of a test asks for. `model`: in place of the test's, such as a folder."""
    options = make_parser(test.command).parse_args(test.arguments(model))
    match test.command:
        case "run":
            return run_of(options)[0]
        case "compare":
            return comparison_of(options)
        case "batch":
            return batch_of(options)
        case "quality":
            return quality_of(options)


def _tests_here(known: Claims, wanted: Sequence[Claim], machine: Machine) -> list[ClaimTest]:
    """The tests that this machine can run; says which ones need more GPUs. InputError if none is left."""
    device: Device = "cuda" if machine.device == "cuda" else "cpu"
    tests = []
    for test in known.tests_of(wanted, device):
        if device == "cpu" or test.gpus <= len(machine.gpus):
            tests.append(test)
        else:
            say(f"left out: {test.name} needs {test.gpus} GPUs, and this machine has {len(machine.gpus)}.")
    if not tests:
        has = plural(len(machine.gpus), "GPU") if machine.gpus else "no GPU"
        raise InputError(f"No test of these claims runs on this machine, which has {has}.")
    return tests


def _drifts(known: Claims, before: Mapping[str, Result], measured: Mapping[str, Result]) -> list[str]:
    """Figures that left their stored interval, each in a sentence: of those whose tests were all measured again."""
    sentences = []
    old, new = ({name: result.samples for name, result in results.items()} for results in (before, measured))
    for claim in known.claims:
        for figure in claim.figures:
            was, now = bounds(figure, old), bounds(figure, new)
            if was is None or not {figure.test, figure.over} - {""} <= measured.keys():
                continue
            if now is None or drifted(was, now, known.family_of(claim).drift):
                was_text = f"{measured_text(figure.unit, was)} on {before[figure.test].date}"
                now_text = measured_text(figure.unit, now)
                sentences.append(f"drift in {claim.name}, {figure.title}: {was_text}, now {now_text}")
    return sentences


# --- what is shown --------------------------------------------------------------------------------

_COLUMNS = (
    Column("Claim", prose=True),
    Column("Claimed", right=True),
    Column("Measured", right=True, optional=True),
    Column("Verdict"),
    Column(below=True),
)
_FIGURES = (
    Column("Figure", prose=True),
    Column("Claimed", right=True),
    Column("Measured", right=True),
    Column("", prose=True, optional=True),
)

_LEGEND = (
    "Claimed and Measured show a claim's first figure, with its 95% interval in parentheses (of bytes: least to most); "
    "a verdict counts all of them."
)


def claims_blocks(document: ClaimsDocument, detailed: bool) -> list[Block]:
    """A line for each claim with its verdict, or everything about one."""
    if detailed:
        return _detail(document.claims[0])
    counts = ", ".join(f"{count} {word}" for word, count in document.counts.items() if count)
    blocks: list[Block] = [[f"{len(document.claims)} claims: {counts}. {_LEGEND}"]]
    for title in dict.fromkeys(claim.family_title for claim in document.claims):
        rows = [
            [claim.name, claim.claimed or "-", claim.measured or "-", claim.word, _remark(claim)]
            for claim in document.claims
            if claim.family_title == title
        ]
        blocks.append([Styled(title, "bold"), Table(_COLUMNS, rows)])
    return blocks


def _verdict(view: ClaimView | OnMachine) -> str:
    return f"{view.word}: {view.remark}" if view.remark else view.word


def _remark(claim: ClaimView) -> str:
    """What it says, and what the verdict rests on, or why nothing was measured."""
    if not claim.machines:
        return f"{claim.title}. {claim.sentence}"
    return f"{claim.title}.\n{claim.remark[0].upper()}{claim.remark[1:]}." if claim.remark else f"{claim.title}."


def _detail(claim: ClaimView) -> list[Block]:
    differs = [f"Our test differs: {claim.differs}"] if claim.differs else []
    source = f"Source: {claim.document}, {claim.place}."
    blocks: list[Block] = [
        [Styled(claim.title, "bold"), source, f"It says: {claim.said}", *differs],
        [Styled(_verdict(claim), "bold"), claim.sentence],
    ]
    for view in claim.machines:
        rows = [[figure.title, figure.claimed or "-", figure.measured, figure.standing] for figure in view.figures]
        title = Styled(f"{view.machine}, {view.date} ({view.versions}): {_verdict(view)}", "bold")
        blocks.append([title, Table(_FIGURES, rows), *view.doubts])
    for curve in claim.curves:
        drawn, drawn_lines = curve.drawn, curve.drawn.chart.lines
        columns = [Column(title, right=True) for title in (drawn.horizontal, *(line.title for line in drawn_lines))]
        rows = [[place, *(line.texts[at] for line in drawn_lines)] for at, place in enumerate(drawn.places)]
        title = Styled(f"{curve.title} ({drawn.source})", "bold")
        blocks.append([title, Table(tuple(columns), rows), Verbatim(f"  {curve.command}")])
    for device, lines in claim.commands.items():
        where = "on a GPU" if device == "cuda" else "on a CPU"
        blocks.append([f"Measured {where} with:", *(Verbatim(f"  {line}") for line in lines)])
    return blocks


def add_commands(add: Add) -> None:
    details = (
        "What the verdicts mean: docs/metrics.md. Tests of loading write 8 GB of random weights to TMPDIR first, and "
        "delete them afterwards."
    )
    summary = "what documents claim about optimizations, and what was measured of it"
    sub = add("claims", claims, summary, details, json=True)
    sub.add_argument("names", nargs="*", metavar="NAME", help="claims or families of claims (default: all of them)")
    sub.add_argument("--run", action="store_true", help="measure on this machine; exit code 3 where a result drifted")
    sub.add_argument("--keep", action="store_true", help="with --run: write what was measured in the place of the old")
    sub.add_argument(
        "--results", type=typed_path, metavar="FOLDER", help="where results are kept (default: those of tokendyno)"
    )
    add_models_dir(sub)
    add_history_option(sub)
