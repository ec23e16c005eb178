"""An arm in short: what differs from the defaults, as chips, its predicted memory, and the verdicts of the rules; and
the line that says in what the arms differ, and with one button makes them the same in the rest."""

from collections.abc import Mapping

import gradio as gr
import msgspec

from tokendyno.backend import units
from tokendyno.backend.arms.arguments import arguments_of
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.arms.presets import arm_presets
from tokendyno.backend.config import ArmRequest
from tokendyno.backend.evidence import Level
from tokendyno.backend.optimizations import axis_title, choice_title, prompt_axes
from tokendyno.backend.views.fairness import Fairness
from tokendyno.ui.components.html import component
from tokendyno.ui.components.summary import BETWEEN

NOT_RECORDED_HERE = "Recorded on another machine; here it cannot run."


class VerdictLine(msgspec.Struct):
    """One verdict as it is shown. `fix`: axis -> choice, sent back when its button is pressed."""

    level: str
    reason: str
    source: str
    fix: dict[str, str]
    fix_text: str


class Chip(msgspec.Struct):
    """A choice that is not the default. `level`: the worst verdict on its axis, "" if there is none."""

    name: str
    axis: str
    choice: str
    summary: str
    default: str
    level: str


class Link(msgspec.Struct):
    """The arm in the address of the page. `written`: as `request.written`; `run`: that is shown, "" for none; `own`:
    whether both arms are still those of that run."""

    written: str
    run: str
    own: bool


class Verdicts(msgspec.Struct):
    """The value of the component.

    share   predicted memory as a fraction of what is free
    gets    what transformers' calls get, one line each
    """

    arm: str
    key: str
    offers: bool
    title: str
    chips: list[Chip]
    memory: str
    parts: str
    share: float
    verdicts: list[VerdictLine]
    gets: list[str] = []
    link: Link | None = None


def verdict_box(elem_id: str, value: str) -> gr.HTML:
    """The component; its value is what `describe` returns. It fires "fix" with `choices`, and "copy"."""
    return component("arm", '<div class="td-verdicts" aria-live="polite"></div>', elem_id, value)


def describe(
    arm: ArmRequest, preset: str, checked: Checked | None, recorded: bool = False, link: Link | None = None
) -> str:
    """An arm as the component's value. `preset`: the one that comes to its choices, or `CUSTOM`; `checked`: None where
    the arm cannot be checked; `recorded`: a run of it is shown that was made elsewhere, so what blocks it here is no
    failure."""
    title = next((known.title for known in arm_presets() if known.name == preset), "Your choices")
    return describe_titled(arm, title, arm.name.lower(), checked, recorded, True, link)


def describe_titled(
    arm: ArmRequest,
    title: str,
    key: str,
    checked: Checked | None,
    recorded: bool = False,
    offers: bool = False,
    link: Link | None = None,
) -> str:
    """The same under any title. `key`: of the column; `offers`: the palette adds to it."""
    if checked is None:
        verdicts = Verdicts(arm.name, key, offers, title, _chips(arm.choices, {}), "", "", 0, [])
    else:
        verdicts = _checked(arm, checked, key, offers, title)
    verdicts.link = link
    return msgspec.json.encode(_as_recorded(verdicts) if recorded else verdicts).decode()


def _as_recorded(verdicts: Verdicts) -> Verdicts:
    """The same where a run of the arm was made elsewhere: what blocks it here is a note."""
    lines = [
        msgspec.structs.replace(line, level="note", reason=f"{NOT_RECORDED_HERE} {line.reason}")
        if line.level == "blocked"
        else line
        for line in verdicts.verdicts
    ]
    chips = [
        msgspec.structs.replace(chip, level="" if chip.level == "blocked" else chip.level) for chip in verdicts.chips
    ]
    return msgspec.structs.replace(verdicts, verdicts=lines, chips=chips, share=min(verdicts.share, 1.0))


def _checked(arm: ArmRequest, checked: Checked, key: str, offers: bool, title: str) -> Verdicts:
    memory, room_bytes = checked.memory, checked.room_bytes
    parts = ", ".join(
        f"{name} {_size(size)}"
        for name, size in (
            ("weights", memory.weights),
            ("KV cache", memory.kv),
            ("workspace", memory.workspace),
            ("runtime", memory.runtime_bytes),
            ("freed blocks kept", memory.heap),
        )
        if size or name != "freed blocks kept"
    )
    needed = checked.needed_bytes
    if memory.fullest:
        parts = f"on the GPUs together {parts}; the fullest GPU needs {_size(memory.fullest)}"
    elif needed > memory.total:
        parts = f"in each rank {parts}"
    blocked, over = bool(checked.blocked), needed > room_bytes
    settled = [verdict for verdict in checked.verdicts if verdict.level == "note" and verdict.becomes]
    parts = "\n".join([parts, *(verdict.reason for verdict in settled)])
    summary = "".join(f"{verdict.axis} auto \u2192 {verdict.becomes}{BETWEEN}" for verdict in settled)
    margin = f" \u00b1 {memory.margin:.0%}" if memory.margin else ""
    summary += f"{_size(needed)}{margin} predicted of {_size(room_bytes)} free{BETWEEN}"
    summary += "does not fit" if over else "cannot run" if blocked else "runs here"
    lines = [
        VerdictLine(verdict.level, verdict.reason, verdict.source, verdict.fix, _fix_text(verdict.fix))
        for verdict in checked.verdicts
        if verdict.level != "ok" and verdict not in settled  # those stand with the memory
    ]
    lines += [VerdictLine("note", f"{axis_title(axis)}: {text}", "", {}, "") for axis, text in checked.details.items()]
    worst = {v.axis: v.level for v in sorted(checked.verdicts, key=lambda v: _LEVELS.index(v.level))}
    chips = _chips(arm.choices, worst)
    share = needed / max(1, room_bytes)
    return Verdicts(arm.name, key, offers, title, chips, summary, parts, share, lines, arguments_of(checked).lines())


_LEVELS: tuple[Level, ...] = ("ok", "note", "fallback", "blocked")


def _chips(choices: Mapping[str, str], worst: Mapping[str, Level]) -> list[Chip]:
    """In the order of the axes."""
    return [
        Chip(
            axis.name,
            axis.title,
            choice_title(axis.name, written),
            axis.choice(written).summary,
            axis.default,
            worst.get(axis.name, ""),
        )
        for axis in prompt_axes()
        if (written := choices.get(axis.name, axis.default)) != axis.default
    ]


def _fix_text(fix: dict[str, str]) -> str:
    named = ", ".join(f"{axis_title(axis)} to {choice_title(axis, choice)}" for axis, choice in fix.items())
    return f"Set {named}" if fix else ""


def _size(size_bytes: int) -> str:
    return " ".join(units.bytes_text(size_bytes))


# --- in what the arms differ ----------------------------------------------------------------------


class Same(msgspec.Struct):
    """What a press of its button sends: choices to be set, by axis, of each arm."""

    fix: dict[str, dict[str, str]]


def fair_line() -> gr.HTML:
    """The component; its value is what `fair_value` returns. Its button fires "fix" with `Same`."""
    return component("fair", '<div class="td-fair" role="status"></div>', "same", classes=["td-line"])


def fair_value(fairness: Fairness | None) -> str:
    """The component's value; "" where there is nothing to say."""
    return "" if fairness is None else msgspec.json.encode(fairness).decode()
