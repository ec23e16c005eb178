"""Prints the Markdown table of a file that `test_axes.py` wrote: `python -m tools.bench.gpu.tables every.jsonl`."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any


def row(found: dict[str, Any]) -> str:
    """The table row of one arm: figures and the ledger row of its axis, or why it did not run."""
    model, arm = found["model"].removeprefix("random:"), found["arm"]
    if found["why"]:
        return f"| {model} | `{arm}` | | | | | unrun: {textwrap.shorten(found['why'], 150)} |"
    if found["status"] != "done":
        return f"| {model} | `{arm}` | | | | | {found['status']}: {found['message']} |"
    summary, extra = found["summary"], found["extra"]
    about = [part.split("=")[0] for part in arm.split(",") if "=" in part] or ["attention"]
    ledger = [e for e in found["evidence"] if e["axis"] in about]
    proof = "; ".join(f"{e['effective']} ({e['status']}): {textwrap.shorten(e['proof'], 110)}" for e in ledger)
    cold_s = found["phases_s"].get("compile")
    return (
        f"| {model} | `{arm}` | {1e3 * (summary['ttft_s'] or 0):.1f} | {1e3 * summary['latency_median_s']:.2f} | "
        f"{extra.get('allocator_peak_bytes', 0) / 2**20:,.0f} | {'' if cold_s is None else f'{cold_s:.1f}'} | {proof} |"
    )


def main(path: str) -> None:
    """Print the whole table."""
    print("| model | arm | TTFT, ms | ms a token | allocator peak, MiB | cold, s | effective, and its proof |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for line in Path(path).read_text().splitlines():
        print(row(json.loads(line)))


if __name__ == "__main__":
    main(sys.argv[1])
