"""The command line: one clear sentence for what cannot be done, one document for what was."""

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from backend import hardware
from backend.cli import main
from backend.models import PRESETS_DIR, catalogue, resolve
from backend.optimizations import axes, axis_names
from tests.facts import CPU
from tests.helpers import gone, wait_for

ROOT = Path(__file__).resolve().parents[2]
POCKET = PRESETS_DIR / "models" / "pocket"
MODEL = resolve("pocket")
SHORT = ("--max-new-tokens", "6", "--ignore-eos")


def cli(*arguments: str, cwd: Path = ROOT, env: Mapping[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """`python -m backend ...` as a process of its own."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "backend", *arguments],
        cwd=cwd, env={**os.environ, "PYTHONPATH": path, **(env or {})}, capture_output=True, text=True, timeout=200,
    )  # fmt: skip


def sentence(code: int, out: str, err: str, want: int = 2) -> str:
    """The one sentence of a refusal, after a look at its form."""
    assert code == want, err
    assert out == ""
    assert "Traceback" not in err
    (line,) = err.splitlines()
    assert line.startswith("tokendyno: ")
    assert line.endswith(".")
    return line


# --- bad input, before any worker -----------------------------------------------------------------

BAD = [
    (["--model", "pocke"], "Unknown model 'pocke'. Did you mean 'pocket'?"),
    (["--model", "MISTRAL-7B"], "Did you mean 'Mistral-7B-v0.1'?"),
    (["--model", "empty"], "The folder empty holds no config.json"),
    (["--model", "./empty"], "holds no config.json"),
    (["--model", "pickle"], "The weights in pickle are a pickle (pytorch_model.bin)"),
    (["--model", "cut"], "Download or copy"),
    (["--model", "bare"], "holds no weights (no model.safetensors)"),
    (["--model", "missing.gguf"], "There is no folder or GGUF file 'missing.gguf'"),
    (["--model", "not.gguf"], "is not a GGUF file"),
    (["--model", "/"], "holds no config.json"),
    (["--model", "/dev/zero"], "There is no folder or GGUF file"),
    (["--model", "../../etc"], "'../../etc'"),
    (["--model", "a/b/c"], "Unknown model 'a/b/c'"),
    (["--model", ""], "No model is named"),
    (["--model", "a\0b"], "it holds control characters"),
    (["--model", "a\nb"], "it holds control characters"),
    (["--model", "\x1b[2J"], "it holds control characters"),
    (["--model", "\udcff"], "it holds control characters"),
    (["--model", "a" * 5000], "it is too long"),
    (["--model", "random:"], "No model is named"),
    (["--model", "random:nothing"], "Unknown architecture for random weights 'nothing'"),
    (["--model", "random:org/name"], "Unknown architecture for random weights 'org/name'"),
    (["--model", "https://huggingface.co/gpt2"], "Unknown model"),
    (["--model", "random:bert-base-uncased", "--arm", "cache=static"], "is an encoder"),
    (["--model", "random:bert-base-uncased", "--prompt-tokens", "513"], "has 512 positions"),
    (["--arm", "atention=eager"], "Unknown axis 'atention'. Did you mean 'attention'?"),
    (["--arm", "attention=spda"], "Unknown attention choice 'spda'. Did you mean 'sdpa'?"),
    (["--arm", "unwindow"], "Unknown preset 'unwindow'. Did you mean 'unwindowed'?"),
    (["--arm", "cache=static,cache=dynamic"], "given twice"),
    (["--arm", "compile=default"], "Set cache=static."),
    (["--prompt", ""], "The prompt is empty"),
    (["--prompt", "  \n "], "The prompt is empty"),
    (["--prompt", "\udcff"], "not UTF-8"),
    (["--prompt", "x" * (1 << 20) + "x"], "The prompt has 1,048,577 bytes"),
    (["--prompt", "x", "--prompt-file", "p.txt"], "not both"),
    (["--prompt-file", "missing.txt"], "cannot be read (No such file or directory)"),
    (["--prompt-file", "empty"], "Is a directory"),
    (["--prompt-file", "latin.txt"], "is not UTF-8 text"),
    (["--prompt-file", "/dev/zero"], "more than 1,048,576 bytes"),
    (["--prompt-file", "blank.txt"], "The prompt is empty"),
    (["--prompt-tokens", str(MODEL.max_positions - 1)], "positions"),
    (["--prompt-tokens", "-3"], "prompt_tokens is -3"),
    (["--max-new-tokens", "0"], "max_new_tokens is 0; give a whole number from 1 to 32,768."),
    (["--max-new-tokens", "-5"], "max_new_tokens is -5"),
    (["--max-new-tokens", "32769"], "max_new_tokens is 32769"),
    (["--max-new-tokens", "9" * 30], "max_new_tokens is 9"),
    (["--max-new-tokens", str(MODEL.max_positions)], "do not fit behind a prompt"),
    (["--max-new-tokens", "ten"], "invalid int value: 'ten'"),
    (["--max-new-tokens", "1.5"], "invalid int value"),
    (["--batch-size", "0"], "batch_size is 0"),
    (["--batch-size", "-1"], "batch_size is -1"),
    (["--seed", "-1"], "seed is -1"),
    (["--repeats", "0"], "repeats is 0"),
    (["--temperature", "nan"], "temperature is nan"),
    (["--temperature", "inf"], "temperature is inf"),
    (["--temperature", "-1"], "temperature is -1.0"),
    (["--top-k", "-1"], "top_k is -1"),
    (["--top-k", "5"], "at temperature 0 none is"),
    (["--top-p", "0.5"], "at temperature 0 none is"),
    (["--top-p", "0", "--temperature", "1"], "top_p is 0.0; give a share"),
    (["--top-p", "nan", "--temperature", "1"], "top_p is nan"),
    (["--chat", "--prompt-tokens", "9"], "cannot be cut or repeated"),
    (["--reasoning-effort", "high"], "Switch chat on as well"),
    (["--chat", "--reasoning-effort", "hgih"], "Did you mean 'high'?"),
    (["--arm", "speculation=prompt-lookup", "--batch-size", "2"], "Set speculation=off."),
    (["--json", "missing/out.json"], "cannot be written (No such file or directory)"),
    (["--json", "empty"], "cannot be written (Is a directory)"),
    (["--json", ""], "cannot be written"),
    (["--models-dir", "missing"], "There is no models folder missing"),
    (["--history", "empty"], "cannot be written (Is a directory)"),
    (["--history", "/proc/none/history.sqlite"], "cannot be written"),
    (["--nonsense"], "unrecognized arguments: --nonsense"),
    (["--a", "static"], "unrecognized arguments: --a static"),
]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with every kind of wrong file."""
    for name in ("empty", "pickle", "cut", "bare"):
        (tmp_path / name).mkdir()
    for name in ("pickle", "cut", "bare"):
        shutil.copy(POCKET / "config.json", tmp_path / name)
    (tmp_path / "pickle" / "pytorch_model.bin").write_bytes(b"\x80\x04")
    whole = (POCKET / "model.safetensors").read_bytes()
    (tmp_path / "cut" / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "not.gguf").write_bytes(b"not one")
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "blank.txt").write_text("\n")
    (tmp_path / "p.txt").write_text("One day, a sad robot went to the beach.")
    monkeypatch.chdir(tmp_path)
    return tmp_path


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


def test_a_model_that_cannot_fit_is_refused_before_loading_with_both_figures(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hardware, "machine", lambda: CPU)
    line = sentence(main(["run", "--model", "random:gpt-oss-120b"]), *capsys.readouterr())
    assert "weights 233,658,313,600" in line
    assert f"({CPU.free_bytes:,} bytes) are free" in line
    assert main(["check", "--model", "random:gpt-oss-120b", "--json", "-"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert (found["runnable"], found["free_bytes"]) == (False, CPU.free_bytes)
    assert f"({found['predicted_bytes']['total']:,} bytes" in line
    assert found["predicted_bytes"]["weights"] == 233_658_313_600


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["compare", "--a"], ["models", "--model", "x"]])
def test_a_wrong_command_is_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert "--help" in sentence(main(arguments), *capsys.readouterr())


@pytest.mark.parametrize("command", ["models", "doctor", "check", "fit"])
def test_every_command_finds_out_first_that_its_document_cannot_be_written(
    room: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert "missing/out.json" in sentence(main([command, "--json", "missing/out.json"]), *capsys.readouterr())


BAD_FIT = [
    (["--gpu", "H100"], "Did you mean H100-SXM or H100-NVL or H100-PCIe?"),
    (["--gpu", "MI300X"], "There is no GPU 'MI300X' in the catalogue."),
    (["--vram", "16g"], "24GiB (2^30) or 24GB (10^9)"),
    (["--vram", "24GiB", "--gpu", "T4"], "not allowed with argument"),
    (["--context", "9000"], "Pocket, 5M has 4,096 positions"),
    (["--context", "0"], "give at least 1"),
    (["--batch", "0"], "from 1 to 1,024"),
    (["--gpus", "3", "--gpu", "T4"], "Pocket, 5M cannot be split over 3 GPUs"),
    (["--gpus", "0"], "from 1 to 64"),
    (["--gpus", "two"], "invalid int value"),
    (["--model", "pocke"], "Did you mean 'pocket'?"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD_FIT)
def test_a_fit_that_cannot_be_worked_out_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert says in sentence(main(["fit", *arguments]), *capsys.readouterr())


def test_bad_input_as_a_process() -> None:
    ran = cli("compare", "--model", "pocke")
    assert "Did you mean 'pocket'?" in sentence(ran.returncode, ran.stdout, ran.stderr)


@pytest.mark.parametrize(
    "env", [{"HF_ENDPOINT": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}], ids=["dead", "offline"]
)
def test_a_hub_that_is_not_reached_is_one_sentence(tmp_path: Path, env: dict[str, str]) -> None:
    ran = cli("run", "--model", "org/name", env={"HF_HOME": str(tmp_path), **env})
    line = sentence(ran.returncode, ran.stdout, ran.stderr)
    assert "The Hub could not be reached for org/name" in line
    assert "random:NAME" in line


def test_stopped_before_it_began(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(hardware, "machine", interrupt)
    assert sentence(main(["doctor"]), *capsys.readouterr(), want=130) == "tokendyno: stopped."


# --- models, doctor, check ------------------------------------------------------------------------


def test_models_as_a_table_and_as_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models"]) == 0
    table = capsys.readouterr()
    assert main(["models", "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [model["name"] for model in found["models"]] == [entry.name for entry in catalogue()]
    assert [model["name"] for model in found["models"] if model["default"]] == ["pocket"]
    assert all(entry.name in table.out for entry in catalogue())
    assert table.err == ""


def test_doctor_as_a_process() -> None:
    ran = cli("doctor", "--json", "-")
    found = json.loads(ran.stdout)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert {"machine", "versions", "problems", "choices"} <= set(found)
    assert len(found["choices"]) == sum(len(axis.choices) for axis in axes())


@pytest.mark.parametrize(
    ("arm", "code", "levels"),
    [
        ("", 0, []),
        ("unwindowed", 0, []),
        ("attention=sdpa", 0, ["fallback"]),
        ("dtype=float16", 0, ["note"]),
        ("compile=default", 2, ["blocked"]),
        ("attention=sdpa,compile=default", 2, ["fallback", "blocked"]),
        ("compiled", 0, []),
    ],
)
def test_check_gives_verdicts_with_reasons(
    capsys: pytest.CaptureFixture[str], arm: str, code: int, levels: list[str]
) -> None:
    assert main(["check", "--arm", arm, "--json", "-"]) == code
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert err == ""
    assert [verdict["level"] for verdict in found["verdicts"]] == levels
    assert all(verdict["reason"] for verdict in found["verdicts"])
    assert found["runnable"] is (code == 0)
    assert set(found["requested"]) == set(found["planned"]) == set(axis_names())
    assert main(["check", "--arm", arm]) == code
    shown = capsys.readouterr().out
    assert all(f"{level}: " in shown for level in levels)
    assert all(f"Source: {verdict['source']}" in shown for verdict in found["verdicts"] if verdict["source"])
    assert ("would run" in shown) is (code == 0)
    assert "predicted" in shown


@pytest.mark.parametrize(
    ("model", "says"), [("./bare", "holds no weights"), ("./cut", "again"), ("./pickle", "a pickle")]
)
def test_check_says_would_run_only_of_what_can_be_loaded(
    room: Path, capsys: pytest.CaptureFixture[str], model: str, says: str
) -> None:
    assert says in sentence(main(["check", "--model", model]), *capsys.readouterr())
    assert main(["check", "--model", f"random:{model}"]) == 0


def test_an_ascii_terminal_gets_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    monkeypatch.setattr(hardware, "machine", lambda: replace(CPU, cpu="Prozessor für Bären"))
    assert main(["doctor"]) == 0
    assert b"Prozessor f\\xfcr B\\xe4ren" in raw.getvalue()


def test_without_a_standard_output_nothing_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["models"]) == 0


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "backend", "models"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


# --- runs with real workers -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], str, Path]]:
    """Dynamic against unwindowed across the window: document, standard error, folder with a corrupt history."""
    folder = tmp_path_factory.mktemp("compared")
    (folder / "history.sqlite").write_bytes(b"this is no database " * 100)
    ran = cli(
        "compare", "--a", "cache=dynamic,attention=sdpa", "--b", "cache=unwindowed", "--prompt-tokens", "100",
        "--max-new-tokens", "60", "--ignore-eos", "--json", "-", "--history", "history.sqlite", cwd=folder,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    yield json.loads(ran.stdout), ran.stderr, folder


def test_the_document_on_standard_output_has_every_key_of_the_promise(
    compared: tuple[dict[str, Any], str, Path],
) -> None:
    found, err, _ = compared
    assert {"schema", "model", "machine", "versions", "arms"} <= set(found)
    assert (found["schema"], found["model"], found["status"]) == (1, "pocket", "done")
    assert {"torch", "transformers", "python"} <= set(found["versions"])
    assert [arm["name"] for arm in found["arms"]] == ["A", "B"]
    for arm in found["arms"]:
        assert {
            "name", "requested", "planned", "effective", "evidence", "ttft_s", "latency_s", "kv_bytes",
            "kv_bytes_predicted", "memory_bytes", "text", "token_ids", "phases_s", "load", "summary",
        } <= set(arm)  # fmt: skip
        assert arm["load"]["stages_s"]["read"] > 0 and arm["load"]["peak_bytes"]["host"] > arm["weight_bytes"]
        for record in ("requested", "planned", "effective"):
            assert set(arm[record]) == set(axis_names())
        assert [row["axis"] for row in arm["evidence"]] == list(axis_names())
        assert all({"axis", "requested", "planned", "effective", "proof"} <= set(row) for row in arm["evidence"])
        assert all(row["proof"] for row in arm["evidence"])
        assert {"load", "warmup", "run"} <= set(arm["phases_s"])
    assert "Traceback" not in err


def test_every_series_has_one_entry_for_each_generated_token(compared: tuple[dict[str, Any], str, Path]) -> None:
    for arm in compared[0]["arms"]:
        assert arm["prompt_tokens"] == 100
        series = [
            arm["latency_s"], arm["time_s"], arm["memory_bytes"], arm["token_ids"], *arm["kv_bytes"].values(),
            *arm["kv_bytes_predicted"].values(),
        ]  # fmt: skip
        assert {len(values) for values in series} == {60}
        assert all(latency > 0 for latency in arm["latency_s"])
        assert arm["time_s"] == sorted(arm["time_s"])
        assert arm["ttft_s"] == arm["latency_s"][0]
        assert sum(arm["latency_s"]) == pytest.approx(arm["time_s"][-1])
        assert min(arm["memory_bytes"]) > 50 << 20


def test_kv_bytes_are_as_predicted_and_the_window_is_a_plateau_in_one_arm_alone(
    compared: tuple[dict[str, Any], str, Path],
) -> None:
    dynamic, unwindowed = compared[0]["arms"]
    for arm in (dynamic, unwindowed):
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
    assert MODEL.window is not None
    at = MODEL.window - 1 - 100
    sliding = dynamic["kv_bytes"]["sliding"]
    assert all(a < b for a, b in pairwise(sliding[: at + 1]))
    assert set(sliding[at:]) == {sliding[at]}
    for series in (unwindowed["kv_bytes"]["sliding"], unwindowed["kv_bytes"]["full"], dynamic["kv_bytes"]["full"]):
        assert all(a < b for a, b in pairwise(series))
    assert sliding[: at + 1] == unwindowed["kv_bytes"]["sliding"][: at + 1]


def test_the_two_caches_write_the_same_and_a_fallback_is_told(compared: tuple[dict[str, Any], str, Path]) -> None:
    found, err, _ = compared
    dynamic, unwindowed = found["arms"]
    assert dynamic["token_ids"] == unwindowed["token_ids"]
    assert dynamic["text"] == unwindowed["text"] != ""
    assert (dynamic["effective"]["cache"], unwindowed["effective"]["cache"]) == ("dynamic", "unwindowed")
    assert dynamic["requested"]["attention"] == "sdpa"
    assert dynamic["planned"]["attention"] == dynamic["effective"]["attention"] == "eager"
    assert "fallback (arm A, attention): This architecture has attention sinks" in err
    assert {row["status"] for row in unwindowed["evidence"]} == {"proved"}


def test_progress_is_on_standard_error(compared: tuple[dict[str, Any], str, Path]) -> None:
    err = compared[1]
    assert "A: start | B: " in err
    assert "A: done | B: done" in err
    assert "60/60" in err or "45/60" in err


def test_a_corrupt_history_is_kept_aside_and_a_new_one_begun(compared: tuple[dict[str, Any], str, Path]) -> None:
    found, err, folder = compared
    assert "The history file history.sqlite could not be read" in err
    (aside,) = folder.glob("history.sqlite.unreadable-*")
    assert aside.name in err
    assert aside.read_bytes() == b"this is no database " * 100
    with sqlite3.connect(folder / "history.sqlite") as db:
        assert db.execute("SELECT id, status FROM runs").fetchall() == [(found["run"], "done")]
    db.close()


def test_the_table_the_file_and_what_batch_repeats_and_dtypes_do(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (room / "out.json").write_text("old")
    code = main([
        "compare", "--a", "dtype=float16", "--b", "float32", "--prompt-file", "p.txt", "--batch-size", "3",
        "--repeats", "2", "--json", "out.json", *SHORT,
    ])  # fmt: skip
    out, err = capsys.readouterr()
    assert code == 0, err
    for part in (f"{MODEL.label} on ", "arm A", "arm B", "Time to first token", "median over 2 runs", "KV cache",
                 "(95%)", "as predicted",
                 "dtype      float16 -> float16 -> float16", "dtype      float32 -> float32 -> float32"):  # fmt: skip
        assert part in out, out
    assert "note (arm A, dtype): This model was trained in bfloat16" in err
    found = json.loads((room / "out.json").read_text())
    half, full = found["arms"]
    assert (found["workload"]["batch_size"], found["workload"]["repeats"]) == (3, 2)
    for arm in found["arms"]:
        assert len(arm["token_ids"]) == 6
        assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
        assert arm["summary"]["batch_tokens_per_s"] == pytest.approx(3 * arm["summary"]["tokens_per_s"])
    assert [2 * size for size in half["kv_bytes"]["full"]] == full["kv_bytes"]["full"]
    assert 1.9 < full["weight_bytes"] / half["weight_bytes"] <= 2
    assert sorted(path.name for path in room.iterdir() if "out" in path.name) == ["out.json"]


@pytest.mark.slow
def test_a_seed_gives_one_text_and_identical_arms_are_allowed_and_said(
    room: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sampled = ("--temperature", "1", "--prompt", "One day", "--max-new-tokens", "24", "--ignore-eos")
    assert main(["compare", "--a", "static", "--b", "cache=static", "--seed", "7", *sampled, "--json", "7.json"]) == 0
    out, err = capsys.readouterr()
    assert "A and B are identical: what differs between them is noise." in err
    assert "Both arms wrote the same text" in out
    assert main(["run", "--arm", "static", "--seed", "8", *sampled, "--json", "8.json"]) == 0
    one, same = json.loads((room / "7.json").read_text())["arms"]
    (other,) = json.loads((room / "8.json").read_text())["arms"]
    assert one["token_ids"] == same["token_ids"] != other["token_ids"]
    assert one["kv_bytes"] == one["kv_bytes_predicted"]
    assert one["effective"]["cache"] == "static"
    assert len(set(one["kv_bytes"]["sliding"])) == len(set(one["kv_bytes"]["full"])) == 1


def test_random_weights_run_and_say_that_the_text_is_noise(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--model", "random:pocket", "--json", "out.json", *SHORT]) == 0
    note = "random weights: the text is noise; latency, memory and KV are real"
    assert note in capsys.readouterr().out
    found = json.loads((room / "out.json").read_text())
    assert note in found["model_note"]
    assert found["arms"][0]["kv_bytes"] == found["arms"][0]["kv_bytes_predicted"]
    assert found["arms"][0]["weight_bytes"] == found["arms"][0]["memory_predicted_bytes"]["weights"]


@pytest.mark.slow
def test_random_gpt2_runs_at_its_real_shape(room: Path) -> None:
    assert main(["run", "--model", "random:gpt2", "--json", "out.json", *SHORT]) == 0
    (arm,) = json.loads((room / "out.json").read_text())["arms"]
    assert arm["parameters"] == 124_439_808
    assert arm["effective"]["attention"] == "sdpa"


# --- what only shows in a worker ------------------------------------------------------------------


def test_a_prompt_longer_than_the_models_positions_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", "--prompt", "word " * 9000, *SHORT])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    last = err.splitlines()[-1]
    assert last.startswith("tokendyno: The prompt has ")
    assert last.endswith(f"has {MODEL.max_positions:,} positions. Shorten the prompt.")


@pytest.mark.slow
def test_chat_needs_a_template_and_one_that_loops_is_no_hang(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--chat", *SHORT]) == 2
    assert "has no chat template" in capsys.readouterr().err.splitlines()[-1]
    shutil.copytree(POCKET, room / "chatty")
    template = room / "chatty" / "chat_template.jinja"
    template.write_text("{% for message in messages %}User: {{ message.content }}\n{% endfor %}Pip:")
    words = ("run", "--model", str(room / "chatty"), "--chat", "--prompt", "Who are you?", "--json", "out.json", *SHORT)
    assert main(list(words)) == 0
    (arm,) = json.loads((room / "out.json").read_text())["arms"]
    assert any("as a chat of one message" in note for note in arm["notes"])
    loop = "{% for x in range(99999) %}{% for y in range(99999) %}{% endfor %}{% endfor %}"
    template.write_text(loop)
    assert main(list(words)) == 2
    assert "was not rendered within 10 s" in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.slow
def test_weights_that_belong_to_another_config_are_a_failed_run(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(POCKET, room / "mixed")
    config = json.loads((POCKET / "config.json").read_text())
    config["intermediate_size"] *= 2
    (room / "mixed" / "config.json").write_text(json.dumps(config))
    code = main(["run", "--model", "./mixed", *SHORT])
    out, err = capsys.readouterr()
    assert (code, out) == (3, "")
    assert err.splitlines()[-1].startswith("tokendyno: Arm A failed while it should load. ")
    assert "Traceback" not in err


@pytest.mark.slow
def test_a_download_that_fails_is_a_failed_run_in_one_sentence(tmp_path: Path) -> None:
    ran = cli("run", "--model", "gpt2", env={"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)})
    assert (ran.returncode, ran.stdout) == (3, "")
    last = ran.stderr.splitlines()[-1]
    assert last.startswith("tokendyno: Arm A failed while it should download. ")
    assert "random:NAME" in last
    assert "Traceback" not in ran.stderr


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple["subprocess.Popen[str]", list[str]]]:
    """A long run in the middle of its tokens, and what it has said so far."""
    process = subprocess.Popen(
        [sys.executable, "-m", "backend", "run", "--max-new-tokens", str(MODEL.max_positions - 100), "--ignore-eos",
         "--json", str(tmp_path / "out.json")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    said: list[str] = []
    while not any("A: run" in line for line in said):
        said.append(process.stderr.readline())
        assert said[-1], "it ended too early"
    yield process, said
    process.kill()
    process.communicate()


def worker_of(process: "subprocess.Popen[str]") -> psutil.Process:
    (worker,) = psutil.Process(process.pid).children()
    assert "backend.worker" in worker.cmdline()
    return worker


def test_a_worker_that_is_killed_is_a_failed_run_with_its_partial_result(
    running: tuple["subprocess.Popen[str]", list[str]], tmp_path: Path
) -> None:
    process, _ = running
    worker = worker_of(process)
    wait_for(lambda: worker.cpu_times().user, 5)
    worker.kill()
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "Arm A stopped while it should run: The worker process was killed by SIGKILL" in err.splitlines()[-1]
    assert "Traceback" not in err
    found = json.loads((tmp_path / "out.json").read_text())
    assert (found["status"], found["arms"][0]["state"]) == ("failed", "failed")
    assert "SIGKILL" in found["message"]
    assert out == "" or "arm A" in out


def test_ctrl_c_writes_what_was_measured_and_leaves_no_worker(
    running: tuple["subprocess.Popen[str]", list[str]], tmp_path: Path
) -> None:
    process, _ = running
    pid = worker_of(process).pid
    wait_for(lambda: psutil.Process(pid).cpu_times().user > 0, 5)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    (arm,) = json.loads((tmp_path / "out.json").read_text())["arms"]
    assert arm["state"] == "cancelled"
    assert (
        len(arm["latency_s"])
        == len(arm["token_ids"])
        == len(arm["kv_bytes_predicted"]["full"])
        < MODEL.max_positions - 100
    )
    assert arm["kv_bytes"] == arm["kv_bytes_predicted"]
    wait_for(lambda: gone(pid), 5)


# --- looking ahead ---------------------------------------------------------------------------------


def test_fit_is_a_table_and_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "--model", "Llama-3-8B", "--gpu", "rtx 4090", "--context", "4096", "--batch", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == "" and out.startswith("Llama 3 8B on RTX-4090 (24.0 GiB; 1,008 GB/s") and "Fits: quantization=" in out
    assert main(["fit", "--model", "Llama-3-8B", "--vram", "24GB", "--json", "-"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["gpu"]["memory_bytes"] == 24 * 10**9 and document["context"] == 8192
    assert {row["quantization"] for row in document["rows"]} >= {"none", "bnb-nf4"}
    assert all(row["floor_s"] is None for row in document["rows"])


def test_fit_needs_nothing_but_a_config(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = room / "only"
    bare.mkdir()
    shutil.copy(POCKET / "config.json", bare)
    assert main(["fit", "--model", "only", "--gpu", "T4", "--json", "fit.json"]) == 0
    assert json.loads((room / "fit.json").read_text())["rows"][0]["fits"] is True
    assert "only on T4" in capsys.readouterr().out


def test_the_doctor_shows_a_kept_bandwidth_and_says_when_it_cannot_measure_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from backend import bandwidth, doctor

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(hardware, "machine", lambda: CPU)
    assert main(["doctor", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["bandwidth"] is None
    found = bandwidth.Bandwidth(4e10, 3e10, bandwidth.device_name(CPU), "sum", 1.0)
    monkeypatch.setattr(doctor, "measure", lambda machine: found)
    assert main(["doctor", "--bandwidth"]) == 0
    assert "40 GB/s" in capsys.readouterr().out

    def fail(machine: hardware.Machine) -> bandwidth.Bandwidth:
        raise bandwidth.MeasureFailed("no result within 180 s")

    assert main(["doctor", "--json", "-"]) == 0
    kept = json.loads(capsys.readouterr().out)["bandwidth"]
    assert (kept["read_bytes_per_s"], kept["copy_bytes_per_s"], kept["method"]) == (4e10, 3e10, "sum")
    monkeypatch.setattr(doctor, "measure", fail)
    assert main(["doctor", "--bandwidth"]) == 3
    assert "n/a: it could not be measured: no result within 180 s." in capsys.readouterr().out
