"""The entry: bad input is one sentence and exit code 2, and output goes to any terminal or none."""

import argparse
import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.command_line import SHORT, cli, sentence
from tests.support.machines import CPU
from tokendyno.backend import hardware
from tokendyno.backend.cli.help import EXAMPLES
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.parser import make_parser
from tokendyno.backend.errors import InputError
from tokendyno.backend.paths import ROOT

BAD = [
    (["--model", "pocke"], "There is no model 'pocke'. Did you mean 'pocket'?"),
    (["--model", "empty"], "The folder empty has no config.json"),
    (["--model", "cut"], "Download or copy"),
    (["--model", "/dev/zero"], "There is no folder or GGUF file"),
    (["--model", "\x1b[2J"], "cannot be the name of a model"),
    (["--model", "random:bert-base-uncased", "--arm", "cache=static"], "is an encoder"),
    (["--arm", "atention=eager"], "Unknown axis 'atention'. Did you mean 'attention'?"),
    (["--arm", "loop=own"], "Set cache=static."),
    (["--prompt", ""], "The prompt is empty"),
    (["--prompt", "x", "--prompt-file", "p.txt"], "not both"),
    (["--prompt-file", "missing.txt"], "cannot be read (No such file or directory)"),
    (["--prompt-file", "latin.txt"], "is not UTF-8 text"),
    (["--prompt-file", "/dev/zero"], "more than 1,048,576 bytes"),
    (
        ["--max-new-tokens", "0"],
        "--max-new-tokens: must be a whole number from 1 to 32,768, not '0'. See tokendyno run ",
    ),
    (["--chat", "--reasoning-effort", "hgih"], "Did you mean 'high'?"),
    (["--json", "missing/out.json"], "cannot be written (No such file or directory)"),
    (["--json", "empty"], "cannot be written (Is a directory)"),
    (["--models-dir", "missing"], "There is no models folder missing"),
    (["--history", "empty"], "cannot be written (it is not a regular file)"),
    (["--nonsense"], "unrecognized arguments: --nonsense. See tokendyno run --help."),
    (["--a", "cache=static"], "unrecognized arguments: --a cache=static. Did you mean --arm or --all?"),
    (["pocket"], "unrecognized arguments: pocket. Did you mean --model pocket? See tokendyno run --help."),
    (["--color", "blue"], "(choose from 'auto', 'always', 'never'). See tokendyno run --help."),
    (["--" + "q" * 5_000], "unrecognized arguments: --qqq"),
    (["--max-tokens", "3"], "unrecognized arguments: --max-tokens 3. Did you mean --max-new-tokens?"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[ascii(" ".join(a)[:50]) for a, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2(
    room: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    before = sorted(room.rglob("*"))
    code = main(["run", *arguments])
    line = sentence(code, *capsys.readouterr())
    assert says in line
    assert sorted(room.rglob("*")) == before, "nothing was written"
    assert len(line) < 700
    assert not any(ord(letter) < 32 for letter in line)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("compare --repeats 0", "argument --repeats: must be a whole number from 1 to 50, not '0'."),
        ("advise --budget -5m", "Cannot read the time '-5m'. Write a number above 0 with a unit, such as"),
        ("advise --memory -24GiB", "Cannot read the size '-24GiB'. Write a number with a unit, such as"),
        ("history --since -7d", "'-7d'"),
        ("claims nope", "There is no claim 'nope'. All of them: tokendyno claims."),
        ("claims compile-boos", "There is no claim 'compile-boos'. Did you mean 'compile-boost' or "),
    ],
)
def test_a_value_that_is_none_is_refused_with_what_it_may_be(
    capsys: pytest.CaptureFixture[str], arguments: str, says: str
) -> None:
    assert says in sentence(main(arguments.split()), *capsys.readouterr())


def test_every_whole_number_of_every_command_has_a_range() -> None:
    commands = next(a for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction)).choices
    unbounded = {
        f"{name} {action.option_strings}"
        for name, sub in commands.items()
        for action in sub._actions
        if action.type is int
    }
    assert not unbounded
    for name, option in (("compare", "--repeats"), ("sweep", "--rounds"), ("fit", "--gpus"), ("history", "--page")):
        with pytest.raises(InputError, match="must be a whole number from 1"):
            commands[name].parse_args([option, "0"])


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["compare", "--a"], ["models", "--model", "x"]])
def test_a_wrong_command_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert "--help" in sentence(main(arguments), *capsys.readouterr())


@pytest.mark.parametrize("command", ["models", "doctor", "check", "fit"])
def test_every_command_finds_out_first_that_its_document_cannot_be_written(
    room: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert "missing/out.json" in sentence(main([command, "--json", "missing/out.json"]), *capsys.readouterr())


DEAD = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}


def test_a_model_that_is_not_here_is_one_sentence_before_any_worker(tmp_path: Path) -> None:
    ran = cli("run", "--model", "org/name", env={"HF_HOME": str(tmp_path), **DEAD})
    line = sentence(ran.returncode, ran.stdout, ran.stderr)
    assert "The Hub could not be reached for org/name" in line and "random:" in line


def test_stopped_before_it_began(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hardware, "detect", interrupt)
    assert sentence(main(["doctor"]), *capsys.readouterr(), want=130) == "tokendyno: stopped."


def test_an_ascii_terminal_gets_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(hardware, "detect", lambda: replace(CPU, cpu="Prozessor für Bären"))
    assert main(["doctor"]) == 0
    assert b"Prozessor f\\xfcr B\\xe4ren" in raw.getvalue()


def test_without_standard_streams_a_run_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["run", "--model", "pocket", *SHORT, "--no-history"]) == 0
    assert sys.stdin.read() == ""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


def test_output_that_cannot_be_written_is_one_sentence() -> None:
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "tokendyno", "models", "--json", "-"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
        )
    line = sentence(ran.returncode, "", ran.stderr)
    assert line.startswith("tokendyno: The output cannot be written (No space left on device). Free some space")


def test_a_reader_that_goes_away_is_no_traceback_and_takes_no_file_along(tmp_path: Path) -> None:
    file = tmp_path / "models.json"
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "tokendyno", "models", "--json", str(file)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
    assert json.loads(file.read_text())["kind"] == "models"


def test_version_names_the_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"tokendyno {hardware.versions()['tokendyno']}\n"


@pytest.mark.parametrize(
    ("typed", "says"),
    [("doctr", "'doctr'. Did you mean doctor? See tokendyno --help."), ("#", "'#'. Valid: compare, run,")],
)
def test_an_unknown_command_names_those_that_are_near(
    capsys: pytest.CaptureFixture[str], typed: str, says: str
) -> None:
    assert f"Unknown command {says}" in sentence(main([typed]), *capsys.readouterr())


def test_the_line_of_a_run_can_be_checked_and_the_help_of_check_does_not_offer_what_it_does_not_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["--arm", "cache=static", "--max-new-tokens", "8", "--repeats", "3", "--no-history"]
    assert main(["check", "--model", "pocket", *line]) == 0
    capsys.readouterr()
    for command, offered in (("run", True), ("check", False)):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        shown = capsys.readouterr().out
        assert all((option in shown) is offered for option in ("--repeats", "--history", "--no-history"))


@pytest.mark.parametrize("command", EXAMPLES)
def test_every_command_has_examples_and_help_that_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([*filter(None, [command]), "--help"])
    shown = capsys.readouterr().out
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert command or ("exit codes: 0 success" in shown and "NO_COLOR" in shown)
    for line, what in EXAMPLES[command]:
        assert f"  # {what}\n  {line}\n" in shown
