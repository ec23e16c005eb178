"""Results on disk, and what they decide."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tokendyno.backend.claims.declared import Claims, read_claims
from tokendyno.backend.claims.results import Result, file_of, read_results, store
from tokendyno.backend.claims.samples import Doubt
from tokendyno.backend.claims.view import claim_view, claims_document
from tokendyno.backend.errors import InputError

FAMILY = """
name = "family"
title = "A family"
[[test]]
name = "on-gpu"
device = "cuda"
command = "compare"
model = "pocket"
b = "cache=static"
[[test]]
name = "on-cpu"
device = "cpu"
command = "compare"
model = "pocket"
b = "cache=static"
[[claim]]
name = "twice"
title = "Twice as fast"
document = "guide"
place = "somewhere"
said = "It is twice as fast."
about = "gpu"
figures = [
  { test = "on-gpu", title = "faster", metric = "token_s", form = "times", unit = "x", low = 1.9, high = 2.1 },
  { test = "on-cpu", title = "faster", metric = "token_s", form = "times", unit = "x", low = 1.9, high = 2.1 },
]
"""
MACHINES = {
    "cuda": {"device": "cuda", "gpu1": "NVIDIA H200, 140.4 GiB", "cpu": "a CPU", "cores": "16"},
    "cpu": {"device": "cpu", "cpu": "a CPU", "cores": "2"},
}


@pytest.fixture
def claims(tmp_path: Path) -> Claims:
    (tmp_path / "family.toml").write_text(FAMILY, encoding="utf-8")
    return read_claims(tmp_path)


def result(claims: Claims, device: str = "cuda", a: float = 0.4, **more: Any) -> Result:
    test = claims.tests[f"on-{'gpu' if device == 'cuda' else 'cpu'}"]
    samples = {"A": {"token_s": [a] * 3}, "B": {"token_s": [0.2] * 3}}
    versions = {"torch": "2.11", "transformers": "5.22"}
    one = Result("claim-test", 2, test.name, test.line, MACHINES[device], versions, "2026-11-22", 1.5, samples, [])  # type: ignore[arg-type]
    return msgspec.structs.replace(one, **more)


def word(claims: Claims, *results: Result) -> str:
    found: dict[str, list[Result]] = {}
    for one in results:
        found.setdefault(one.test, []).append(one)
    return claim_view(claims, claims.claims[0], found).word


def test_what_was_kept_is_read_again_and_decides(claims: Claims, tmp_path: Path) -> None:
    path = store(result(claims), tmp_path / "results")
    assert path.name == "on-gpu.nvidia-h200.json" and path == file_of("on-gpu", MACHINES["cuda"], tmp_path / "results")
    found = read_results(claims.tests, tmp_path / "results")
    view = claim_view(claims, claims.claims[0], found)
    assert view.word == "confirmed" and view.machines[0].figures[0].measured == "2.00x"
    assert claims_document(claims, found).counts["confirmed"] == 1


def test_a_damaged_result_is_refused(claims: Claims, tmp_path: Path) -> None:
    path = store(result(claims), tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="Measure it again"):
        read_results(claims.tests, tmp_path)


def test_a_result_with_other_repeats_counts(claims: Claims, tmp_path: Path) -> None:
    line = result(claims).command
    assert "--repeats 3" in line
    store(result(claims, command=line.replace("--repeats 3", "--repeats 2")), tmp_path)
    assert read_results(claims.tests, tmp_path)


def test_a_result_of_another_command_does_not_count(claims: Claims, tmp_path: Path) -> None:
    store(result(claims, command="tokendyno compare --model gpt2"), tmp_path)
    assert read_results(claims.tests, tmp_path) == {}


def test_a_cpu_decides_nothing_about_gpus_and_says_so(claims: Claims) -> None:
    view = claim_view(claims, claims.claims[0], {"on-cpu": [result(claims, "cpu")]})
    assert (view.word, view.machines[0].word) == ("not tested here", "confirmed") and "CPU" in view.sentence
    assert word(claims, result(claims, "cpu"), result(claims, a=0.2)) == "not confirmed"


@pytest.mark.parametrize(
    ("status", "expected"),
    [("partial", "partly confirmed"), ("no_effect", "not tested here"), ("failed", "not tested here")],
)
def test_a_choice_that_was_not_in_effect_confirms_nothing(claims: Claims, status: str, expected: str) -> None:
    assert word(claims, result(claims, doubts=[Doubt("B", "cache", status, "why")])) == expected


def test_without_results_a_claim_is_untested(claims: Claims) -> None:
    view = claim_view(claims, claims.claims[0], {})
    assert view.word == "not tested here" and "--run" in view.sentence and set(view.commands) == {"cuda", "cpu"}
