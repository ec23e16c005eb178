"""Options, environment variables and refusals of app.py."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ports import free_port
from tests.support.served import served
from tokendyno import app
from tokendyno.backend.paths import ROOT


def test_defaults_listen_on_this_machine_alone() -> None:
    options = app.parse([], {})
    assert (options.host, options.port, options.auth) == ("127.0.0.1", 7860, None)
    assert (options.share, options.models_dir) == (False, None)
    assert options.history.name == "history.sqlite" and options.limits.mode == "local"


@pytest.mark.parametrize(
    ("arguments", "env", "field", "value"),
    [
        ([], {"TOKENDYNO_PORT": "7000"}, "port", 7000),
        (["--port", "7002"], {"TOKENDYNO_PORT": "7000"}, "port", 7002),
        (["--host", "[::1]"], {}, "host", "::1"),
        (["--auth", "me:a:b"], {}, "auth", ("me", "a:b")),
        ([], {"TOKENDYNO_SHARE": "1"}, "share", True),
        (["--kernels-dir", str(ROOT)], {}, "kernels_dir", ROOT),
        (["--share"], {}, "mode", "public"),
        (["--host", "0.0.0.0"], {}, "mode", "public"),
        (["--host", "0.0.0.0", "--auth", "a:b"], {}, "mode", "team"),
        ([], {"SPACE_ID": "org/space"}, "mode", "public"),
        ([], {"SPACE_ID": "org/space", "TOKENDYNO_AUTH": "a:b"}, "mode", "public"),
    ],
)
def test_options_win_over_the_environment(arguments: list[str], env: dict[str, str], field: str, value: object) -> None:
    options = app.parse(arguments, env)
    assert (options.limits.mode if field == "mode" else getattr(options, field)) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "0"], "from 1 to 65535"),
        (["--auth", "nopassword"], "user:password"),
        (["--mode", "open"], "Unknown mode 'open'"),
        (["--mode", "local", "--host", "0.0.0.0"], "serves loopback only"),
        (["--mode", "public", "--mcp"], "MCP clients keep no cookie"),
        (["--mode", "public", "--kernels-dir", str(ROOT)], "loads no folder of kernels"),
        (["--kernels-dir", "/no/such/folder"], "does not exist"),
        (["--nosuch"], "nrecognized arguments"),
        (["--host", "no.such.host.invalid", "--port", "7999"], "Unknown host"),
    ],
)
def test_a_bad_option_is_one_sentence_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        app.main(arguments)
    said = capsys.readouterr().err
    assert stop.value.code == 2 and words in said and said.count("\n") == 1


def test_a_port_in_use_is_said_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ran = subprocess.run(
            [sys.executable, "app.py", "--port", port],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
            env=os.environ | {"HOME": "/nonexistent"},
        )
    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert f"Port {port}" in ran.stderr and "--port" in ran.stderr


@pytest.mark.parametrize(
    ("arguments", "env", "says"),
    [
        (["--history", "/proc/none/history.sqlite"], {}, "Name another with --history"),
        (["--models", "pocket,nope"], {}, "There is no model 'nope'"),
        ([], {"GRADIO_TEMP_DIR": "/proc/none"}, "The folder of GRADIO_TEMP_DIR, /proc/none, cannot be written"),
        ([], {"TOKENDYNO_DEADLINE_S": "soon"}, "TOKENDYNO_DEADLINE_S must be a positive number of seconds, not 'soon'"),
        (["--mode", "team", "--users", "/nowhere/users.json"], {}, "tokendyno users add NAME"),
    ],
)
def test_what_the_bench_refuses_is_one_sentence_and_exit_code_2(
    tmp_path: Path,
    arguments: list[str],
    env: dict[str, str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    changed = {**os.environ, "TOKENDYNO_HISTORY": str(tmp_path / "h.sqlite"), **env}
    monkeypatch.setattr(os, "environ", changed)  # in which the app leaves things to Gradio and its workers
    monkeypatch.setattr(sys, "stderr", sys.stderr)
    monkeypatch.setattr(app, "end_on_signals", lambda ended: None)
    with pytest.raises(SystemExit) as stop:
        app.main(["--port", str(free_port()), *arguments])
    assert stop.value.code == 2 and says in capsys.readouterr().err


@pytest.mark.slow
def test_a_folder_of_gradio_that_is_not_ours_is_no_obstacle(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (temporary / "gradio").write_text("another user's")
    left = temporary / "tokendyno-page-left"
    left.mkdir()
    with served(tmp_path, env={"TMPDIR": str(temporary), "GRADIO_TEMP_DIR": ""}) as app_:
        (own,) = temporary.glob("tokendyno-page-*")
        assert app_.ask("/").status == 200 and own.stat().st_mode & 0o077 == 0
        assert own != left, "what a process left that was killed is removed"
        ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # under nohup, as the app then does too
        app_.process.send_signal(signal.SIGTERM if ignored else signal.SIGHUP)
        app_.process.wait(30)
    assert [path.name for path in temporary.iterdir()] == ["gradio"], "nothing is left behind"


def test_strangers_get_an_environment_without_the_owners_secrets_and_kernels() -> None:
    given = {"HF_TOKEN": "hf_x", "LOCAL_KERNELS": "a/b=/c", "TOKENDYNO_KERNELS": "/d", "PATH": "/bin"}
    public, team = dict(given), dict(given)
    assert app.withhold(app.parse(["--mode", "public", "--allow-kernels", "a/b"], {}).limits, public) == [
        "HF_TOKEN",
        "LOCAL_KERNELS",
        "TOKENDYNO_KERNELS",
    ]
    assert public == {
        "PATH": "/bin",
        "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1",
        "HF_TOKEN_PATH": os.devnull,
        "TOKENDYNO_ALLOW_KERNELS": "a/b",
    }
    assert app.withhold(app.parse(["--mode", "team"], {}).limits, team) == [] and team == given


@pytest.mark.parametrize(("env", "most"), [({"SPACE_ID": "org/space"}, None), ({}, 256)])
def test_connections_of_one_address_are_not_counted_behind_the_proxy_of_a_space(
    env: dict[str, str], most: int | None
) -> None:
    limits = app.parse(["--mode", "public"], env).limits
    assert limits.address_connections == most and (limits.address_unread_bytes is None) == (most is None)


def test_on_windows_one_sentence_says_where_it_runs_instead() -> None:
    code = "import sys; sys.platform = 'win32'; from tokendyno import app"
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 2 and ran.stderr.startswith("tokendyno: Windows is not supported. Use tokendyno in WSL 2")
