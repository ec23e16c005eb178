"""`tokendyno join`: this machine takes part in a run that another one begins."""

import argparse
from collections.abc import Callable

from backend.cli.files import check_folder
from backend.cli.main import FAILED, OK, CommandFailed
from backend.cli.progress import say
from backend.executors.hosts.endpoint import parse_endpoint
from backend.executors.hosts.guest import Ended, Guest


def join(options: argparse.Namespace) -> int:
    """Serve ranks until the first machine is done."""
    check_folder(options.models_dir)
    guest = Guest(parse_endpoint(options.rdzv_endpoint), options.models_dir, say)
    try:
        guest.serve()
    except Ended as error:
        raise CommandFailed(str(error), FAILED) from error
    return OK


def add_join(add: Callable[..., argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """The command's own options."""
    sub = add("join", join, "take part in a run of several machines, which another one begins with --nnodes")
    sub.add_argument(
        "--rdzv-endpoint", required=True, metavar="HOST:PORT", help="as it was given to tokendyno run there"
    )
    return sub
