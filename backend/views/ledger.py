"""The ledger: one row per axis with what was requested, planned and found."""

from collections.abc import Iterable

import msgspec

from backend.evidence import Evidence


class LedgerRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the ledger; `status`: proved (green), fallback (amber) or failed (red)."""

    axis: str
    requested: str
    planned: str
    effective: str
    proof: str
    status: str
    reason: str


def ledger_rows(evidence: Iterable[Evidence]) -> list[LedgerRow]:
    """The ledger of one arm, in the order of its axes."""
    return [LedgerRow(e.axis, e.requested, e.planned, e.effective, e.proof, e.status, e.reason) for e in evidence]
