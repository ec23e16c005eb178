"""The doctor names every choice of every axis, with a reason wherever one does not run as asked."""

import io
import json
from pathlib import Path

import msgspec
import pytest
from rich.cells import cell_len

from tests.support.command_line import text_of
from tests.support.machines import CPU, MACHINES
from tokendyno.backend import hardware
from tokendyno.backend.cli import doctor
from tokendyno.backend.cli.doctor import Report, everything, screenful
from tokendyno.backend.cli.main import main
from tokendyno.backend.cli.terminal import console_of, drawn
from tokendyno.backend.errors import InputError
from tokendyno.backend.hardware import bandwidth
from tokendyno.backend.optimizations import all_axes


def a_screen(report: Report) -> str:
    console = console_of(io.StringIO(), "never")
    console.width = 80
    return drawn(screenful(report), console)


@pytest.mark.parametrize("name", MACHINES)
def test_every_choice_has_a_line(name: str) -> None:
    report = doctor.doctor_report(MACHINES[name])
    document = report.document
    assert [(row.axis, row.choice) for row in document.choices] == [
        (a.name, c.name) for a in all_axes() for c in a.choices
    ]
    assert all(row.why for row in document.choices if not row.usable)
    assert document.problems == []
    text = text_of(everything(report))
    assert all(f"{row.axis}={row.choice}" in text for row in document.choices)
    assert "none found" in text


@pytest.mark.parametrize(
    ("axis", "choice", "usable", "why"),
    [
        ("dtype", "auto", True, ""),
        ("attention", "sdpa", False, "sinks"),
        ("cache", "unwindowed", True, ""),
        ("compile", "default", True, "growing cache"),
        ("loop", "own", True, "with cache=static"),
        ("compile", "reduce-overhead", False, "the same code as default"),
    ],
)
def test_verdicts_on_the_default_model(axis: str, choice: str, usable: bool, why: str) -> None:
    rows = {(row.axis, row.choice): row for row in doctor.doctor_report(CPU).document.choices}
    row = rows[axis, choice]
    assert row.usable is usable
    assert why in row.why
    assert bool(row.why) == bool(why)


def test_the_document_is_json_and_holds_the_same() -> None:
    document = doctor.doctor_report(CPU).document
    printed = json.loads(json.dumps(msgspec.to_builtins(document)))
    assert (printed["kind"], printed["schema"]) == ("doctor", 3)
    assert printed["machine"] == CPU.describe()
    assert len(printed["choices"]) == len(document.choices)
    assert {"axis", "choice", "usable", "why"} == set(printed["choices"][0])


def test_problems_are_shown_and_the_rest_still_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise InputError("The embedded model is gone. Install tokendyno again.")

    monkeypatch.setattr(doctor, "startup_messages", lambda: ["a broken pair"])
    monkeypatch.setattr(doctor, "resolve", missing)
    report = doctor.doctor_report(CPU)
    assert report.document.problems == ["a broken pair", "The embedded model is gone. Install tokendyno again."]
    assert report.document.choices == []
    assert "a broken pair" in a_screen(report)


def test_the_doctor_shows_a_kept_bandwidth_and_says_when_it_cannot_measure_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(hardware, "detect", lambda: CPU)
    assert main(["doctor", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["bandwidth"] is None
    rates = bandwidth.Bandwidth(4e10, 3e10, CPU.name, "sum", 1.0)
    monkeypatch.setattr(doctor, "measure", lambda machine: rates)
    assert main(["doctor", "--bandwidth"]) == 0
    assert "40 GB/s" in capsys.readouterr().out

    def fail(machine: hardware.Machine) -> bandwidth.Bandwidth:
        raise bandwidth.MeasureFailed("no result within 180 s")

    assert main(["doctor", "--json", "-"]) == 0
    recalled = json.loads(capsys.readouterr().out)["bandwidth"]
    assert (recalled["read_bytes_per_s"], recalled["copy_bytes_per_s"], recalled["method"]) == (4e10, 3e10, "sum")
    monkeypatch.setattr(doctor, "measure", fail)
    assert main(["doctor", "--bandwidth"]) == 3
    assert "the measurement failed: no result within 180 s." in capsys.readouterr().out


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("problems", [0, 1])
def test_it_takes_one_screen_and_the_rest_is_there_on_demand(name: str, problems: int) -> None:
    broken = ["Something is wrong with this machine. " * 4] * problems
    report = doctor.doctor_report(MACHINES[name])
    report = report._replace(document=msgspec.structs.replace(report.document, problems=broken))
    lines = a_screen(report).splitlines()
    assert len(lines) < 24 and max(map(cell_len, lines)) <= 80, "one line is left for the prompt"
    assert lines[-1] == "Every version, choice and reason: tokendyno doctor --verbose"
    assert ("No problems found." in lines) is (problems == 0)
    for row in report.document.choices:
        assert row.usable or any(line.startswith(f"  {row.axis} ") for line in lines)
    whole = text_of(everything(report), 80)
    assert max(map(cell_len, whole.splitlines())) <= 80
    assert whole.count("Something is wrong") == problems * 4


def test_downloads_are_listed_with_their_sizes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, size in (("models--org--small", 3 << 20), ("kernels--kernels-community--rotary", 1 << 20)):
        snapshot = tmp_path / name / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        (snapshot / "file").write_bytes(bytes(size))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.delenv("KERNELS_CACHE", raising=False)
    assert main(["doctor", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["cached"] == [
        {"kind": "model", "repo": "org/small", "bytes": 3 << 20},
        {"kind": "kernel", "repo": "kernels-community/rotary", "bytes": 1 << 20},
    ]
    assert main(["doctor"]) == 0
    assert "1 model, 3.00 MiB; 1 kernel, 1.00 MiB" in capsys.readouterr().out
