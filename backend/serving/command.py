"""`tokendyno serve`, which stands on the library, which stands on the other commands; the parser finds it by name."""

import argparse
import atexit
import contextlib
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING

from tokendyno.app import ANY_ADDRESS, LOOPBACK, in_address
from tokendyno.backend.cli.files import check_folder
from tokendyno.backend.cli.main import FAILED, OK, CommandFailed
from tokendyno.backend.cli.options import Add, add_arm, add_model, add_number
from tokendyno.backend.cli.progress import say
from tokendyno.backend.errors import InputError, RunFailed
from tokendyno.backend.models import resolve
from tokendyno.backend.optimizations import defaults

if TYPE_CHECKING:  # importing it takes a second
    from tokendyno.backend.library.model import Model

DEFAULT_PORT = 8000
USUAL_LENGTH = 2048
KEY = "TOKENDYNO_API_KEY"
CLOSE_S = 5.0
"""How long the step in flight may take at the end."""
PURPOSE = "For demos and experiments: vLLM and SGLang serve in production."


def serve(options: argparse.Namespace) -> int:
    """Load the arm and serve it until a signal comes."""
    check_folder(options.models_dir)
    facts = resolve(options.model, options.models_dir)
    length = options.max_length
    if length is None:
        length = min(USUAL_LENGTH, facts.max_positions or USUAL_LENGTH)
    if facts.max_positions and length > facts.max_positions:
        raise InputError(f"--max-length is {length:,}, but {facts.label} has {facts.max_positions:,} positions.")
    from tokendyno.backend.library.model import load

    try:
        with contextlib.ExitStack() as opened:
            listener = opened.enter_context(_listener(options.host.removeprefix("[").removesuffix("]"), options.port))
            model = load(options.model, options.arm, max_length=length, models_dir=options.models_dir)
            opened.callback(_close, model)
            if facts.random:
                say("note: the weights are random, so every text is noise")
            say("warming up: what the arm compiles or captures is made before the first request")
            model.generate("Hello", max_new_tokens=8, ignore_eos=True)
            _run(options, model, length, listener)
    except RunFailed as error:
        raise CommandFailed(str(error), FAILED) from error
    return OK


def _run(options: argparse.Namespace, model: "Model", length: int, listener: socket.socket) -> None:
    from tokendyno.backend.serving.app import Service
    from tokendyno.backend.serving.server import DrainingServer
    from tokendyno.backend.serving.stream import Turns
    from tokendyno.ui.gate.routes import Hosts

    key, turns = os.environ.pop(KEY, "").strip(), Turns(options.queue, model.at_once)
    host, port = listener.getsockname()[:2]
    local = host in LOOPBACK
    names = [name.strip() for name in options.allow_host.split(",") if name.strip()]
    service = Service(model, options.model, length, turns, key, Hosts(names, machine=not local))
    default = defaults()
    arm = ", ".join(f"{axis}={choice}" for axis, choice in model.choices.items() if choice != default[axis])
    if not key and not local:
        say(f"warning: whoever reaches {options.host} can use this model. Set {KEY} to a key that clients must send.")
    lines = [
        f"{options.model} as {arm or 'it comes'}; prompt and text take up to {length:,} tokens together.",
        PURPOSE,
        f"tokendyno is ready at http://{in_address(ANY_ADDRESS.get(host, host))}:{port}/v1",
    ]
    DrainingServer(service.app(), turns, options.drain_seconds, "\n".join(lines)).run([listener])


def _listener(host: str, port: int) -> socket.socket:
    """A socket that listens before the model is loaded: another server is refused the port at once, which one that is
    bound only may still take, and whoever connects meanwhile waits until requests are answered."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError):
        raise InputError(f"Unknown host {host!r}. Use an address of this machine, such as 127.0.0.1.") from None
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except OSError as error:
        listener.close()
        raise InputError(
            f"Port {port} on {host} cannot be used ({error.strerror}). Choose another with --port."
        ) from None
    return listener


def _close(model: "Model") -> None:
    """Free the model. Where a step takes longer than CLOSE_S, such as that of a long prompt, the process ends."""
    closing = threading.Thread(target=model.close, daemon=True)
    closing.start()
    closing.join(CLOSE_S)
    if closing.is_alive():
        sys.stdout.flush()
        atexit._run_exitfuncs()
        os._exit(OK)


def add_commands(add: Add) -> None:
    """The command and its options."""
    sub = add("serve", serve, "put an arm behind OpenAI's interface", PURPOSE)
    add_model(sub)
    add_arm(sub)
    length = f"most tokens of prompt and text together (default: {USUAL_LENGTH}, or all positions)"
    add_number(sub, "--max-length", None, length)
    sub.add_argument("--host", default="127.0.0.1", help="address to listen on")
    add_number(sub, "--port", DEFAULT_PORT, "port; 0: any", 0, 65535, "PORT")
    sub.add_argument(
        "--allow-host", default="", metavar="NAME,...", help=f"further names of this server, without {KEY}"
    )
    add_number(sub, "--queue", 16, "requests that may wait", 0)
    add_number(sub, "--drain-seconds", 30, "for what runs, after SIGTERM or Ctrl-C", 0, metavar="S")
