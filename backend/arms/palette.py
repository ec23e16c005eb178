"""What can be added to an arm: every choice that is not a default and every preset, grouped by what a user wants."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from tokendyno.backend.arms.arguments import argument_of
from tokendyno.backend.arms.bundles import grant
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.arms.presets import ArmPreset, arm_presets
from tokendyno.backend.arms.usable import Usable, usable_choice, usable_choices
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import Machine
from tokendyno.backend.models import ModelFacts
from tokendyno.backend.optimizations import Choice, Optimization, all_axes, choice_title, prompt_axes, titles_text
from tokendyno.backend.optimizations.base import LAYER_OF, REPOSITORY, Wish, joined

GROUPS: Mapping[Wish | Literal["preset", "elsewhere"], str] = {
    "preset": "Presets: replace the whole arm",
    "faster": "Faster",
    "memory": "Less memory",
    "context": "Longer context",
    "start": "Quicker start",
    "numerics": "Numerics",
    "reference": "For comparison: what an optimization saves",
    "elsewhere": "Set in another place",
}
"""Titles of the groups, in the order in which they are shown."""

FOUND_BY: Mapping[Wish, str] = {"faster": "speed latency", "memory": "vram smaller", "start": "startup loading"}
"""What else people type who look for a group."""

Offered = tuple[Optimization, Choice]

State = Literal["runs", "falls back", "cannot run"]


class Entry(msgspec.Struct, frozen=True):
    """One line of the palette.

    choices  what it sets, with what it requires; a preset (`whole`) puts every other axis back to its default
    name     of the choice or the preset, as on the command line; `axis_name`: of its axis
    aliases  what else it is called, such as the argument of transformers that sets it
    words    by which it can be found besides, as by its group and summary
    argument what it is in transformers, or that it is no argument
    page     the page on which it is set, "" for this one; what sets nothing and is on no page only says where it is
    """

    group: str
    axis: str
    title: str
    summary: str
    cost: str = ""
    state: State = "runs"
    why: str = ""
    choices: Mapping[str, str] = {}
    whole: bool = False
    name: str = ""
    axis_name: str = ""
    aliases: Sequence[str] = ()
    words: str = ""
    page: str = ""
    argument: str = ""


def palette(facts: ModelFacts, machine: Machine) -> list[Entry]:
    """All entries for this model on this machine, group by group; in each those that run come first."""
    usable = {(row.axis, row.choice): row for row in usable_choices(facts, machine)}
    entries = [
        _of_preset(preset, facts, machine) for preset in arm_presets() if preset.bundle or len(preset.choices) != 1
    ]
    offered = [
        (axis, choice)
        for axis in prompt_axes()
        for choice in axis.choices
        if not choice.example  # what must be typed is no press
        if axis.matters(facts)
    ]
    entries += [
        _of_choice(axis, choice, usable[axis.name, choice.name], facts, machine)
        for axis, choice in offered
        if choice.name != axis.default
    ]
    entries += [
        _of_choice(axis, choice, usable_choice(axis, written, written, facts, machine), facts, machine)
        for (axis, choice), written in _with_a_value(offered)
    ]
    entries += _elsewhere(facts, machine)
    groups = list(GROUPS.values())
    return sorted(entries, key=lambda entry: (groups.index(entry.group), entry.state == "cannot run"))


def _with_a_value(offered: Sequence[Offered]) -> Iterator[tuple[Offered, str]]:
    """Each choice with one value that is not its default, as it is written; a value that several choices of an axis
    take only with the first of them."""
    seen = set[tuple[str, str, str]]()
    for axis, choice in offered:
        for key, values in choice.values.items():
            for value in values[1:]:  # the first is the default
                if value not in (REPOSITORY, LAYER_OF) and (axis.name, key, value) not in seen:
                    seen.add((axis.name, key, value))
                    yield (axis, choice), joined(choice.name, {key: value})


def _of_choice(axis: Optimization, choice: Choice, row: Usable, facts: ModelFacts, machine: Machine) -> Entry:
    state: State = "cannot run" if row.blocked else "runs" if row.usable else "falls back"
    wish = axis.wishes.get(choice.name, axis.wish)
    return Entry(
        GROUPS[wish],
        axis.title,
        choice_title(axis.name, row.choice),
        choice.summary,
        axis.costs.get(choice.name, ""),
        state,
        row.why if state != "runs" or row.needs else "",
        {**row.needs, axis.name: row.choice},
        name=row.choice,
        axis_name=axis.name,
        aliases=_aliases(axis, choice),
        words=f"{axis.summary} {FOUND_BY.get(wish, '')}",
        argument=argument_of(axis, row.choice, facts, machine),
    )


def _of_preset(preset: ArmPreset, facts: ModelFacts, machine: Machine) -> Entry:
    work = Workload(prompt="?")
    choices = dict(grant(preset, facts, machine, work).choices)
    blocked = check(make_config(facts.model, choices), facts, machine, work).blocked
    return Entry(
        GROUPS["preset"],
        "",
        preset.title,
        preset.summary,
        state="cannot run" if blocked else "runs",
        why=blocked[0].reason if blocked else _what_it_sets(preset, choices),
        choices=choices,
        whole=True,
        name=preset.name,
        words=", ".join(f"{axis}={choice}" for axis, choice in choices.items()),
    )


def _what_it_sets(preset: ArmPreset, choices: Mapping[str, str]) -> str:
    if choices:
        return f"Here it sets {titles_text(choices)}."
    return "Nothing of it helps here: the model runs as it comes." if preset.bundle else ""


def _aliases(axis: Optimization, choice: Choice) -> list[str]:
    return [*axis.aliases.get(choice.name, ()), *axis.aliases.get("", ())]


def _elsewhere(facts: ModelFacts, machine: Machine) -> list[Entry]:
    """What is chosen on the Batching page, and names of what is no choice of an arm."""
    group = GROUPS["elsewhere"]
    batching = [
        Entry(
            group,
            axis.title if named else "",
            choice.title if named else axis.title,
            f"{choice.summary if named else axis.summary} On the page Batching.",
            name=choice.name if named else "",
            axis_name=axis.name,
            aliases=_aliases(axis, choice),
            words=axis.summary,
            page="batching",
            argument=argument_of(axis, choice.name, facts, machine),
        )
        for axis in all_axes()
        if axis.many_requests and axis.matters(facts)
        for named in sorted(axis.aliases)
        for choice in [axis.choice(named) if named else axis.choices[-1]]
    ]
    elsewhere = [
        Entry(group, "", names[0], sentence, aliases=names)
        for axis in prompt_axes()
        for names, sentence in axis.elsewhere.items()
    ]
    return batching + elsewhere
