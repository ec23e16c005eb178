"""Serve the dashboard: read the options, build the page, launch. A Space runs this file too.

Neither torch nor transformers is imported in this process: each arm's worker process does that.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

DEFAULT_PORT = 7860
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_UPLOAD = "1kb"


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve.

    auth         (user, password), or None: no login
    kernels_dir  folder for `kernels=local`, or None: the kernels that come with tokendyno
    local_paths  whether visitors may open folders of this machine as models: only where no stranger can visit
    """

    host: str
    port: int
    auth: tuple[str, str] | None
    share: bool
    models_dir: Path | None
    history: Path
    local_paths: bool
    kernels_dir: Path | None = None


class _Parser(argparse.ArgumentParser):
    """Prints one sentence instead of the usage when an option is wrong."""

    def error(self, message: str) -> NoReturn:
        refuse(f"{message[:1].upper()}{message[1:]}. See python app.py --help.")


def refuse(sentence: str) -> NoReturn:
    """Print one sentence about bad input and exit with code 2."""
    print(f"tokendyno: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def parse(arguments: Sequence[str], env: Mapping[str, str]) -> Options:
    """Read the options. They win over environment variables, which win over defaults."""
    from backend.paths import default_history

    hosted = bool(env.get("SPACE_ID"))
    parser = _Parser(prog="app.py", description="The tokendyno dashboard.", allow_abbrev=False)
    host = env.get("TOKENDYNO_HOST") or env.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if hosted else "127.0.0.1")
    port = env.get("TOKENDYNO_PORT") or env.get("GRADIO_SERVER_PORT") or str(DEFAULT_PORT)
    default = env.get("TOKENDYNO_HISTORY") or default_history()
    parser.add_argument("--host", default=host, help=f"address to listen on (TOKENDYNO_HOST; default: {host})")
    parser.add_argument("--port", default=port, help=f"port to listen on (TOKENDYNO_PORT; default: {port})")
    parser.add_argument("--auth", default=env.get("TOKENDYNO_AUTH"), metavar="USER:PASSWORD",
                        help="require a login (TOKENDYNO_AUTH; other users can see options)")  # fmt: skip
    share = env.get("TOKENDYNO_SHARE", "").lower() in ("1", "true", "yes")
    parser.add_argument("--share", action="store_true", default=share,
                        help="open a public gradio.live link (TOKENDYNO_SHARE=1)")  # fmt: skip
    parser.add_argument("--models-dir", default=env.get("TOKENDYNO_MODELS_DIR"), metavar="FOLDER",
                        help="another folder in which models are looked up by name (TOKENDYNO_MODELS_DIR)")  # fmt: skip
    parser.add_argument("--history", default=default, metavar="FILE",
                        help=f"file that keeps the runs (TOKENDYNO_HISTORY; default: {default})")  # fmt: skip
    parser.add_argument("--kernels-dir", default=env.get("TOKENDYNO_KERNELS"), metavar="FOLDER",
                        help="folder with kernel packages for kernels=local (TOKENDYNO_KERNELS)")  # fmt: skip
    given = parser.parse_args(arguments)
    if not given.port.isascii() or not given.port.isdigit() or not 0 < int(given.port) < 65536:
        refuse(f"Port {given.port!r} must be a number from 1 to 65535.")
    models_dir = Path(given.models_dir).expanduser() if given.models_dir else None
    if models_dir is not None and not models_dir.is_dir():
        refuse(f"The models folder {str(models_dir)!r} does not exist. Create it, or omit --models-dir.")
    kernels_dir = Path(given.kernels_dir).expanduser() if given.kernels_dir else None
    if kernels_dir is not None and not kernels_dir.is_dir():
        refuse(f"The kernels folder {str(kernels_dir)!r} does not exist. Create it, or omit --kernels-dir.")
    auth = _login(given.auth)
    private = not hosted and (auth is not None or (not given.share and given.host in LOOPBACK))
    history = Path(given.history).expanduser()
    return Options(given.host, int(given.port), auth, given.share, models_dir, history, private, kernels_dir)


def _login(text: str | None) -> tuple[str, str] | None:
    if not text:
        return None
    user, sign, password = text.partition(":")
    if not (user and sign and password):
        refuse("The login must have the form user:password.")
    return user, password


def check_port(host: str, port: int) -> None:
    """Exit with one sentence if the port cannot be used, before the page is built."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except socket.gaierror:
        refuse(f"Unknown host {host!r}. Use an address of this machine, such as 127.0.0.1.")
    except OSError as error:
        refuse(f"Port {port} on {host} cannot be used ({error.strerror}). Choose another with --port.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    options = parse(sys.argv[1:] if arguments is None else arguments, os.environ)
    check_port(options.host, options.port)
    if options.kernels_dir is not None:
        os.environ["TOKENDYNO_KERNELS"] = str(options.kernels_dir)  # rules and workers read it
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    # Gradio warns about "<script>" in a message, but messages are shown as text
    warnings.filterwarnings("ignore", "A `<script>` tag was found", UserWarning)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")

    from starlette.middleware import Middleware

    from backend.errors import InputError
    from backend.executors import open_bench
    from ui.csp import PolicyMiddleware
    from ui.page import build
    from ui.theme import style, theme

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    try:
        bench = open_bench(options.history, options.models_dir, options.local_paths)
    except InputError as error:
        refuse(str(error))
    for message in bench.messages:
        print(f"note: {message}", file=sys.stderr, flush=True)
    try:
        demo = build(bench)
    except InputError as error:  # a bad file in presets/
        bench.close()
        refuse(str(error))
    try:
        demo.launch(
            server_name=options.host, server_port=options.port, auth=options.auth, share=options.share,
            theme=theme(), css=style(), prevent_thread_lock=True, quiet=True, ssr_mode=False, run_history=False,
            show_error=False, enable_monitoring=False, strict_cors=True, allowed_paths=[], max_file_size=MAX_UPLOAD,
            footer_links=[], app_kwargs={"middleware": [Middleware(PolicyMiddleware)]},
        )  # fmt: skip
        bench.start(prewarm=2, prewarm_after_s=4, measure_when_idle=True)
        shown = "127.0.0.1" if options.host in ("0.0.0.0", "::") else options.host
        print(f"tokendyno is ready at http://{shown}:{options.port}", flush=True)
        if demo.share_url:
            print(f"public link: {demo.share_url}", flush=True)
        ended.wait()
    finally:
        bench.close()
        demo.close(verbose=False)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
