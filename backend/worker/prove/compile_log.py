"""What Dynamo tells of its work: why a graph broke and where in the user's code, and which guard failed."""

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
    """Reason of a graph break -> "file.py:line" of the innermost line of each, in order. `breaks`: Dynamo's own list,
    `torch._dynamo.utils.graph_break_reasons`."""
    found: dict[str, dict[str, None]] = {}
    for one in breaks:
        if one.user_stack:
            frame = one.user_stack[-1]
            found.setdefault(first_line(one.reason), {}).setdefault(f"{Path(frame.filename).name}:{frame.lineno}")
    return {reason: ", ".join(places) for reason, places in found.items()}
