"""The series of a run that is over: predicted KV bytes from its own records, and every value as CSV."""

import csv
import io

from tokendyno.backend.runs.arm_series import kv_at
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.schema import KvSeries

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


def recorded_kv(run: Run) -> dict[str, KvSeries]:
    """Predicted KV bytes of every arm, one entry a step, between the corners that were predicted before the run."""
    found = {}
    for name, arm in run.snapshot().arms.items():
        if arm.started is None or not arm.predicted_kv:
            found[name] = KvSeries([], [])
            continue
        pairs = [kv_at(arm.predicted_kv, arm.started.prompt_tokens + index) for index in range(len(arm.t_s))]
        found[name] = KvSeries([round(sliding) for sliding, _ in pairs], [round(full) for _, full in pairs])
    return found


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
