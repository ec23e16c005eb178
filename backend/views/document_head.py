"""What every JSON document of a run has in common: its first keys, and those of each of its arms."""

from typing import Any

from tokendyno.backend.evidence import TOKENS
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.ledger import ledger_rows
from tokendyno.backend.views.schema import VerdictRow


def head(run: Snapshot) -> dict[str, Any]:
    """Which run it is, how it ended, of which model, and where: `schema` to `versions`."""
    created = run.created
    return {
        "schema": 3,
        "run": created.id,
        "created": created.created,
        "status": run.status,
        "message": run.message,
        "model": created.request.model,
        "model_label": created.model_label,
        "model_note": created.model_note,
        "machine": created.machine,
        "versions": created.versions,
    }


def arm_head(run: Snapshot, name: str) -> dict[str, Any]:
    """What was asked for, what was planned, and what the ledger and the rules say: `name` to `verdicts`."""
    planned, ledger = run.planned(name), run.ledger(name)
    return {
        "name": name,
        "state": run.arms[name].state,
        "values": {},
        "environment": {},
        "engine": "transformers",
        "requested": planned.requested,
        "planned": planned.planned,
        "effective": {row.finding.axis: row.finding.effective for row in ledger if row.finding.axis != TOKENS},
        "evidence": ledger_rows(ledger),
        "verdicts": [VerdictRow(v.level, v.axis, v.reason, v.source) for v in planned.verdicts],
    }
