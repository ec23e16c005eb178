"""What a run gives as a file: its series as CSV, and the code that Inductor generated for its graphs."""

import csv
import io

from tokendyno.backend.messages import Finished
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot

_LEFT_OUT = "# {:,} characters: left out, the code of an arm's graphs is kept up to 2 MiB\n"

COLUMNS = (
    "arm",
    "series",
    "index",
    "seconds",
    "latency_s",
    "kv_sliding_bytes",
    "kv_full_bytes",
    "memory_bytes",
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would compute."""


def series_csv(run: Run) -> str:
    """One line for each token (or pass) of the first repeat, and one for each sample of memory."""
    now, text = run.snapshot(), io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    step = "pass" if now.unit == "forward" else "token"
    for name, arm in now.arms.items():
        columns = zip(arm.t_s, arm.latency_s, arm.kv_sliding, arm.kv_full, strict=True)
        rows.writerows([plain_cell(name), step, index, *values, ""] for index, values in enumerate(columns))
        samples = zip(arm.sample_t_s, arm.sample_bytes, strict=True)
        rows.writerows(
            [plain_cell(name), "sample", i, at_s, "", "", "", size] for i, (at_s, size) in enumerate(samples)
        )
    return text.getvalue()


def plain_cell(text: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULAS) else text


def code_words(end: Finished | None) -> str:
    """How much of it was kept; "" where nothing was compiled."""
    graphs = end.code if end else []
    if not graphs:
        return ""
    size = sum(one.characters for one in graphs)
    stored = sum(bool(one.packed) for one in graphs)
    said = f"{len(graphs)} graph{'s' * (len(graphs) != 1)}, {size:,} characters"
    return said if stored == len(graphs) else f"{said}; {stored} kept"


def code_file(run: Snapshot) -> str:
    """The code of every arm, each graph under its id as the ledger and torch's own tools name it; "" where none is."""
    parts = []
    for name, arm in run.arms.items():
        for one in arm.finished.code if arm.finished else []:
            head = f"# {'-' * 20} arm {name}, graph {one.id or 'without id'} {'-' * 20}\n"
            parts.append(head + (one.text if one.packed else _LEFT_OUT.format(one.characters)))
    return "\n".join(parts)
