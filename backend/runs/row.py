"""A run's row in the history, made from its first record: the columns by which runs are listed and found."""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.redact import without_controls
from tokendyno.backend.runs.records import Created
from tokendyno.backend.units import plural

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
    choices  axes that were set in any arm, and axis=choice of everything that was planned
    origin   "" for a run of this machine, else imported
    trial    the ablation or sweep of which it is a trial, or ""
    """

    kind: str
    label: str
    work: str
    machine: str
    choices: str
    arms: str
    origin: str
    words: str
    trial: str


def row_of(created: Created) -> RunRow:
    request, workload = created.request, created.request.workload
    kind = "batch" if request.traffic is not None else "quality" if request.quality is not None else "run"
    entries = {axis for arm in request.arms for axis in arm.choices}
    entries |= {f"{axis}={choice}" for arm in created.arms for axis, choice in arm.planned.items()}
    arms = [ArmText(arm.name, choices_text(arm.choices)) for arm in request.arms]
    machine, work = machine_text(created.machine), work_text(created)
    origin = "" if created.origin == "here" else created.origin
    words = searched(
        created.id,
        request.trial,
        origin,
        request.model,
        created.model_label,
        kind,
        work,
        machine,
        *(arm.text for arm in arms),
        *(titles_text(arm.choices) for arm in request.arms),
        workload.prompt[:MAX_PROMPT],
        workload.system[:MAX_PROMPT],
    )
    choices = MARK + MARK.join(sorted(entries)) + MARK
    return RunRow(
        kind,
        created.model_label,
        work,
        machine,
        choices,
        msgspec.json.encode(arms).decode(),
        origin,
        words,
        request.trial,
    )


def work_text(created: Created) -> str:
    """Sizes by which runs of one model can be told apart, such as the points of a sweep."""
    request, workload = created.request, created.request.workload
    if request.traffic is not None:
        return plural(len(request.traffic.requests), "request")
    if request.quality is not None:
        return plural(len(request.quality.texts), "text")
    parts = [f"batch {workload.batch_size:,}"] if workload.batch_size > 1 or request.trial else []
    parts += [f"prompt of {plural(workload.prompt_tokens, 'token')}"] if workload.prompt_tokens else []
    steps = workload.max_new_tokens
    parts.append(plural(steps, "new token" if created.unit == "token" else "pass"))
    if workload.repeats > 1 and not request.until_s:  # else as many as it took to decide
        parts.append(f"{workload.repeats:,} repeats")
    return ", ".join(parts)


def choices_text(choices: Mapping[str, str]) -> str:
    return ", ".join(f"{axis}={choice}" for axis, choice in choices.items()) or "defaults"


def arm_titles(text: str) -> str:
    """The titles of the choices in what `choices_text` wrote; any other text stays as it is."""
    parts = [part.partition("=") for part in text.split(", ")]
    return titles_text({axis: choice for axis, _, choice in parts}) if all(sign for _, sign, _ in parts) else text


def gpus_of(machine: Mapping[str, str]) -> list[str]:
    """What `Machine.describe` says of each GPU."""
    return [value for name, value in machine.items() if name[:3] == "gpu" and name[3:].isdecimal()]


def machine_text(machine: Mapping[str, str]) -> str:
    """The device of a machine, as `Machine.describe` names it: its GPUs, else its CPU. "" if that is not known."""
    gpus = [gpu.partition(",")[0] for gpu in gpus_of(machine)]
    if gpus and machine.get("device") != "cpu":
        return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in Counter(gpus).items())
    cores = machine.get("cores", "")
    return ", ".join(filter(None, [machine.get("cpu", ""), f"{cores} cores" if cores else ""]))


def searched(*texts: str) -> str:
    """Texts as they are searched: in lower case, each once, on one line."""
    return without_controls(" ".join(filter(None, texts))).casefold().replace("\n", " ")
