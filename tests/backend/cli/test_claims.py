"""`tokendyno claims`: a real measurement is kept, compared with what was kept, and drift is an error."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.support.machines import H200
from tokendyno.backend.claims.declared import read_claims, shipped_claims
from tokendyno.backend.claims.results import read_results, store
from tokendyno.backend.cli import claims as command
from tokendyno.backend.cli.main import main
from tokendyno.backend.errors import InputError

FAMILY = """
name = "family"
title = "A family"
[[test]]
name = "window"
device = "DEVICE"
command = "compare"
model = "pocket"
a = "dtype=float32,cache=unwindowed"
b = "dtype=float32,cache=static"
prompt_tokens = 160
max_new_tokens = 2
repeats = 1
[[claim]]
name = "smaller"
title = "Windows take less"
document = "blog"
place = "somewhere"
said = "A windowed cache takes less."
about = "any"
figures = [{ test = "window", title = "cache", metric = "kv_bytes", form = "share", unit = "%", high = 1.0 }]
"""


def only(folder: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    """The command knows one small claim."""
    (folder / "family.toml").write_text(FAMILY.replace("DEVICE", device), encoding="utf-8")
    monkeypatch.setattr(command, "shipped_claims", lambda: read_claims(folder))


@pytest.mark.full
def test_a_measurement_is_kept_decides_and_is_compared_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only(tmp_path, monkeypatch, "cpu")
    folder, out = tmp_path / "results", tmp_path / "out.json"
    line = ["claims", "--run", "--no-history", "--results", str(folder)]
    assert main([*line, "--keep", "--json", str(out)]) == 0
    (claim,) = json.loads(out.read_text(encoding="utf-8"))["claims"]
    assert claim["word"] == "confirmed" and 50 < claim["machines"][0]["figures"][0]["value"] < 100
    ((result,),) = read_results(read_claims(tmp_path).tests, folder).values()
    kv_bytes = {"kv_bytes": [result.samples["A"]["kv_bytes"][0] * 4]}
    store(msgspec.structs.replace(result, samples={**result.samples, "A": {**result.samples["A"], **kv_bytes}}), folder)
    assert main(line) == 3
    assert "drift in smaller, cache: " in capsys.readouterr().err


@pytest.mark.full
def test_loading_is_measured_from_files_each_time_anew_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(tmp_path, monkeypatch, "cpu")
    family = tmp_path / "family.toml"
    text = family.read_text(encoding="utf-8").replace('"pocket"', '"random:pocket"').replace("repeats = 1", "loads = 2")
    family.write_text(text, encoding="utf-8")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert main(["claims", "--run", "--keep", "--no-history", "--results", str(tmp_path / "results")]) == 0
    ((result,),) = read_results(read_claims(tmp_path).tests, tmp_path / "results").values()
    assert [len(result.samples[arm]["load_s"]) for arm in "AB"] == [2, 2], "no worker was used again"
    assert len(result.samples["A"]["token_s"]) == 2 * 3
    assert not list(tmp_path.glob("tokendyno-*"))


def test_what_cannot_be_measured_here_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only(tmp_path, monkeypatch, "cuda")
    assert main(["claims", "--keep"]) == 2 and "add --run" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["claims", "--results", str(tmp_path / "empty")]) == 0
    assert "not tested here" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--results", "none"], "no folder of results none"),
        (["--run", "--keep", "--results", "/dev/null"], "/dev/null is no folder, so no result can be kept in it"),
        (["--run", "--keep", "--results", "/dev/null/results"], "cannot be written (Not a directory)"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_a_sentence(
    options: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["claims", *options]) == 2
    assert part in capsys.readouterr().err


def test_tests_that_need_more_gpus_than_there_are_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    known = shipped_claims()
    wanted = known.named(["serving"])
    one_gpu, two_gpus = (replace(H200, gpus=H200.gpus * count) for count in (1, 2))
    assert {test.name for test in command._tests_here(known, wanted, two_gpus)} >= {"tensor-2-8b", "expert-2-20b"}
    capsys.readouterr()
    alone = {"continuous-8b", "continuous-graphs-8b", "loading-4b"}
    assert {test.name for test in command._tests_here(known, wanted, one_gpu)} == alone
    assert "tensor-2-8b needs 2 GPUs, and this machine has 1" in capsys.readouterr().err
    with pytest.raises(InputError, match=r"which has 1 GPU\."):
        command._tests_here(known, known.named(["tensor-parallel"]), one_gpu)
