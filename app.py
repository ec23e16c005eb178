"""Serve the dashboard: read the options, build the page, launch. A Space runs this file too.

Neither torch nor transformers is imported in this process: each arm's worker process does that.
"""

import argparse
import atexit
import importlib.util
import logging
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tokendyno.backend.errors import InputError
from tokendyno.backend.files.own_folder import own_folder
from tokendyno.backend.hosting.limits import ALLOWED_KERNELS, Limits, limits_of
from tokendyno.backend.hosting.users import Accounts, OneAccount, Users
from tokendyno.backend.paths import default_history, default_users

if TYPE_CHECKING:  # importing them takes a second, and must come after `withhold`
    from gradio import Blocks

    from tokendyno.backend.engine.bench import Bench
    from tokendyno.ui.gate.visitors import Visitors

DEFAULT_PORT = 7860
LOOPBACK = ("127.0.0.1", "localhost", "::1")
ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Hosts that mean every address of this machine, and the one under which its own browser finds the page."""
MAX_UPLOAD = "1kb"
GRADIO_FOLDER = "GRADIO_TEMP_DIR"


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve.

    limits       what visitors may do: those of the mode, with the models and kernels that were listed
    why          why it is this mode, where it was not asked for; "" otherwise
    space        whether this is a Space, whose page is shown in a frame behind a proxy
    kernels_dir  folder for `kernels=local`, or None: the kernels that come with tokendyno
    mcp          whether the endpoints are also tools of an MCP server
    """

    limits: Limits
    why: str
    host: str
    port: int
    auth: tuple[str, str] | None
    users: Path
    hosts: tuple[str, ...]
    share: bool
    space: bool
    models_dir: Path | None
    history: Path
    kernels_dir: Path | None = None
    mcp: bool = False


class _Parser(argparse.ArgumentParser):
    """Of `python app.py`. Prints one sentence instead of the usage when an option is wrong."""

    def error(self, message: str) -> NoReturn:
        refuse(f"{message[:1].upper()}{message[1:]}. See python app.py --help.")


def refuse(sentence: str) -> NoReturn:
    """Print one sentence about bad input and exit with code 2."""
    print(f"tokendyno: {sentence}", file=sys.stderr)
    raise SystemExit(2)


def add_options(parser: argparse.ArgumentParser, env: Mapping[str, str]) -> None:
    """Every option. Its default is what the environment says, else that of docs/cli.md."""
    space = bool(env.get("SPACE_ID"))
    host = env.get("TOKENDYNO_HOST") or env.get("GRADIO_SERVER_NAME") or ("0.0.0.0" if space else "127.0.0.1")
    port = env.get("TOKENDYNO_PORT") or env.get("GRADIO_SERVER_PORT") or str(DEFAULT_PORT)
    share, mcp = (_on(env.get(name, "")) for name in ("TOKENDYNO_SHARE", "TOKENDYNO_MCP"))

    def add(name: str, metavar: str, variable: str, what: str, default: str | Path = "", note: str = "") -> None:
        value = env.get(variable) or default
        note = note or (f"default: {value}" if default else "")
        said = f"{what} ({'; '.join(filter(None, [variable, note]))})"
        parser.add_argument(name, default=value, metavar=metavar, help=said)

    parser.add_argument("--host", default=host, help=f"address to listen on (TOKENDYNO_HOST; default: {host})")
    parser.add_argument("--port", default=port, help=f"port to listen on (TOKENDYNO_PORT; default: {port})")
    where = "default: local on loopback, public on a Space"
    add("--mode", "MODE", "TOKENDYNO_MODE", "what visitors may do: local, team, public or show", note=where)
    seen = "other users of this machine can see options"
    add("--auth", "USER:PASSWORD", "TOKENDYNO_AUTH", "require this login", note=seen)
    users = "users who may log in, written by `tokendyno users`"
    add("--users", "FILE", "TOKENDYNO_USERS", users, default_users())
    within = "default: all within the mode's limits"
    add("--models", "NAME,NAME", "TOKENDYNO_MODELS", "the only models that visitors may run", note=within)
    kernels = "kernels of the Hub that mode public may download all the same"
    add("--allow-kernels", "ORG/NAME,...", ALLOWED_KERNELS, kernels)
    names = "further names under which visitors reach this server"
    add("--allow-host", "NAME,...", "TOKENDYNO_ALLOW_HOST", names)
    parser.add_argument(
        "--share", action="store_true", default=share, help="open a public gradio.live link (TOKENDYNO_SHARE=1)"
    )
    models = "another folder in which models are looked up by name"
    add("--models-dir", "FOLDER", "TOKENDYNO_MODELS_DIR", models)
    add("--history", "FILE", "TOKENDYNO_HISTORY", "file that keeps the runs", default_history())
    add("--kernels-dir", "FOLDER", "TOKENDYNO_KERNELS", "folder with kernel packages for kernels=local")
    tools = "offer the endpoints as MCP tools too; needs gradio[mcp] (TOKENDYNO_MCP=1)"
    parser.add_argument("--mcp", action="store_true", default=mcp, help=tools)


def parse(arguments: Sequence[str], env: Mapping[str, str]) -> Options:
    """Read the options. They win over environment variables, which win over defaults."""
    parser = _Parser(prog="app.py", description="The tokendyno dashboard.", allow_abbrev=False)
    add_options(parser, env)
    return options_of(parser.parse_args(arguments), env)


def options_of(args: argparse.Namespace, env: Mapping[str, str]) -> Options:
    """The options that a parser has read, checked."""
    space = bool(env.get("SPACE_ID"))
    if not args.port.isascii() or not args.port.isdigit() or not 0 < int(args.port) < 65536:
        refuse(f"Port {args.port!r} must be a number from 1 to 65535.")
    args.host = args.host.removeprefix("[").removesuffix("]")  # an IPv6 address, as in a browser
    models_dir = _folder("models", args.models_dir)
    kernels_dir = _folder("kernels", args.kernels_dir)
    auth, users = _login(args.auth), Path(args.users).expanduser()
    mode, why = _mode(args, space, auth is not None or users.is_file())
    try:
        limits = limits_of(mode, _listed(args.models), _listed(args.allow_kernels))
        if space:  # all visitors come through one proxy
            limits = replace(limits, address_connections=None, address_unread_bytes=None)
    except InputError as error:
        refuse(str(error))
    if mode == "local" and (space or args.share or args.host not in LOOPBACK):
        refuse(
            "Mode local lets everybody who reaches this machine do everything, so it serves loopback only. Use "
            "--mode team or --mode public, or leave out --host and --share."
        )
    if not limits.kernel_folder and kernels_dir is not None:
        refuse(f"Mode {mode} loads no folder of kernels. Leave out --kernels-dir and unset TOKENDYNO_KERNELS.")
    if args.mcp and mode in ("public", "show"):
        refuse(
            f"MCP clients keep no cookie, by which mode {mode} tells visitors apart. Leave out --mcp, or use --mode "
            "local or --mode team."
        )
    if args.mcp and importlib.util.find_spec("mcp") is None:
        refuse(
            '--mcp needs Gradio\'s extra in an environment of its own: pip install "gradio[mcp]>=6.31,<7". See '
            "docs/hosting.md."
        )
    hosts = (*_listed(args.allow_host), *filter(None, [env.get("SPACE_HOST")]), *([".gradio.live"] * args.share))
    history = Path(args.history).expanduser()
    return Options(
        limits,
        why,
        args.host,
        int(args.port),
        auth,
        users,
        hosts,
        args.share,
        space,
        models_dir,
        history,
        kernels_dir,
        args.mcp,
    )


def _folder(what: str, path: str | None) -> Path | None:
    """The folder that --models-dir or --kernels-dir names, which must exist; None without one."""
    folder = Path(path).expanduser() if path else None
    if folder is not None and not folder.is_dir():
        refuse(f"The {what} folder {str(folder)!r} does not exist. Create it, or omit --{what}-dir.")
    return folder


def _mode(args: argparse.Namespace, space: bool, accounts: bool) -> tuple[str, str]:
    """The mode, and why it is that one where it was not asked for."""
    if args.mode:
        return str(args.mode), ""
    if space:
        return "public", "this is a Space"
    if args.share or args.host not in LOOPBACK:
        where = "--share was given" if args.share else f"others can reach {args.host}"
        return ("team", f"{where}, and there are users") if accounts else ("public", where)
    return "local", ""


def _on(text: str) -> bool:
    return text.lower() in ("1", "true", "yes")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _login(text: str | None) -> tuple[str, str] | None:
    if not text:
        return None
    user, sign, password = text.partition(":")
    if not (user and sign and password):
        refuse("The login must have the form user:password.")
    return user, password


def withhold(limits: Limits, env: MutableMapping[str, str]) -> list[str]:
    """Take from the environment what visitors must not use, before huggingface_hub reads it; returns what was taken."""
    names = []
    if not limits.owner_token:
        names += ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"]
    if not limits.kernel_folder:
        names += ["LOCAL_KERNELS", "TOKENDYNO_KERNELS"]
    withheld = [name for name in names if env.pop(name, None)]
    if not limits.owner_token:
        env.update({"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "HF_TOKEN_PATH": os.devnull})
    env.pop(ALLOWED_KERNELS, None)
    if not limits.hub_kernels:
        env[ALLOWED_KERNELS] = ",".join(limits.kernels)
    return withheld


def check_port(host: str, port: int) -> None:
    """Exit with one sentence if the port cannot be used, before the page is built."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (socket.gaierror, UnicodeError):  # a name that no host can have
        refuse(f"Unknown host {host!r}. Use an address of this machine, such as 127.0.0.1.")
    except OSError as error:
        refuse(f"Port {port} on {host} cannot be used ({error.strerror}). Choose another with --port.")


def in_address(host: str) -> str:
    """A host as it stands in an address: an IPv6 address has brackets there."""
    return f"[{host}]" if ":" in host else host


def own_gradio_folder(env: MutableMapping[str, str]) -> None:
    """Give Gradio a folder of this process's own, which is removed at its end, unless the environment names one: the
    one in /tmp that it would use belongs to whoever started a Gradio app on this machine first."""
    path, stack = env.get(GRADIO_FOLDER), ExitStack()
    try:
        if path:
            Path(path).mkdir(parents=True, exist_ok=True)
            return
        env[GRADIO_FOLDER] = str(stack.enter_context(own_folder("tokendyno-page-")))
    except OSError as error:
        what = f"{GRADIO_FOLDER}, {path}," if path else "temporary files"
        advice = "Name another, or unset it." if path else "Set TMPDIR to one that can."
        refuse(f"The folder of {what} cannot be written ({error.strerror}). {advice}")
    atexit.register(stack.close)


def ask_itself_directly(env: MutableMapping[str, str], host: str) -> None:
    """Leave the page out of what goes through a proxy: Gradio asks it whether it has started."""
    excluded = env.get("no_proxy") or env.get("NO_PROXY") or ""
    env["no_proxy"] = env["NO_PROXY"] = ",".join(filter(None, [excluded, "localhost", "127.0.0.1", host]))


def end_on_signals(ended: threading.Event) -> None:
    """Let the app end in good order on Ctrl-C, SIGTERM and a closed terminal, unless it was started to outlive it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: ended.set())


def accounts(options: Options) -> Accounts | None:
    """Who may log in; None where nobody has to. InputError if the mode needs users and there are none."""
    if options.auth is not None:
        return OneAccount(*options.auth)
    if not options.limits.login:
        return None
    users = Users(options.users)
    if not users.names():
        raise InputError(
            f"Mode {options.limits.mode} needs users, and {options.users} has none. Add one with: "
            "tokendyno users add NAME."
        )
    return users


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted."""
    return serve(parse(sys.argv[1:] if arguments is None else arguments, os.environ))


def serve(options: Options, show: Callable[[str], object] = lambda address: None) -> int:
    """Serve until interrupted. `show` gets the address once the page is there."""
    check_port(options.host, options.port)
    withheld = withhold(options.limits, os.environ)
    if options.kernels_dir is not None:
        os.environ["TOKENDYNO_KERNELS"] = str(options.kernels_dir)  # rules and workers read it
    own_gradio_folder(os.environ)
    os.environ.pop("GRADIO_SERVER_NAME", None)  # read by `parse`; Gradio would try the port there, by IPv4 alone
    ask_itself_directly(os.environ, options.host)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["GRADIO_ANALYTICS_MAX_EVENTS"] = "100"  # Gradio keeps and copies them with every event, and shows nobody
    # Gradio warns about "<script>" in a message, but messages are shown as text
    warnings.filterwarnings("ignore", "A `<script>` tag was found", UserWarning)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    ended = threading.Event()
    end_on_signals(ended)

    from tokendyno.ui.quick_start import quick_start

    with quick_start():
        bench, demo = launch(options, withheld)
    try:
        bench.start(measure_when_idle=options.limits.runs and os.environ.get("TOKENDYNO_IDLE_MEASURE", "") != "off")
        host = ANY_ADDRESS.get(options.host, options.host)
        address = f"http://{in_address(host)}:{options.port}"
        print(f"tokendyno is ready at {address}", flush=True)
        if demo.share_url:
            print(f"public link: {demo.share_url}", flush=True)
        show(address)
        ended.wait()
    finally:
        close(bench, demo)
    return 0


def launch(options: Options, withheld: Sequence[str]) -> "tuple[Bench, Blocks]":
    """Build the page over a bench that is not started yet, and serve it. `withheld`: what was taken before."""
    from tokendyno.backend.executors import open_bench
    from tokendyno.backend.executors.forked import TEMPLATE
    from tokendyno.backend.hardware.zero_gpu import on_zero_gpu
    from tokendyno.backend.models import check_reference
    from tokendyno.ui.api import answer_json
    from tokendyno.ui.gate.connections import bound_connections
    from tokendyno.ui.gate.visitors import Visitors
    from tokendyno.ui.page import build

    limits = options.limits
    if limits.runs and not on_zero_gpu():
        TEMPLATE.begin()  # a worker's imports take as long as the page: who presses at once waits 1.7 s less
    try:
        for model in limits.models:
            check_reference(model, options.models_dir, local_paths=limits.local_paths)
        visitors = Visitors(limits, accounts(options), framed=options.space, forwarded=options.space)
        bench = open_bench(options.history, options.models_dir, limits, "zero-gpu" if on_zero_gpu() else "subprocess")
    except InputError as error:
        refuse(str(error))
    if options.why:
        print(f"note: mode {limits.mode}, since {options.why}; see docs/hosting.md", file=sys.stderr, flush=True)
    if withheld:
        print(f"note: mode {limits.mode} does not use {', '.join(withheld)}", file=sys.stderr, flush=True)
    for message in bench.messages:
        print(f"note: {message}", file=sys.stderr, flush=True)
    try:
        demo = build(bench, logins=visitors.must_log_in, mcp=options.mcp)
    except InputError as error:  # a bad file in presets/
        bench.close()
        refuse(str(error))
    try:
        _serve(demo, bench, options, visitors)
        if demo.mcp_server_obj is not None:
            answer_json(demo.mcp_server_obj)
        bound_connections(demo.server, limits)
    except OSError as error:  # Gradio also wants this port on 127.0.0.1, whatever the host
        close(bench, demo)
        refuse(f"The page cannot be served ({error}). Choose another port with --port.")
    except BaseException:
        close(bench, demo)
        raise
    return bench, demo


def _serve(demo: "Blocks", bench: "Bench", options: Options, visitors: "Visitors") -> None:
    """Listen: the gate is in front of Gradio's own app."""
    from starlette.middleware import Middleware

    from tokendyno.ui.compress import Compressed
    from tokendyno.ui.csp import PolicyMiddleware
    from tokendyno.ui.files import Files
    from tokendyno.ui.gate.gate import Gate
    from tokendyno.ui.gate.routes import Hosts
    from tokendyno.ui.page import index_page
    from tokendyno.ui.theme import style, theme

    limits = options.limits
    demo.launch(
        server_name=in_address(options.host),
        server_port=options.port,
        share=options.share,
        state_session_capacity=limits.sessions,
        theme=theme(),
        css=style(),
        prevent_thread_lock=True,
        quiet=True,
        ssr_mode=False,
        run_history=False,
        _frontend=False,  # else Gradio asks its own page, and gives up on a busy machine or behind HTTP_PROXY
        show_error=False,
        enable_monitoring=False,
        strict_cors=True,
        allowed_paths=[],
        max_file_size=MAX_UPLOAD,
        footer_links=[],
        mcp_server=options.mcp,
        app_kwargs={
            "middleware": [
                Middleware(Compressed),
                Middleware(PolicyMiddleware, framed=options.space, finish=index_page(bench)),
                Middleware(
                    Gate,
                    blocks=demo,
                    hosts=Hosts(options.hosts, machine=limits.mode != "local"),
                    visitors=visitors,
                    mcp=options.mcp,
                    files=Files(bench),
                ),
            ]
        },
    )


def close(bench: "Bench", demo: "Blocks") -> None:
    """End all workers, then stop serving."""
    bench.close()
    demo.close(verbose=False)


if __name__ == "__main__":
    raise SystemExit(main())
