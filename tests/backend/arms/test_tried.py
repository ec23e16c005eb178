"""A pair of choices that no recorded run had is allowed, and said to be untried in one line."""

import pytest

from tests.support.machines import CPU, H200, facts
from tokendyno.backend.arms import tried
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.tried import FILE, Tried, untried_note
from tokendyno.backend.config import Workload
from tokendyno.backend.files.toml import read_toml
from tokendyno.backend.hardware import Machine
from tokendyno.backend.optimizations import all_axes
from tools.tried_pairs import as_toml

WORK = Workload(prompt="Once")


@pytest.fixture(autouse=True)
def record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A record of one pair on a CPU and none on a GPU."""
    pairs = {"cpu": frozenset({("cache=static", "dtype=float32")}), "cuda": frozenset[tuple[str, str]]()}
    monkeypatch.setattr(tried, "tried_pairs", lambda device: pairs[device])


def notes(choices: dict[str, str], machine: Machine = CPU, model: str = "SmolLM2-135M-Instruct") -> list[str]:
    checked = check(make_config(model, choices), facts(model), machine, WORK)
    return [v.reason for v in checked.verdicts if v.reason.startswith("Not tried together")]


def test_a_pair_on_record_is_not_mentioned_and_any_other_is_by_device() -> None:
    both = {"cache": "static", "dtype": "float32"}
    assert notes(both) == []
    assert notes(both, H200) == [
        "Not tried together on a GPU: cache=static with dtype=float32. The ledger tells what was in effect."
    ]
    assert notes({"cache": "static", "dtype": "float16"}) == [
        "Not tried together on a CPU: cache=static with dtype=float16. The ledger tells what was in effect."
    ]


def test_an_untried_arm_runs_and_gets_one_line_however_many_pairs_are_new() -> None:
    many = {"cache": "static", "dtype": "float32", "attention": "eager", "loop": "own"}
    (line,) = notes(many)
    assert line == (
        "Not tried together on a CPU: attention=eager with cache=static, attention=eager with dtype=float32, "
        "attention=eager with loop=own and 2 more. The ledger tells what was in effect."
    )
    config = make_config("SmolLM2-135M-Instruct", many)
    assert check(config, facts("SmolLM2-135M-Instruct"), CPU, WORK).blocked == ()
    note = untried_note(many, "cpu")
    assert note is not None
    assert (note.level, note.axis, note.source) == ("note", "arms", "presets/tried.toml")


def test_what_falls_back_counts_as_what_runs_instead() -> None:
    """On a CPU every compile mode is `default`; sdpa of a model with one KV head per query head is not grouped."""
    (line,) = notes({"cache": "static", "compile": "max-autotune"})
    assert "cache=static with compile=default" in line
    assert "max-autotune" not in line


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_shipped_record_names_real_choices_of_two_axes(device: str) -> None:
    pairs = read_toml(FILE, Tried).pairs(device)
    known = {
        f"{axis.name}={choice.name}" for axis in all_axes() for choice in axis.choices if choice.name != axis.default
    }
    assert pairs
    for one, other in pairs:
        assert {one, other} <= known
        assert one < other
        assert one.partition("=")[0] != other.partition("=")[0]


def test_the_record_is_written_as_it_is_read_without_choices_that_are_gone() -> None:
    found = read_toml(FILE, Tried)
    pairs = {device: found.pairs(device) for device in ("cpu", "cuda")}
    assert as_toml(pairs) == FILE.read_text()
    assert as_toml({**pairs, "cpu": pairs["cpu"] | {("attention=gone", "cache=static")}}) == FILE.read_text()
