"""What runs are found by: the columns of a run's row in the history, from its first record."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from backend.redact import plain
from backend.runs.records import Created

MAX_PROMPT = 600
"""Characters of a prompt that are searched."""

MARK = "|"
"""Stands around each entry of the column `choices`, so that one is never found inside another."""


class ArmText(msgspec.Struct, frozen=True):
    """An arm, and the choices that were asked for."""

    name: str
    text: str


class RunRow(NamedTuple):
    """Columns of a row.

    kind     run, batch or quality: that of its JSON document
    label    the model by its full name
    machine  see `machine_text`
    choices  axes that were set in any arm, and axis=choice of everything that was planned
    arms     list of `ArmText`, as JSON
    origin   "" for a run of this machine, else imported
    words    all that words are looked for in, case-folded
    """

    kind: str
    label: str
    machine: str
    choices: str
    arms: str
    origin: str
    words: str


def row_of(first: Created) -> RunRow:
    """The row of a run."""
    asked, work = first.request, first.request.workload
    kind = "batch" if asked.traffic is not None else "quality" if asked.quality is not None else "run"
    entries = {axis for arm in asked.arms for axis in arm.choices}
    entries |= {f"{axis}={choice}" for arm in first.arms for axis, choice in arm.planned.items()}
    arms = [ArmText(arm.name, choices_text(arm.choices)) for arm in asked.arms]
    machine = machine_text(first.machine)
    origin = "" if first.origin == "here" else first.origin
    words = searched(
        first.id, origin, asked.model, first.model_label, kind, machine, *(arm.text for arm in arms),
        work.prompt[:MAX_PROMPT], work.system[:MAX_PROMPT],
    )  # fmt: skip
    listed = MARK + MARK.join(sorted(entries)) + MARK
    return RunRow(kind, first.model_label, machine, listed, msgspec.json.encode(arms).decode(), origin, words)


def choices_text(choices: Mapping[str, str]) -> str:
    """The choices of an arm as they are written."""
    return ", ".join(f"{axis}={choice}" for axis, choice in choices.items()) or "defaults"


def machine_text(machine: Mapping[str, str]) -> str:
    """The device of a machine, as `Machine.describe` names it: its GPUs, else its CPU. "" if that is not known."""
    gpus = [value.partition(",")[0] for name, value in machine.items() if name[:3] == "gpu" and name[3:].isdecimal()]
    if gpus and machine.get("device") != "cpu":
        return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in Counter(gpus).items())
    cores = machine.get("cores", "")
    return ", ".join(filter(None, [machine.get("cpu", ""), f"{cores} cores" if cores else ""]))


def searched(*texts: str) -> str:
    """Texts as they are searched: in lower case, each once, on one line."""
    return plain(" ".join(filter(None, texts))).casefold().replace("\n", " ")
