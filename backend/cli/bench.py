"""The bench of a command: opened as its options say, closed in any case, and a run on it."""

import argparse
import contextlib
from collections.abc import Iterator

from tokendyno.backend.cli.files import check_folder
from tokendyno.backend.cli.progress import say
from tokendyno.backend.cli.stored import history_of
from tokendyno.backend.config import Request
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.executors.several_machines import Machines
from tokendyno.backend.runs.run import Run


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
