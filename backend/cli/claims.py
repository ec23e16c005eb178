"""`tokendyno claims`: what documents claim, what was measured of it, and the tests to measure it again."""

import argparse
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from backend.claims.declared import Claim, Claims, shipped_claims
from backend.claims.formula import bounds, drifted
from backend.claims.perform import NotMeasured, Stopped, perform
from backend.claims.results import RESULTS, Result, check_keep, keep, machine_name, read_results
from backend.claims.trials import ClaimTest, Device
from backend.claims.view import claims_document, measured_text
from backend.cli.claims_table import claims_text
from backend.cli.exit_codes import FAILED, OK, STOPPED
from backend.cli.files import check_writable, write_json
from backend.cli.history_option import history_of
from backend.cli.progress import close, follow, say, say_notes
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.executors import open_bench
from backend.hardware import Machine
from backend.terminal import screen_of


def claims(options: argparse.Namespace) -> int:
    """Show claims; with --run, measure first what this machine can."""
    check_writable(options.json)
    for given, name in ((options.keep, "--keep"), (options.missing, "--missing"), (options.seconds, "--seconds")):
        if given and not options.run:
            raise InputError(f"{name} is for measuring: add --run.")
    if not (0 <= options.seconds < math.inf):
        raise InputError(f"--seconds is {options.seconds:g}; it must be a number from 0, which is no limit.")
    known = shipped_claims()
    wanted = known.named(options.names)
    folder = options.results or RESULTS
    _check_results(folder, options.keep)
    stored = read_results(known.tests, folder)
    code = _run(options, known, wanted, stored, folder) if options.run else OK
    document = claims_document(known, stored, wanted)
    if options.json != "-":
        print(claims_text(document, screen_of(sys.stdout, options.color), detailed=len(wanted) == 1))
    write_json(options.json, document)
    return code


def _check_results(folder: Path, kept: bool) -> None:
    """InputError before a long measurement, not after it, where results cannot be read or kept there."""
    if kept:
        check_keep(folder)
    elif not folder.is_dir():
        raise InputError(f"There is no folder of results {folder}. Name another with --results, or leave it out.")


def _run(
    options: argparse.Namespace, known: Claims, wanted: Sequence[Claim], stored: dict[str, list[Result]], folder: Path
) -> int:
    """Measure, compare with what is stored, and put what was measured in its place. FAILED where something failed or
    drifted."""
    bench = open_bench(history_of(options))
    say_notes(bench)
    tests = _tests_here(known, wanted, bench.machine())
    here = machine_name(bench.machine().describe())
    before = {name: one for name, found in stored.items() for one in found if one.on == here}
    if options.missing:
        tests = [test for test in tests if test.name not in before]
        if not tests:
            say("Every test of these claims has a result of this machine.")
            return OK
    now: dict[str, Result] = {}
    try:
        bench.start(prewarm=2)
        failed = _measure(bench, tests, options, folder, now)
    except (Stopped, KeyboardInterrupt):
        say(_stopped(len(now), len(tests), options.keep))
        return STOPPED
    finally:
        close(bench)
        for name, result in now.items():
            stored[name] = [*(one for one in stored.get(name, ()) if one.on != here), result]
        drifts = _drifts(known, before, now)
        for said in drifts:
            say(said)
    return FAILED if failed or (drifts and not options.keep) else OK


def _measure(
    bench: Bench, tests: Sequence[ClaimTest], options: argparse.Namespace, folder: Path, now: dict[str, Result]
) -> bool:
    """Carry tests out, one after the other, into `now`. True where one was not measured."""
    begin_s, failed = time.monotonic(), False
    for number, test in enumerate(tests, 1):
        if options.seconds and time.monotonic() - begin_s > options.seconds:
            say(f"{options.seconds:g} s are over: {len(tests) - number + 1} tests were not begun.")
            return True
        say(f"test {number} of {len(tests)}: {test.name}: {test.line}")
        try:
            result = now[test.name] = perform(bench, test, lambda run: follow(bench, run))
        except (NotMeasured, InputError) as error:
            say(f"not measured: {error}")
            failed = True
            continue
        try:
            if options.keep:
                say(f"kept in {keep(result, folder)} ({result.seconds:g} s)")
        except InputError as error:
            say(f"measured, but not kept: {error}")
            failed = True
    return failed


def _stopped(done: int, asked: int, kept: bool) -> str:
    """What is left of an interrupted command, and how to go on."""
    said = f"stopped after {done} of {asked} tests"
    if not done:
        return f"{said}: nothing was measured."
    if kept:
        return f"{said}. Their results are kept: --run --keep --missing goes on with what has none of this machine."
    return f"{said}. Their results are not kept: that takes --keep."


def _tests_here(known: Claims, wanted: Sequence[Claim], machine: Machine) -> list[ClaimTest]:
    """The tests that this machine can run; those that need more GPUs are named. InputError if none is left."""
    device: Device = "cuda" if machine.device == "cuda" else "cpu"
    found = known.tests_of(wanted, device)
    tests = [test for test in found if device == "cpu" or test.gpus <= len(machine.gpus)]
    for test in found:
        if test not in tests:
            say(f"left out: {test.name} needs {test.gpus} GPUs, and this machine has {len(machine.gpus)}.")
    if not tests:
        has = f"{len(machine.gpus) or 'no'} GPU{'s' * (len(machine.gpus) > 1)}"
        raise InputError(f"No test of these claims runs on this machine, which has {has}.")
    return tests


def _drifts(known: Claims, before: Mapping[str, Result], now: Mapping[str, Result]) -> list[str]:
    """Figures that left their kept interval, each in a sentence: of those whose tests were all measured again."""
    said = []
    old, new = ({name: one.samples for name, one in found.items()} for found in (before, now))
    for claim in known.claims:
        for figure in claim.figures:
            was, found = bounds(figure, old), bounds(figure, new)
            if was is None or not {figure.test, figure.over} - {""} <= now.keys():
                continue
            if found is None or drifted(was, found, known.family_of(claim).drift):
                there, here = (measured_text(figure.unit, one) for one in (was, found))
                said.append(f"drift in {claim.name}, {figure.title}: {there} on {before[figure.test].date}, now {here}")
    return said


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
        "--seconds",
        type=float,
        default=0.0,
        metavar="S",
        help="with --run: begin no further test after S seconds; 0: no limit",
    )
    return sub
