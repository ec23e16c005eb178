"""What Dynamo tells of its work: why a graph broke and where in the user's code, and which guard failed."""

import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_RESUMED = re.compile(r"^torch_dynamo_resume_in_.*_at_(\d+)$")


def guard(reason: str | None) -> str:
    """The guard that failed, without its source location: Dynamo's full text is pages long."""
    return re.sub(r"^\d+/\d+: ", "", first_line(reason or "")).partition("  # ")[0][:300]


def first_line(text: str) -> str:
    """The first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]


def break_places(records: Sequence[Any]) -> dict[str, str]:
    """Reason of a graph break -> "file.py:line" of each frame that it broke, the innermost last. `records`: in order.
    Code after a break is compiled as a function named by its line; where none follows, the line is its function's
    first."""
    found: dict[str, dict[str, None]] = {}
    for record, after in itertools.zip_longest(records, records[1:]):
        resumed = _RESUMED.match(after.co_name or "") if after and after.co_filename == record.co_filename else None
        line = resumed[1] if resumed else record.co_firstlineno
        for reason in record.restart_reasons or ():
            place = f"{Path(record.co_filename or '').name}:{line}"
            found.setdefault(first_line(reason), {}).setdefault(place)
    return {reason: ", ".join(places) for reason, places in found.items()}
