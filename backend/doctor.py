"""What this machine can do, and why not more: the report of `tokendyno doctor`."""

from dataclasses import dataclass
from typing import Any

from backend import hardware
from backend.errors import InputError
from backend.hardware import Machine
from backend.models import DEFAULT_MODEL, resolve
from backend.optimizations import Subject, axes
from backend.startup import startup_messages


@dataclass(frozen=True, slots=True)
class Usable:
    """One choice of one axis on this machine; `why` is "" when it is usable without remark."""

    axis: str
    choice: str
    usable: bool
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """Machine, versions, remarks, and every choice with its verdict on the default model."""

    machine: dict[str, str]
    versions: dict[str, str]
    problems: list[str]
    choices: list[Usable]

    def text(self) -> str:
        """For a terminal."""
        lines = ["Machine"] + [f"  {name:<20} {value}" for name, value in self.machine.items()]
        lines += ["", "Versions"] + [f"  {name:<20} {value}" for name, value in self.versions.items()]
        lines += ["", "Problems"] + [f"  {problem}" for problem in self.problems or ["none found"]]
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
        }  # fmt: skip


def doctor_report(machine: Machine) -> Report:
    """Look at everything once."""
    problems = startup_messages()
    rows: list[Usable] = []
    try:
        facts = resolve(DEFAULT_MODEL)
    except InputError as error:
        problems.append(str(error))
    else:
        defaults = {axis.name: axis.default for axis in axes()}
        for axis in axes():
            for choice in axis.choices:
                verdicts = axis.verdicts(choice.name, Subject(facts, machine, {**defaults, axis.name: choice.name}))
                needs = {a: c for v in verdicts for a, c in v.fix.items() if v.level == "blocked" and a != axis.name}
                if needs:
                    wanted = ", ".join(f"{a}={c}" for a, c in needs.items())
                    subject = Subject(facts, machine, {**defaults, **needs, axis.name: choice.name})
                    verdicts = axis.verdicts(choice.name, subject)
                    reasons = [f"with {wanted}", *(v.reason for v in verdicts)]
                else:
                    reasons = [v.reason for v in verdicts]
                usable = all(v.level in ("ok", "note") for v in verdicts)
                rows.append(Usable(axis.name, choice.name, usable, " ".join(reasons)))
    return Report(machine.describe(), hardware.versions(), problems, rows)
