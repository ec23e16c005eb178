"""Verdicts in words: how many figures of a claim hold, and to which side each of the others misses what was claimed."""

from collections.abc import Sequence
from typing import NamedTuple

from tokendyno.backend.claims.formula import Side, State, Word

SIDES: dict[Side, str] = {"": "within", "below": "below", "above": "above", "both": "below and above"}
DOUBTED = "a choice was in effect only in part"

_ORDER: tuple[State, ...] = ("within", "exceeds", "outside", "overlaps", "missing")
_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class Standing(NamedTuple):
    """Where a figure stands.

    side  on which side of the claimed range it lies, or its interval leaves the range; "" if neither
    once  it comes from one run, so that it has no interval
    """

    state: State
    side: Side = ""
    once: bool = False


def standing_text(one: Standing) -> str:
    """Of one figure beside the range that was claimed; "" where none was."""
    return "" if one.state == "shown" else _said(one, 1, "", "the claimed range")


def remark(standings: Sequence[Standing], word: Word, partly: bool = False) -> str:
    """What a verdict rests on; "" where the only figure is confirmed, or none was measured. `partly`: some choice was
    in effect only in part."""
    decided = [one for one in standings if one.state != "shown"]
    if word == "not tested here" or (word == "confirmed" and len(decided) == 1):
        return ""
    counted = _counted(decided)
    return f"{counted}; {DOUBTED}" if partly else counted


def _counted(figures: Sequence[Standing]) -> str:
    """By group, those that hold first: "3 of 5 figures are within what was claimed; the other two are below it"."""
    total = len(figures)
    ordered = sorted(figures, key=lambda one: (_ORDER.index(one.state), one.once, one.side))
    (first, count), *rest = ((one, figures.count(one)) for one in dict.fromkeys(ordered))
    if not rest:
        all_of_them = {1: "", 2: "both figures"}.get(total, f"all {total} figures")
        return _said(first, total, all_of_them, "what was claimed")
    said = [_said(first, count, f"{count} of {total} figures", "what was claimed")]
    for one, count in rest:
        number = _NUMBERS[count] if count < len(_NUMBERS) else str(count)
        if one == rest[-1][0]:
            number = "the other" if count == 1 else f"the other {number}"
        said.append(_said(one, count, number, "it"))
    return "; ".join(said)


def _said(one: Standing, count: int, who: str, claim: str) -> str:
    """One group as a sentence, or without its subject if `who` is ""."""
    alone = count == 1
    if one.state == "overlaps" and not one.once:
        reach = "the interval{} reaches" if alone else "the intervals{} reach"
        return f"{reach.format(f' of {who}' if who else '')} {SIDES[one.side]} {claim}"
    if one.state == "missing":
        verb, what = "was" if alone else "were", "not measured"
    else:
        verb, what = "is" if alone else "are", f"{SIDES[one.side]} {claim}"
    if one.state == "exceeds":
        what += ", which is better"
    if one.once:
        what += ", but in one run only" if one.state == "overlaps" else ", in one run only"
    return f"{who} {verb} {what}" if who else what
