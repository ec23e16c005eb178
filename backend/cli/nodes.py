"""Options of `tokendyno run` for ranks on several machines."""

import argparse

from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.endpoint import parse_endpoint
from tokendyno.backend.executors.far_rank import hello_of
from tokendyno.backend.executors.several_machines import Machines
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations.axes.parallel.axis import ranks_of

MAX_NODES = 64


def add_node_options(sub: argparse.ArgumentParser) -> None:
    """How many machines, and where they meet."""
    sub.add_argument("--nnodes", type=int, default=1, metavar="N", help="machines that share the ranks of `parallel`")
    sub.add_argument(
        "--rdzv-endpoint",
        default="",
        metavar="HOST:PORT",
        help="with --nnodes: where they meet, an address of this machine that the others reach",
    )


def machines_of(options: argparse.Namespace) -> Machines | None:
    """What the options ask for; None for this machine alone. InputError where that cannot be."""
    nodes, ranks = options.nnodes, ranks_of(dict(parse_arm(options.model, options.arm).choices))
    if nodes == 1 and not options.rdzv_endpoint:
        return None
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
    facts = resolve(options.model, options.models_dir)
    found = Machines(parse_endpoint(options.rdzv_endpoint), nodes, ranks // nodes, hello_of(facts))
    found.check_endpoint()
    return found
