"""`tokendyno claims`: what documents claim, what was measured of it, and the tests to measure it again."""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from backend.claims.declared import Claim, Claims, shipped_claims
from backend.claims.formula import bounds, drifted
from backend.claims.perform import NotMeasured, Stopped, perform
from backend.claims.results import RESULTS, Result, keep, machine_name, read_results
from backend.claims.trials import ClaimTest, Device
from backend.claims.view import claims_document, measured_text
from backend.cli.claims_table import claims_text
from backend.cli.commands import FAILED, OK, STOPPED
from backend.cli.files import check_writable, write_json
from backend.cli.history_option import history_of
from backend.cli.progress import close, follow, say, say_notes
from backend.errors import InputError
from backend.executors import open_bench
from backend.terminal import screen_of


def claims(options: argparse.Namespace) -> int:
    """Show claims; with --run, measure first what this machine can."""
    check_writable(options.json)
    for given, name in ((options.keep, "--keep"), (options.missing, "--missing"), (options.seconds, "--seconds")):
        if given and not options.run:
            raise InputError(f"{name} is for measuring: add --run.")
    known = shipped_claims()
    wanted = known.named(options.names)
    folder = options.results or RESULTS
    stored = read_results(known.tests, folder)
    code = _run(options, known, wanted, stored, folder) if options.run else OK
    document = claims_document(known, stored, wanted)
    if options.json != "-":
        print(claims_text(document, screen_of(sys.stdout, options.color), detailed=len(wanted) == 1))
    write_json(options.json, document)
    return code


def _run(
    options: argparse.Namespace, known: Claims, wanted: Sequence[Claim], stored: dict[str, list[Result]], folder: Path
) -> int:
    """Measure, compare with what is stored, and put what was measured in its place. FAILED where something failed or
    drifted."""
    bench = open_bench(history_of(options))
    say_notes(bench)
    device: Device = "cuda" if bench.machine().device == "cuda" else "cpu"
    tests = known.tests_of(wanted, device)
    if options.missing:
        here = machine_name(bench.machine().describe())
        tests = [test for test in tests if all(result.on != here for result in stored.get(test.name, ()))]
        if not tests:
            say("Every test of these claims has a result of this machine.")
            return OK
    if not tests:
        raise InputError(f"No test of {'these claims' if options.names else 'any claim'} runs on this machine, which "
                         f"has {'a GPU' if device == 'cuda' else 'no GPU'}.")  # fmt: skip
    begin_s, bad = time.monotonic(), 0
    try:
        bench.start(prewarm=2)
        for number, test in enumerate(tests, 1):
            if options.seconds and time.monotonic() - begin_s > options.seconds:
                say(f"{options.seconds:g} s are over: {len(tests) - number + 1} tests were not begun.")
                return FAILED
            say(f"test {number} of {len(tests)}: {test.name}: {test.line}")
            try:
                result = perform(bench, test, lambda run: follow(bench, run))
            except (NotMeasured, InputError) as error:
                say(f"not measured: {error}")
                bad += 1
                continue
            bad += _take(known, test, result, stored, options.keep)
            if options.keep:
                say(f"kept in {keep(result, folder)} ({result.seconds:g} s)")
    except Stopped:
        return STOPPED
    finally:
        close(bench)
    return FAILED if bad else OK


def _take(known: Claims, test: ClaimTest, result: Result, stored: dict[str, list[Result]], kept: bool) -> bool:
    """Put a new result in the place of this machine's. True where a figure drifted, and the new one is not kept."""
    before = next((one for one in stored.get(test.name, ()) if one.on == result.on), None)
    found = False
    for claim in known.claims:
        for figure in claim.figures:
            if before is None or figure.test != test.name or figure.over:
                continue
            was = bounds(figure, {test.name: before.samples})
            now = bounds(figure, {test.name: result.samples})
            if was is not None and (now is None or drifted(was, now, known.family_of(claim).drift)):
                said = f"{measured_text(figure.unit, was)} on {before.date}, now {measured_text(figure.unit, now)}"
                say(f"drift in {claim.name}, {figure.title}: {said}")
                found = True
    others = [one for one in stored.get(test.name, ()) if one is not before]
    stored[test.name] = [*others, result]
    return found and not kept


def add_claims(add: Callable[..., argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command's options."""
    sub = add("claims", claims, "what documents claim about optimizations, and what was measured of it")
    sub.add_argument("names", nargs="*", metavar="NAME", help="claims or families of claims (default: all of them)")
    sub.add_argument("--run", action="store_true", help="measure on this machine; exit code 3 where a result drifted")
    sub.add_argument("--keep", action="store_true", help="with --run: write what was measured in the place of the old")
    sub.add_argument("--missing", action="store_true", help="with --run: only tests without a result of this machine")
    sub.add_argument(
        "--results", type=Path, metavar="FOLDER", help="where results are kept (default: those of tokendyno)"
    )
    sub.add_argument(
        "--seconds", type=float, default=0.0, metavar="S", help="with --run: begin no further test after S seconds"
    )
    return sub
