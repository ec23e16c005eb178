"""What Dynamo reports: why and where a graph broke, and which guard failed."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def guard(reason: str | None) -> str:
    """The guard that failed, without its source location: Dynamo's full text is pages long."""
    return re.sub(r"^\d+/\d+: ", "", first_line(reason or "")).partition("  # ")[0][:300]


def first_line(text: str) -> str:
    """The first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:300]


def break_places(breaks: Sequence[Any]) -> dict[str, str]:
    """Reason of a graph break -> where it happened ("file.py:line, file.py:line"), by the innermost line of the user's
    code. `breaks`: Dynamo's own list, `torch._dynamo.utils.graph_break_reasons`."""
    by_reason: dict[str, dict[str, None]] = {}
    for graph_break in breaks:
        if graph_break.user_stack:
            frame = graph_break.user_stack[-1]
            places = by_reason.setdefault(first_line(graph_break.reason), {})
            places.setdefault(f"{Path(frame.filename).name}:{frame.lineno}")
    return {reason: ", ".join(places) for reason, places in by_reason.items()}
