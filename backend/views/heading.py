"""A run in a few words: for the title of a browser's tab, of a report, and of a link's preview."""

import re

from tokendyno.backend.runs.records import Status

LABELS: dict[Status, str] = {
    "queued": "queued",
    "running": "running",
    "done": "complete",
    "failed": "failed",
    "cancelled": "stopped",
    "interrupted": "interrupted",
}
_CLAUSE_END = re.compile(r" \(|[,;] | and |: (?=\w+ runs |over )|\.? *$")


def heading(model: str, status: Status, verdict: str) -> str:
    """The model, and the first clause of the verdict; without a verdict what became of the run."""
    return f"{model}: {first_clause(verdict) or LABELS[status]}"


def first_clause(sentence: str) -> str:
    """What a sentence says first: intervals, and what else was had, come later in it."""
    return _CLAUSE_END.split(sentence, maxsplit=1)[0]
