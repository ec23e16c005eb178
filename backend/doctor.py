"""What this machine can do, and why not more: the report of `tokendyno doctor`."""

from dataclasses import dataclass
from typing import Any

import msgspec

from backend import hardware, limits
from backend.bandwidth import Bandwidth, MeasureFailed, measure, recall, remember
from backend.errors import InputError
from backend.hardware import Machine
from backend.models import DEFAULT_MODEL, ModelFacts, resolve
from backend.optimizations import Subject, axes
from backend.startup import startup_messages


@dataclass(frozen=True, slots=True)
class Usable:
    """One choice of one axis on this machine; `why` is "" when it is usable without remark. `blocked`: it would be
    refused; otherwise what is not usable falls back."""

    axis: str
    choice: str
    usable: bool
    why: str
    blocked: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Machine, versions, remarks, and every choice with its verdict on the default model.

    bandwidth          the measured one, now or kept; None: there is none, or `bandwidth_problem` says why it failed
    bandwidth_note     what is not known of this machine's limits
    """

    machine: dict[str, str]
    versions: dict[str, str]
    problems: list[str]
    choices: list[Usable]
    bandwidth: Bandwidth | None = None
    bandwidth_problem: str = ""
    bandwidth_note: str = ""

    def text(self) -> str:
        """For a terminal."""
        lines = ["Machine"] + [f"  {name:<20} {value}" for name, value in self.machine.items()]
        lines += ["", "Versions"] + [f"  {name:<20} {value}" for name, value in self.versions.items()]
        lines += ["", "Problems"] + [f"  {problem}" for problem in self.problems or ["none found"]]
        if self.bandwidth is not None:
            rates = (("read", self.bandwidth.read_bytes_per_s), ("copy", self.bandwidth.copy_bytes_per_s))
            lines += ["", f"Memory bandwidth of {self.bandwidth.device}"]
            lines += [f"  {name:<20} {rate / 1e9:,.4g} GB/s" for name, rate in rates]
            lines += [f"  {'how':<20} {self.bandwidth.method}"]
        elif self.bandwidth_problem:
            lines += ["", "Memory bandwidth", f"  n/a: {self.bandwidth_problem}"]
        if self.bandwidth_note:
            lines += ["", f"  {self.bandwidth_note}"]
        lines += ["", f"Choices with {DEFAULT_MODEL} on this machine"]
        for row in self.choices:
            mark = "yes" if row.usable else "no"
            lines.append(f"  {row.axis + '=' + row.choice:<36} {mark:<4} {row.why}")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        rows = [{"axis": r.axis, "choice": r.choice, "usable": r.usable, "why": r.why} for r in self.choices]
        return {
            "schema": 1, "machine": self.machine, "versions": self.versions, "problems": self.problems, "choices": rows,
            "bandwidth": msgspec.structs.asdict(self.bandwidth) if self.bandwidth else None,
        }  # fmt: skip


def usable_choices(facts: ModelFacts, machine: Machine) -> list[Usable]:
    """Every choice of every axis with this model on this machine, the other choices that it needs taken with it."""
    rows = []
    defaults = {axis.name: axis.default for axis in axes()}
    for axis in axes():
        for choice in axis.choices:
            verdicts = axis.verdicts(choice.name, Subject(facts, machine, {**defaults, axis.name: choice.name}))
            needs = {a: c for v in verdicts for a, c in v.fix.items() if v.level == "blocked" and a != axis.name}
            reasons = [v.reason for v in verdicts]
            if needs:
                wanted = ", ".join(f"{a}={c}" for a, c in needs.items())
                subject = Subject(facts, machine, {**defaults, **needs, axis.name: choice.name})
                verdicts = axis.verdicts(choice.name, subject)
                reasons = [f"with {wanted}", *(v.reason for v in verdicts)]
            usable = all(v.level in ("ok", "note") for v in verdicts)
            blocked = any(v.level == "blocked" for v in verdicts)
            rows.append(Usable(axis.name, choice.name, usable, " ".join(reasons), blocked))
    return rows


def doctor_report(machine: Machine, bandwidth: bool = False) -> Report:
    """Look at everything once. `bandwidth`: measure it now and keep it; else the kept one is shown, if there is one."""
    problems = [*startup_messages(), *machine.remarks]
    found, failed = recall(machine), ""
    if bandwidth:
        try:
            found = measure(machine)
            problems += filter(None, [remember(found)])
        except MeasureFailed as error:
            found, failed = None, f"it could not be measured: {error}."
            problems.append(f"The memory bandwidth is unknown: {failed}")
    rows: list[Usable] = []
    try:
        facts = resolve(DEFAULT_MODEL)
    except InputError as error:
        problems.append(str(error))
    else:
        rows = usable_choices(facts, machine)
    return Report(machine.describe(), hardware.versions(), problems, rows, found, failed, limits.remark(machine))
