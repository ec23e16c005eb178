"""What a run came to in one line, for its row in the history."""

import logging
from dataclasses import replace

from tokendyno.backend.redact import redact
from tokendyno.backend.runs.gate import FindReading, gate_of
from tokendyno.backend.runs.records import Status
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.views.verdict import verdict_of

log = logging.getLogger("tokendyno")

MAX_LINE = 400
"""Characters."""


def line_of(run: Snapshot, find: FindReading, status: Status | None = None) -> str:
    """The verdict, else how the run ended; never raises: a stored run may hold anything."""
    now = run if status is None else replace(run, status=status)
    try:
        sentence = verdict_of(now, gate_of(now, find)).sentence
    except Exception:
        log.exception("run %s has no line in the history", run.created.id)
        sentence = ""
    return redact(sentence or run.message)[:MAX_LINE]
