"""`tokendyno claims`: a real measurement is kept, compared with what was kept, and drift is an error."""

import json
from pathlib import Path

import msgspec
import pytest

from backend.claims.declared import read_claims
from backend.claims.results import keep, read_results
from backend.cli import claims as command
from backend.cli.main import main

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


@pytest.mark.slow
def test_a_measurement_is_kept_decides_and_is_compared_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only(tmp_path, monkeypatch, "cpu")
    folder, out = tmp_path / "results", tmp_path / "out.json"
    asked = ["claims", "--run", "--no-history", "--results", str(folder)]
    assert main([*asked, "--keep", "--json", str(out)]) == 0
    (claim,) = json.loads(out.read_text(encoding="utf-8"))["claims"]
    assert claim["word"] == "confirmed" and 50 < claim["machines"][0]["figures"][0]["value"] < 100
    assert main([*asked, "--missing"]) == 0 and "has a result" in capsys.readouterr().err
    ((result,),) = read_results(read_claims(tmp_path).tests, folder).values()
    kv_bytes = {"kv_bytes": [result.samples["A"]["kv_bytes"][0] * 4]}
    keep(msgspec.structs.replace(result, samples={**result.samples, "A": {**result.samples["A"], **kv_bytes}}), folder)
    assert main(asked) == 3
    assert "drift in smaller, cache: " in capsys.readouterr().err


def test_what_cannot_be_measured_here_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    only(tmp_path, monkeypatch, "cuda")
    assert main(["claims", "--keep"]) == 2 and "add --run" in capsys.readouterr().err
    assert main(["claims", "--results", str(tmp_path / "none")]) == 0
    assert "not tested here" in capsys.readouterr().out
