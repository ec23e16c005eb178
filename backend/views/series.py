"""The series of a run that is over, every value as CSV."""

import csv
import io

from tokendyno.backend.runs.run import Run

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
