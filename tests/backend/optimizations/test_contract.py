"""What every axis of the registry promises, and that a new one is two new files: the axis, and its witness."""

import functools
import itertools
import pkgutil
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import gradio as gr
import pytest

from tests.support.machines import CPU, MACHINES, NAMES, facts, settled
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config, parse_arm
from tokendyno.backend.arms.remedies import least_harm
from tokendyno.backend.cli.main import main
from tokendyno.backend.config import Workload
from tokendyno.backend.counts import RunCounts
from tokendyno.backend.evidence import Level
from tokendyno.backend.export import script as script_export
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import Optimization, Subject, all_axes, axes, axis_names, subject_of
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.script.parts import Script
from tokendyno.backend.script.source import WIDTH
from tokendyno.backend.worker import witness
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness.batching import BY_AXIS
from tokendyno.ui.compare.page import arm_controls, titles

AXES = all_axes()
ROOT = Path(__file__).parents[3]
CHOICES = [(axis, choice) for axis in AXES for choice in axis.choices]
each_axis = pytest.mark.parametrize("axis", AXES, ids=lambda axis: axis.name)


def subjects(**choices: str) -> list[Subject]:
    """Every model on every machine, under defaults and these choices."""
    full = {axis.name: axis.default for axis in all_axes()} | choices
    return [subject_of(facts(name), machine, full) for name in NAMES for machine in MACHINES.values()]


def bare(subject: Subject) -> Plan:
    return Plan(LoadPlan(subject.facts.source, device=subject.machine.device))


def edited(axis: Optimization, choice: str, subject: Subject, plan: Plan | None = None) -> Plan:
    return axis.edit(plan or bare(subject), axis.resolve(choice, subject), subject)


def test_axes_come_in_their_declared_order_and_edit_the_load_before_the_generation() -> None:
    assert [axis.order for axis in AXES] == sorted(axis.order for axis in AXES)
    loads = [edits_load(axis) for axis in AXES]
    assert loads == sorted(loads, reverse=True)


def edits_load(axis: Optimization) -> bool:
    """Whether some choice of the axis changes how the model is loaded."""
    return any(
        edited(axis, choice.name, subject).load != bare(subject).load
        for subject in subjects()
        for choice in axis.choices
    )


@each_axis
def test_an_axis_is_one_file_of_its_name_or_one_of_many_requests(axis: Optimization) -> None:
    file = "batching" if axis.many_requests else axis.name
    assert type(axis).__module__ == f"tokendyno.backend.optimizations.axes.{file}"
    assert axis.name.isidentifier()
    assert axis.name.islower()
    assert axis.title
    assert axis.summary.endswith(".")


def test_each_axis_has_a_witness_and_each_witness_an_axis() -> None:
    alone = {axis.name for axis in AXES if not axis.many_requests}
    assert {module.name for module in pkgutil.iter_modules(witness.__path__)} == alone | {"batching"}
    assert set(BY_AXIS) == set(axis_names()) - alone


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


@each_axis
def test_a_choice_can_be_written_and_is_explained(axis: Optimization) -> None:
    for choice in axis.choices:
        assert not set(" =,\"'") & set(choice.name)
        assert choice.title
        assert choice.summary.endswith(".")


@each_axis
def test_a_choice_edits_the_same_way_twice_and_touches_no_other_source(axis: Optimization) -> None:
    for choice in axis.choices:
        for subject in subjects(**{axis.name: choice.name}):
            once = edited(axis, choice.name, subject)
            assert edited(axis, choice.name, subject, once) == once
            assert (once.load.source, once.load.device) == (bare(subject).load.source, bare(subject).load.device)


@each_axis
def test_what_a_choice_stands_for_stands_for_itself(axis: Optimization) -> None:
    for choice in axis.choices:
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
    for first, second in itertools.combinations(AXES, 2):
        for a, b in itertools.product(first.choices, second.choices):
            for subject in subjects(**{first.name: a.name, second.name: b.name}):
                there = edited(second, b.name, subject, edited(first, a.name, subject))
                back = edited(first, a.name, subject, edited(second, b.name, subject))
                assert there == back


@each_axis
def test_its_rules_say_why_by_what_source_and_point_at_real_choices(axis: Optimization) -> None:
    for choice in axis.choices:
        by_name = {known.name: known for known in AXES}
        for rule in choice.rules:
            assert rule.level in get_args(Level)
            if isinstance(rule.reason, str):
                assert rule.reason[0].isalnum() and rule.reason.endswith(".")
            assert rule.source
            assert rule.becomes or rule.level != "fallback"
            if rule.becomes:
                assert axis.choice(rule.becomes)
            for name, fix in axis.fix_of(rule).items():
                assert by_name[name].choice(fix)


# --- the script -----------------------------------------------------------------------------------

UNWRITTEN = {("loading", "cpu"): "nothing is moved to a device", ("allocator", "cpu"): "a CPU has none"} | {
    (axis.name, device): "a script of one prompt has no other requests"
    for axis in AXES
    if axis.many_requests
    for device in ("cpu", "cuda")
}
"""Axes that on a machine change the plan and not the script, with the reason."""


@functools.cache
def arm_with(axis: Optimization, written: str, at: str) -> tuple[ModelFacts, Checked] | None:
    """The first model with which a choice runs on a machine, with the other choices that it needs."""
    machine = MACHINES[at]
    for name in (*NAMES, "bert-base-uncased", "random:Llama-3-70B"):  # the last has layers for eight GPUs
        checked = settled(facts(name), {axis.name: written}, machine)
        if not checked.blocked:
            return facts(name), checked
    return None


@each_axis
def test_it_writes_nothing_into_a_script_where_the_plan_has_its_default(axis: Optimization) -> None:
    for subject in subjects():
        script = Script()
        axis.write(script, bare(subject))
        assert script == Script()


@pytest.mark.skipif(shutil.which("ruff") is None, reason="ruff is not installed")
def test_the_scripts_of_all_choices_are_formatted_and_import_what_they_use(tmp_path: Path) -> None:
    for (axis, choice), (name, machine) in itertools.product(CHOICES, MACHINES.items()):
        arm = arm_with(axis, choice.example or choice.name, name)
        assert arm or machine is CPU, f"{axis.name}={choice.name} is blocked everywhere"
        if arm:
            text = script_export.script(arm[1], arm[0], Workload(prompt="Once"))
            (tmp_path / f"{name}-{axis.name}-{choice.name.replace('/', '-')}.py").write_text(text)
    for command in (["format", "--diff"], ["check", "--select", "E,F,I"]):
        how = ["--isolated", "--no-cache", f"--line-length={WIDTH}"]
        ran = subprocess.run(["ruff", *command, *how, tmp_path], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize("at", MACHINES)
@each_axis
def test_a_choice_that_changes_the_plan_changes_the_script(axis: Optimization, at: str) -> None:
    machine = MACHINES[at]
    for choice in axis.choices:
        arm = arm_with(axis, choice.example or choice.name, at)
        if arm is None or (axis.name, machine.device) in UNWRITTEN:
            continue
        model, checked = arm
        without = {name: chosen for name, chosen in checked.requested.items() if name != axis.name}
        default = check(make_config("m", without), model, machine, Workload(prompt="Once"))
        if default.plan != checked.plan:
            changed, unchanged = (script_export.script(c, model, Workload(prompt="Once")) for c in (checked, default))
            assert uncommented(changed) != uncommented(unchanged), choice.name


def uncommented(script: str) -> list[str]:
    return [line for line in script.splitlines() if not line.startswith("#")]


# --- an axis and its witness are a new axis -------------------------------------------------------

NEW = """
from tokendyno.backend.optimizations.base import Choice, Optimization, Rule


class Turbo(Optimization):
    name, title, summary, default, order = "turbo", "Turbo", "Faster.", "off", 12
    choices = (
        Choice("off", "As it is."),
        Choice("on", "Faster.", (Rule("note", lambda s: s.decoder, "It is loud.", "a test"),), loss=5),
    )

    def edit(self, plan, name, subject):
        return plan if name == "off" else plan.with_load(dtype="float32")

    def write(self, script, plan):
        if plan.load.dtype == "float32":
            script.prepare.append("print('vroom')")
"""
WITNESS = """
from tokendyno.backend.evidence import Finding


def find(observation):
    return Finding("turbo", "on", "heard it")
"""


@pytest.fixture
def turbo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Checked]:
    """The arm turbo=on, checked: axis and witness are in folders that are looked at as if they were the real ones."""
    for package, text in ((axes, NEW), (witness, WITNESS)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / "turbo.py").write_text(text)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    all_axes.cache_clear()
    yield check(parse_arm("pocket", "turbo=on"), facts(), CPU, Workload(prompt="x"))
    all_axes.cache_clear()
    for package in (axes, witness):
        if sys.modules.pop(f"{package.__name__}.turbo", None):
            delattr(package, "turbo")


def test_an_axis_and_its_witness_have_rules_a_plan_a_control_a_script_and_a_row(
    turbo: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [axis.name for axis in AXES if axis.order < 12]
    assert list(axis_names()) == [*before, "turbo", *(axis.name for axis in AXES[len(before) :])]
    assert [verdict.reason for verdict in turbo.verdicts] == ["It is loud."]
    assert (turbo.plan.load.dtype, turbo.planned["turbo"]) == ("float32", "on")
    assert least_harm(facts(), [{}], lambda changes: "turbo" not in changes) == {"turbo": "on"}
    assert main(["check", "--arm", "turbo=on"]) == 0 and "It is loud." in capsys.readouterr().out
    with gr.Blocks(analytics_enabled=False):
        arm = arm_controls("B", "baseline", facts(), titles(facts(), CPU))
    (control,) = [box for box in arm.axes if box.elem_id == "axis-b-turbo"]
    assert (control.label, control.choices, control.value) == ("Turbo", [("off", "off"), ("on", "on")], "off")
    assert 'print("vroom")' in script_export.script(turbo, facts(), Workload(prompt="x"))
    findings = witness.find_all(Observation(None, object(), turbo.plan, counts=RunCounts()))
    assert [found.proof for found in findings if found.axis == "turbo"] == ["heard it"]
