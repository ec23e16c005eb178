"""Options of `tokendyno run` for ranks on several machines, and waiting for the others."""

import argparse
import contextlib
from collections.abc import Iterator

from backend import hardware
from backend.arms.parse import parse_arm
from backend.cli.progress import say
from backend.errors import InputError
from backend.executors.hosts.endpoint import parse_endpoint
from backend.executors.hosts.lobby import Lobby
from backend.executors.hosts.model import digest_of
from backend.models import resolve
from backend.optimizations.axes.parallel.axis import ranks_of

MAX_NODES = 64


def add_node_options(sub: argparse.ArgumentParser) -> None:
    """How many machines, and where they meet."""
    sub.add_argument("--nnodes", type=int, default=1, metavar="N", help="machines that share the ranks of `parallel`")
    sub.add_argument(
        "--rdzv-endpoint", default="", metavar="HOST:PORT",
        help="with --nnodes: where the others join, an address of this machine that they reach",
    )  # fmt: skip


@contextlib.contextmanager
def joined(options: argparse.Namespace) -> Iterator[Lobby | None]:
    """Returns once all machines have joined, and lets them go in the end; None for this machine alone."""
    if options.nnodes == 1 and not options.rdzv_endpoint:
        yield None
        return
    lobby = _open(options)
    problem = "it was stopped"
    try:
        say(f"Waiting for {options.nnodes - 1} more: run `tokendyno join --rdzv-endpoint {lobby.endpoint}` there.")
        lobby.gather()
        yield lobby
        problem = ""
    except Exception as error:
        problem = str(error)
        raise
    finally:
        lobby.close(problem)


def _open(options: argparse.Namespace) -> Lobby:
    nodes, ranks = options.nnodes, ranks_of(dict(parse_arm(options.model, options.arm).choices))
    if not 2 <= nodes <= MAX_NODES:
        raise InputError(f"--nnodes is {nodes}; with --rdzv-endpoint it must be from 2 to {MAX_NODES}.")
    if not options.rdzv_endpoint:
        raise InputError("--nnodes needs --rdzv-endpoint HOST:PORT, an address of this machine that the others reach.")
    if ranks == 1:
        raise InputError("--nnodes shares one model over machines: add --arm parallel=tensor-2, say.")
    if ranks % nodes:
        raise InputError(
            f"{ranks} ranks cannot be shared out evenly over {nodes} machines. Change --nnodes or parallel."
        )
    endpoint = parse_endpoint(options.rdzv_endpoint)
    digest = digest_of(resolve(options.model, options.models_dir))
    return Lobby(endpoint, nodes, ranks // nodes, options.model, digest, hardware.detect().device, say)
