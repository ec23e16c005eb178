"""The commands as functions: their options are arguments, and their documents are what is returned."""

import argparse
import contextlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tokendyno.backend.cli.advise import advised
from tokendyno.backend.cli.check import checked_arm
from tokendyno.backend.cli.commands import CarriedOut, carried_out, comparison_of, run_of
from tokendyno.backend.cli.fit import fit_document, fit_of
from tokendyno.backend.cli.main import STOPPED, CommandFailed
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.cli.progress import counts_shown, quiet
from tokendyno.backend.cli.quality import quality_of
from tokendyno.backend.cli.sweep import swept
from tokendyno.backend.cli.trials import check_options
from tokendyno.backend.config import Request
from tokendyno.backend.errors import InputError, RunFailed, shown, unknown
from tokendyno.backend.executors.several_machines import Machines
from tokendyno.backend.library.results import (
    AdviceResult,
    Arm,
    CheckResult,
    FitResult,
    QualityResult,
    RunResult,
    SweepResult,
    arm_text,
)
from tokendyno.backend.models import DEFAULT_MODEL
from tokendyno.backend.runs.quality import gate_of
from tokendyno.backend.views.document import document, quality_document

_OF_TERMINALS = {"help", "json", "color", "csv", "all", "sharding", "act", "command"}
"""Options that say how a command prints, or that it does something else."""

_MEASURING = threading.Lock()


def compare(
    model: str = DEFAULT_MODEL, a: Arm = "", b: Arm = "", *, progress: bool = True, **options: Any
) -> RunResult:
    """Run two arms on one prompt, in pairs until they decide. `options`: those of `tokendyno compare`, such as
    `prompt`, `max_new_tokens`, `seconds`, `no_quality`. Raises InputError and RunFailed."""
    with (
        _parsed("compare", progress, options, model=model, a=a, b=b) as parsed,
        _carried_out(parsed, comparison_of(parsed)) as done,
    ):
        return _run_result(done)


def run(model: str = DEFAULT_MODEL, arm: Arm = "", *, progress: bool = True, **options: Any) -> RunResult:
    """Run one arm on one prompt. `options`: those of `tokendyno run`. Raises InputError and RunFailed."""
    with (
        _parsed("run", progress, options, model=model, arm=arm) as parsed,
        _carried_out(parsed, *run_of(parsed)) as done,
    ):
        return _run_result(done)


def quality(
    model: str = DEFAULT_MODEL, a: Arm = "", b: Arm = "", *, progress: bool = True, **options: Any
) -> QualityResult:
    """What arm B predicts otherwise than A. `options`: of `tokendyno quality`. Raises InputError and RunFailed."""
    with (
        _parsed("quality", progress, options, model=model, a=a, b=b) as parsed,
        _carried_out(parsed, quality_of(parsed)) as done,
    ):
        return QualityResult(quality_document(done.run))


def sweep(
    model: str = DEFAULT_MODEL,
    arm: Arm = "",
    *,
    over: Mapping[str, Any],
    progress: bool = True,
    **options: Any,
) -> SweepResult:
    """One arm over batch sizes, lengths and choices: `over={"batch_size": [1, 8]}`. `options`: those of `tokendyno
    sweep`. Raises InputError and RunFailed."""
    with _parsed("sweep", progress, options, model=model, arm=arm, over=over) as parsed, _alone():
        check_options(parsed)
        document, ended = swept(parsed)
        if ended.exit_code() == STOPPED:
            raise KeyboardInterrupt
        return SweepResult(document)


def advise(model: str = DEFAULT_MODEL, *, progress: bool = True, **options: Any) -> AdviceResult:
    """What to use: the best arm for a wish, measured. `options`: those of `tokendyno advise`, such as `wish`, `memory`
    and `budget`. Raises InputError and RunFailed."""
    with _parsed("advise", progress, options, model=model) as parsed, _alone():
        document, ended = advised(parsed)
        if ended.exit_code() == STOPPED:
            raise KeyboardInterrupt
        return AdviceResult(document)


def fit(model: str = DEFAULT_MODEL, *, progress: bool = True, **options: Any) -> FitResult:
    """What of a model fits on a GPU. `options`: those of `tokendyno fit`. Raises InputError."""
    with _parsed("fit", progress, options, model=model) as parsed:
        table, run = fit_of(parsed)
        return FitResult(fit_document(table, run), table)


def check(model: str = DEFAULT_MODEL, arm: Arm = "", *, progress: bool = True, **options: Any) -> CheckResult:
    """What the rules say of an arm, without running it. `options`: those of `tokendyno check`. Raises InputError where
    the arm cannot be understood; one that would be refused is a result."""
    with _parsed("check", progress, options, model=model, arm=arm) as parsed:
        checked, document = checked_arm(parsed)
        return CheckResult(document, checked)


@contextlib.contextmanager
def _parsed(command: str, progress: bool, options: Mapping[str, Any], **named: Any) -> Iterator[argparse.Namespace]:
    """Arguments of a function as the command line parses them: `named`, and further `options`. Within it, failures are
    exceptions of this library."""
    parser = make_parser(command)
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    actions = {action.dest: action for action in commands[command]._actions}
    known = actions.keys() - _OF_TERMINALS
    line = [command]
    for name, value in {**named, **options}.items():
        if name not in known:
            raise unknown(f"argument of td.{command}", name, known - named.keys())
        value = arm_text(value) if name in ("a", "b", "arm") else value
        _check_kind(f"{name} of td.{command}", actions[name], value)
        line += _written(name, value)
    token = quiet.set(not progress)
    try:
        with counts_shown():
            yield parser.parse_args(line)
    except CommandFailed as error:
        raise RunFailed(str(error)) from error
    finally:
        quiet.reset(token)


def _check_kind(name: str, action: argparse.Action, value: Any) -> None:
    """InputError for what the command line would take as another text than was meant."""
    if action.dest in ("prompt", "system") and not isinstance(value, str | None):
        raise InputError(
            f"{name} is {shown(value)}; it must be a text. A chat is chat=True, with a prompt and perhaps a system "
            "message; token ids and more messages are for td.load(...).generate."
        )
    several = action.nargs in ("+", "*") or isinstance(action, argparse._AppendAction)
    if isinstance(value, list | tuple | set | bytes) and not several:
        raise InputError(f"{name} is {shown(value)}; it must be one value.")


def _written(name: str, value: Any) -> list[str]:
    """An argument as it is typed. A list: several values of an option; a mapping: values by name, of `over`."""
    option = f"--{name.replace('_', '-')}"
    match value:
        case None | False:
            return []
        case True:
            return [option]
        case Mapping():
            return [f"{option}={key}={_joined(values)}" for key, values in value.items()]
        case list() | tuple():
            return [f"{option}={part}" for part in value]
        case _:
            return [f"{option}={value}"]


def _joined(values: Any) -> str:
    """Values of `over`: one, or several with commas between."""
    return str(values) if isinstance(values, str) or not isinstance(values, Iterable) else ",".join(map(str, values))


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Measure within it. InputError where another thread measures: both would disturb each other."""
    if not _MEASURING.acquire(blocking=False):
        raise InputError(
            "Another thread of this process measures now, and both runs would disturb each other. Wait for it, or "
            "measure one after the other."
        )
    try:
        yield
    finally:
        _MEASURING.release()


@contextlib.contextmanager
def _carried_out(
    options: argparse.Namespace, request: Request, machines: Machines | None = None
) -> Iterator[CarriedOut]:
    """The run, which has ended well."""
    with _alone(), carried_out(options, request, machines) as done:
        if done.stopped:
            raise KeyboardInterrupt
        if done.run.status != "done":
            raise (InputError if done.run.bad_input else RunFailed)(done.run.message)
        yield done


def _run_result(done: CarriedOut) -> RunResult:
    snapshot = done.run.snapshot()
    gate = gate_of(snapshot, done.runs.reading)
    return RunResult(document(done.run, gate), snapshot, gate)
