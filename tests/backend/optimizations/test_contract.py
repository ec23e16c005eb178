"""What every axis of the registry promises, and that a new one is one new file."""

import ast
import itertools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from backend import export, optimizations
from backend.arms import make_config, parse_arm
from backend.cli import main
from backend.config import Workload
from backend.doctor import doctor_report
from backend.errors import InputError
from backend.hardware import Machine
from backend.models import ModelFacts
from backend.optimizations import Choice, Optimization, Subject, axes, axis_names
from backend.plan import LoadPlan, Plan
from backend.records import Level
from backend.rules import Checked, check
from backend.script import Script
from tests.facts import CPU, MACHINES, NAMES, facts, settled

NAMES_OF_AXES = (
    "loading", "dtype", "quantization", "attention", "kernels", "experts", "projections", "cache", "compile",
    "cuda_graphs", "loop", "shapes", "compile_cache", "speculation",
)  # fmt: skip
AXES = axes()
CHOICES = [(axis, choice) for axis in AXES for choice in axis.choices]
each_axis = pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)
each_choice = pytest.mark.parametrize(("axis", "choice"), CHOICES, ids=[f"{a.name}={c.name}" for a, c in CHOICES])


def subjects(**choices: str) -> list[Subject]:
    """Every model on every machine, under defaults and these choices."""
    full = {axis.name: axis.default for axis in axes()} | choices
    return [Subject(facts(name), machine, full) for name in NAMES for machine in MACHINES.values()]


def bare(subject: Subject) -> Plan:
    return Plan(LoadPlan(subject.facts.source, device=subject.machine.device))


def edited(axis: Optimization, choice: str, subject: Subject, plan: Plan | None = None) -> Plan:
    return axis.edit(plan or bare(subject), axis.resolve(choice, subject), subject)


def test_the_axes_of_this_version() -> None:
    assert axis_names() == NAMES_OF_AXES


@each_axis
def test_an_axis_is_one_file_of_its_name(axis: Optimization) -> None:
    assert type(axis).__module__ == f"backend.optimizations.{axis.name}"
    assert axis.name.isidentifier()
    assert axis.name.islower()
    assert axis.title
    assert axis.summary.endswith(".")


def test_no_two_axes_stand_in_one_place() -> None:
    assert len({axis.name for axis in AXES}) == len({axis.order for axis in AXES}) == len(AXES)


@each_axis
def test_its_default_is_a_choice_without_a_remark(axis: Optimization) -> None:
    """A default may have rules for what a checkpoint brings along (MXFP4), never for a plain model."""
    for subject in subjects():
        assert axis.verdicts(axis.default, subject) == []
    names = [choice.name for choice in axis.choices]
    assert len(set(names)) == len(names) > 1
    with pytest.raises(KeyError):
        axis.choice("no such choice")


@each_axis
def test_its_default_leaves_the_plan_unchanged(axis: Optimization) -> None:
    for subject in subjects():
        assert edited(axis, axis.default, subject) == bare(subject)


@each_choice
def test_a_choice_can_be_written_and_is_explained(axis: Optimization, choice: Choice) -> None:
    assert not set(" =,\"'") & set(choice.name)
    assert choice.title
    assert choice.summary.endswith(".")
    assert parse_arm("pocket", f"{axis.name}={choice.name}") == make_config("pocket", {axis.name: choice.name})


@each_choice
def test_a_choice_edits_the_same_way_twice_and_touches_no_other_source(axis: Optimization, choice: Choice) -> None:
    for subject in subjects(**{axis.name: choice.name}):
        once = edited(axis, choice.name, subject)
        assert edited(axis, choice.name, subject, once) == once
        assert (once.load.source, once.load.device) == (bare(subject).load.source, bare(subject).load.device)


@each_choice
def test_what_a_choice_stands_for_stands_for_itself(axis: Optimization, choice: Choice) -> None:
    for subject in subjects():
        resolved = axis.resolve(choice.name, subject)
        assert axis.choice(resolved)
        assert axis.resolve(resolved, subject) == resolved


@each_axis
def test_a_choice_other_than_the_one_that_runs_anyway_changes_the_plan(axis: Optimization) -> None:
    for subject in subjects():
        usual = axis.resolve(axis.default, subject)
        for choice in axis.choices:
            changed = edited(axis, choice.name, subject) != bare(subject)
            assert changed is (axis.resolve(choice.name, subject) != usual)


def test_edits_of_two_axes_do_not_disturb_each_other() -> None:
    for one, other in itertools.combinations(AXES, 2):
        for a, b in itertools.product(one.choices, other.choices):
            for subject in subjects(**{one.name: a.name, other.name: b.name}):
                there = edited(other, b.name, subject, edited(one, a.name, subject))
                back = edited(one, a.name, subject, edited(other, b.name, subject))
                assert there == back


@each_choice
def test_its_rules_say_why_by_what_source_and_point_at_real_choices(axis: Optimization, choice: Choice) -> None:
    by_name = {known.name: known for known in AXES}
    for rule in choice.rules:
        assert rule.level in get_args(Level)
        assert rule.reason[0].isalnum()
        assert rule.reason.endswith(".")
        assert rule.source
        assert (rule.level == "fallback") == bool(rule.becomes)
        if rule.becomes:
            assert axis.choice(rule.becomes)
        for name, fix in rule.fix:
            assert by_name[name].choice(fix)


@each_choice
def test_its_rules_can_be_asked_of_every_model_on_every_machine(axis: Optimization, choice: Choice) -> None:
    for subject in subjects(**{axis.name: choice.name}):
        for verdict in axis.verdicts(choice.name, subject):
            assert verdict.axis == axis.name


# --- the script -----------------------------------------------------------------------------------

UNWRITTEN = {("loading", "cpu"): "nothing is moved to a device"}
"""Axes that on a machine change the plan and not the script, with the reason."""


def arm_with(axis: Optimization, choice: Choice, machine: Machine) -> tuple[ModelFacts, Checked] | None:
    """The first model with which a choice runs on a machine, with the other choices that it needs."""
    for name in (*NAMES, "bert-base-uncased"):
        checked = settled(facts(name), {axis.name: choice.name}, machine)
        if not checked.blocked:
            return facts(name), checked
    return None


@each_axis
def test_it_writes_nothing_into_a_script_where_the_plan_has_its_default(axis: Optimization) -> None:
    for subject in subjects():
        script = Script()
        axis.write(script, bare(subject))
        assert script == Script()


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@each_choice
def test_a_choice_is_a_script_that_parses(axis: Optimization, choice: Choice, machine: Machine) -> None:
    """On the CPU, and what is blocked there on a GPU with every package."""
    found = arm_with(axis, choice, machine)
    if found is None:
        assert machine is CPU, f"{axis.name}={choice.name} is blocked everywhere"
        return
    model, checked = found
    ast.parse(export.script(checked, model, Workload(prompt="Once")))


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
def test_the_scripts_of_all_choices_are_formatted_and_import_what_they_use(tmp_path: Path) -> None:
    for (axis, choice), (name, machine) in itertools.product(CHOICES, MACHINES.items()):
        if found := arm_with(axis, choice, machine):
            text = export.script(found[1], found[0], Workload(prompt="Once"))
            (tmp_path / f"{name}-{axis.name}-{choice.name.replace('/', '-')}.py").write_text(text)
    for command in (["format", "--diff"], ["check", "--select", "E,F,I"]):
        ran = subprocess.run(["ruff", *command, "--isolated", "--no-cache", tmp_path], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@each_choice
def test_a_choice_that_changes_the_plan_changes_the_script(
    axis: Optimization, choice: Choice, machine: Machine
) -> None:
    found = arm_with(axis, choice, machine)
    if found is None or (axis.name, machine.device) in UNWRITTEN:
        return
    model, checked = found
    without = {name: chosen for name, chosen in checked.requested.items() if name != axis.name}
    plain = check(make_config("m", without), model, machine, Workload(prompt="Once"))
    if plain.plan == checked.plan:
        return
    one, other = (export.script(c, model, Workload(prompt="Once")) for c in (checked, plain))
    assert uncommented(one) != uncommented(other)


def uncommented(script: str) -> list[str]:
    return [line for line in script.splitlines() if not line.startswith("#")]


# --- one new file is one new axis -----------------------------------------------------------------

NEW = '''
"""Made by a test."""

import msgspec

from backend.messages import Finding
from backend.optimizations.base import Choice, Optimization, Rule


class Turbo(Optimization):
    name = "turbo"
    title = "Turbo"
    summary = "Faster."
    default = "off"
    order = 12
    choices = (
        Choice("off", "off", "As it is."),
        Choice("on", "on", "Faster.", (Rule("note", lambda s: True, "It is loud.", "a test"),)),
    )

    def edit(self, plan, name, subject):
        if name == "off":
            return plan
        return msgspec.structs.replace(plan, load=msgspec.structs.replace(plan.load, dtype="float64"))

    def find(self, seen):
        return Finding(self.name, "on" if seen.model == 1 else "off", "heard it")


AXIS = Turbo()
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A second folder of axes, looked at as if it were the first."""
    monkeypatch.setattr(optimizations, "__path__", [*optimizations.__path__, str(tmp_path)])
    known = set(sys.modules)
    axes.cache_clear()
    yield tmp_path
    axes.cache_clear()
    for name in set(sys.modules) - known:
        if name.startswith("backend.optimizations."):
            del sys.modules[name]
            delattr(optimizations, name.rpartition(".")[2])


def test_a_new_file_is_a_new_axis_everywhere(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "turbo.py").write_text(NEW)
    assert axis_names() == ("loading", "dtype", "turbo", *NAMES_OF_AXES[2:])
    config = parse_arm("pocket", "turbo=on")
    assert config.choices == (("turbo", "on"),)
    checked = check(config, facts(), CPU, Workload(prompt="x"))
    assert [verdict.reason for verdict in checked.verdicts] == ["It is loud."]
    assert checked.plan.load.dtype == "float64"
    assert {(row.axis, row.choice) for row in doctor_report(CPU).choices} >= {("turbo", "off"), ("turbo", "on")}
    with pytest.raises(InputError, match="Did you mean 'turbo'"):
        parse_arm("pocket", "turboo=on")
    assert main(["check", "--arm", "turbo=on"]) == 0
    assert "It is loud." in capsys.readouterr().out


def test_a_file_without_an_axis_is_left_alone(folder: Path) -> None:
    (folder / "helper.py").write_text("X = 1\n")
    assert axis_names() == NAMES_OF_AXES


def test_the_new_axis_is_gone_again() -> None:
    assert "turbo" not in axis_names()
