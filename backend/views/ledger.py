"""The ledger: one row per axis with what was requested, planned and found."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import msgspec

from tokendyno.backend.evidence import TOKENS, Evidence, Status
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.runs.snapshot import Snapshot


class LedgerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A row of the ledger. `reached` of `expected` layers, matrices or steps; None where nothing was counted."""

    axis: str
    requested: str
    planned: str
    effective: str
    proof: str
    status: Status
    reason: str
    reached: int | None
    expected: int | None


def ledger_rows(evidence: Iterable[Evidence]) -> list[LedgerRow]:
    """The ledger of one arm, in the order of its axes."""
    return [
        LedgerRow(
            row.finding.axis,
            row.requested,
            row.planned,
            row.finding.effective,
            row.finding.proof,
            row.status,
            row.reason,
            row.finding.reached,
            row.finding.expected,
        )
        for row in evidence
    ]


def prompt_rows(evidence: Iterable[Evidence]) -> list[LedgerRow]:
    """The ledger of an arm that answers a single prompt, without the axes about many requests, which cannot apply."""
    of_many = {axis.name for axis in all_axes() if axis.many_requests}
    return [row for row in ledger_rows(evidence) if row.axis not in of_many or row.status != "not_applicable"]


def rows_of(run: Snapshot, arm: str) -> list[LedgerRow]:
    """The ledger of an arm, as a reader of its run sees it."""
    return (prompt_rows if run.request.traffic is None else ledger_rows)(run.ledgers[arm])


def ledger_summary(rows: Sequence[LedgerRow]) -> str:
    """How many rows are verified, and what the others are: "9 of 14 verified, 1 partial, 4 off"."""
    counts = Counter(row.status for row in rows)
    verified = counts.pop("verified", 0)
    return ", ".join([f"{verified} of {len(rows)} verified", *_counted(counts)])


def _counted(counts: Mapping[Status, int]) -> list[str]:
    return [f"{counts[status]} {status.replace('_', ' ')}" for status in get_args(Status) if counts.get(status)]


_WORST: tuple[Status, ...] = (
    "failed",
    "no_effect",
    "fallback",
    "partial",
    "unchecked",
    "verified",
    "off",
    "not_applicable",
)
_QUIET: tuple[Status, ...] = ("verified", "off", "not_applicable")


class LedgerDigest(msgspec.Struct, frozen=True):
    """The ledgers of all arms in one line, for a reader with three seconds. `shown`: axes that differ between the arms
    or need a look; the others may be folded."""

    line: str
    status: Status
    shown: list[str]
    titles: dict[str, str]


def ledger_digest(arms: Mapping[str, Sequence[LedgerRow]]) -> LedgerDigest | None:
    """By the name of the arm; None while no arm has a ledger. An axis counts once, by its worst row."""
    by_axis: dict[str, list[LedgerRow]] = {}
    for row in (row for rows in arms.values() for row in rows):
        by_axis.setdefault(row.axis, []).append(row)
    if not by_axis:
        return None
    titles = {axis.name: axis.title for axis in all_axes() if axis.name in by_axis} | {TOKENS: "Tokens"}
    worst = {axis: min((row.status for row in rows), key=_WORST.index) for axis, rows in by_axis.items()}
    line = ", ".join(_counted(Counter(worst.values())))
    complete = len(arms) == 2 and all(arms.values())
    differ = [axis for axis, rows in by_axis.items() if complete and len({row.effective for row in rows}) > 1]
    if complete:
        named = and_list([titles.get(axis, axis) for axis in differ])
        line += f"; {and_list(list(arms))} {f'differ in {named}' if differ else 'ran the same choices'}"
    checked = set(worst.values()) != {"unchecked"}  # else the line says it all
    shown = [axis for axis in by_axis if axis in differ or (checked and worst[axis] not in _QUIET)]
    return LedgerDigest(line, min(worst.values(), key=_WORST.index), shown, titles)


def and_list(words: Sequence[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]])) if words else ""
