"""`tokendyno compare` and `run`, and how a command opens a bench and carries a run out."""

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.cli.files import check_folder, give
from tokendyno.backend.cli.main import BAD_INPUT, FAILED, OK, STOPPED, CommandFailed
from tokendyno.backend.cli.options import (
    ARM_HELP,
    NO_CHOICE,
    Add,
    add_all,
    add_arm,
    add_number,
    add_pairs,
    add_repeats,
    add_texts,
    add_workload,
    pairs_of,
    passages_of,
    request_of,
)
from tokendyno.backend.cli.progress import follow, say
from tokendyno.backend.cli.run_table import run_blocks
from tokendyno.backend.cli.stored import add_history_option, history_of
from tokendyno.backend.config import MOST_PAIRS, Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.far_rank import hello_of
from tokendyno.backend.executors.several_machines import Machines, parse_endpoint
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations.axes.parallel import ranks_of
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.document import document_of

MAX_NODES = 64


def compare(options: argparse.Namespace) -> int:
    return perform(options, comparison_of(options))


def comparison_of(options: argparse.Namespace) -> Request:
    texts = passages_of(options)
    request = pairs_of(options, request_of(options, {"A": options.a, "B": options.b}, options.repeats or MOST_PAIRS))
    reading = texts if texts or not (options.repeats or options.no_quality) else None
    return msgspec.structs.replace(request, reading=reading)


def run(options: argparse.Namespace) -> int:
    return perform(options, *run_of(options))


def run_of(options: argparse.Namespace) -> tuple[Request, Machines | None]:
    """What `run` asks for, and the machines that share the model."""
    return request_of(options, {"A": options.arm}), _machines_of(options)


def _machines_of(options: argparse.Namespace) -> Machines | None:
    """The machines that share the model; None for this machine alone. InputError where that cannot be."""
    nodes, ranks = options.nnodes, ranks_of(dict(parse_arm(options.model, options.arm).choices))
    if nodes == 1 and not options.rdzv_endpoint:
        return None
    if nodes == 1 or not options.rdzv_endpoint or ranks % nodes:
        raise InputError(
            f"To share one model, give --nnodes (2 to {MAX_NODES} machines), --rdzv-endpoint HOST:PORT (an address of "
            "this machine that the others reach), and an arm whose ranks divide by them, such as parallel=tensor-2."
        )
    facts = resolve(options.model, options.models_dir)
    machines = Machines(parse_endpoint(options.rdzv_endpoint), nodes, ranks // nodes, hello_of(facts))
    machines.check_endpoint()
    return machines


def perform(options: argparse.Namespace, request: Request, machines: Machines | None = None) -> int:
    """Carry a request out and report on it; returns the exit code. `machines`: those that share the model."""
    with carried_out(options, request, machines) as (run, runs, stopped):
        measured = any(arm.t_s or arm.scores or arm.batch.end_s for arm in run.arms.values())
        blocks = run_blocks(run, options.all, runs.reading) if measured else []
        give(options, blocks, document_of(run, runs.reading))
        if not stopped and run.status != "done":
            raise CommandFailed(run.message, BAD_INPUT if run.bad_input else FAILED)
        return STOPPED if stopped else OK


class CarriedOut(NamedTuple):
    """A run that has ended, all other runs, and whether Ctrl-C ended it."""

    run: Run
    runs: RunLog
    stopped: bool


@contextlib.contextmanager
def carried_out(
    options: argparse.Namespace, request: Request, machines: Machines | None = None
) -> Iterator[CarriedOut]:
    """Carry a request out, with progress on standard error. Within it, the other runs can be read."""
    with bench_of(options, machines=machines) as bench:
        bench.check(request)  # what is wrong with it is said before anything is typed elsewhere
        for line in machines.torchrun_lines(options.model, options.models_dir) if machines is not None else ():
            say("On another machine, type:")
            print(f"  {line}", file=sys.stderr, flush=True)  # whole, to be copied
        bench.start()
        run = submitted(bench, request)
        for arm in run.created.arms:
            for verdict in arm.verdicts:
                say(f"{verdict.level} (arm {arm.name}, {verdict.axis}): {verdict.reason}")
        yield CarriedOut(run, bench.runs, follow(bench, run))


@contextlib.contextmanager
def bench_of(
    options: argparse.Namespace, executor: str = "subprocess", machines: Machines | None = None
) -> Iterator[Bench]:
    """A bench that is not started yet. Says what the user should know before a run, and at the end what the history
    could not keep, and what was deleted from it meanwhile."""
    check_folder(options.models_dir)
    bench = open_bench(history_of(options), options.models_dir, executor=executor, machines=machines)
    try:
        for message in bench.messages:
            say(f"note: {message}")
        yield bench
    finally:
        before = bench.messages
        if bench.store.trouble:
            say(f"note: {bench.store.trouble}")
        bench.close()
        for message in bench.store.messages:
            if message not in before:
                say(f"note: {message}")


def submitted(bench: Bench, request: Request, fresh: bool = False) -> Run:
    """A run that is queued now. InputError says what is wrong. `fresh`: with new workers."""
    run = bench.runs.get(bench.submit(request, fresh=fresh))
    assert run is not None
    return run


def add_commands(add: Add) -> None:
    compare_parser = add("compare", compare, "run two arms on one prompt and compare them", json=True)
    compare_parser.add_argument("--a", default="", metavar="ARM", help=f"arm A: {ARM_HELP} {NO_CHOICE}")
    compare_parser.add_argument("--b", default="", metavar="ARM", help="arm B, likewise")
    add_texts(
        compare_parser,
        "a UTF-8 text on which quality is compared, in place of those that come with tokendyno; may be repeated",
    )
    compare_parser.add_argument(
        "--no-quality", action="store_true", help="read no texts after the pairs, as with --repeats and no --text"
    )
    run_parser = add("run", run, "run one arm on one prompt", json=True)
    add_number(run_parser, "--nnodes", 1, "machines that share the ranks of `parallel`", 1, MAX_NODES)
    run_parser.add_argument(
        "--rdzv-endpoint",
        default="",
        metavar="HOST:PORT",
        help="with --nnodes: where they meet, an address of this machine that the others reach",
    )
    add_arm(run_parser)
    add_repeats(run_parser)
    add_pairs(compare_parser)
    for sub in (compare_parser, run_parser):
        add_workload(sub)
        add_history_option(sub)
        add_all(sub)
