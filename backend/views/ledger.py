"""The ledger: one row per axis with what was requested, planned and found."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

import msgspec

from backend.evidence import Evidence, Finding, Status


class LedgerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    return [_row(one, one.finding) for one in evidence]


def ledger_summary(rows: Sequence[LedgerRow]) -> str:
    """How many rows are verified, and what the others are: "9 of 14 verified, 1 partial, 4 off"."""
    others = Counter(row.status for row in rows)
    verified = others.pop("verified", 0)
    parts = [f"{others[status]} {status.replace('_', ' ')}" for status in get_args(Status) if others[status]]
    return ", ".join([f"{verified} of {len(rows)} verified", *parts])


def _row(one: Evidence, found: Finding) -> LedgerRow:
    return LedgerRow(
        found.axis, one.requested, one.planned, found.effective, found.proof, one.status, one.reason, found.reached,
        found.expected,
    )  # fmt: skip
