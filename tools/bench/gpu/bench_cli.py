"""Runs the command line in a subprocess and returns its JSON document.

`TOKENDYNO_OUT`: a folder for the whole JSON documents, for lab/measurements.md.
"""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tokendyno.backend.paths import ROOT


class Pair(NamedTuple):
    """Two arms with one workload."""

    model: str
    a: str
    b: str
    prompt: int
    new: int
    batch: int = 1

    def command(self, *more: str) -> list[str]:
        """Arguments of `compare` for them, with the document on standard output."""
        line = f"compare --model {self.model} --a '{self.a}' --b '{self.b}' --prompt-tokens {self.prompt}"
        sizes = f"--max-new-tokens {self.new} --batch-size {self.batch}"
        return [sys.executable, "-m", "tokendyno", *shlex.split(f"{line} {sizes}"), *more, "--json", "-"]


def bench(name: str, line: str) -> dict[str, Any]:
    """Run `tokendyno LINE --json -`. AssertionError with its standard error if it fails."""
    command = [sys.executable, "-m", "tokendyno", *shlex.split(line), "--json", "-"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=540, check=False)
    assert ended.returncode == 0, ended.stderr[-3000:]
    if folder := os.environ.get("TOKENDYNO_OUT"):
        (Path(folder) / f"{name}.json").write_text(ended.stdout)
    document: dict[str, Any] = json.loads(ended.stdout)
    return document


def tell(document: dict[str, Any]) -> None:
    """Print one line per arm, for the log of a GPU run."""
    mib = 1 << 20
    for arm in document["arms"]:
        s, extra = arm["summary"], arm["extra"]
        choices = ",".join(f"{axis}={choice}" for axis, choice in arm["effective"].items())
        figures = [
            f"ttft {1e3 * s['ttft_s']:.1f} ms" if s["ttft_s"] else "forward passes",
            f"median {1e3 * s['latency_median_s']:.2f} ms",
            f"{s['tokens_per_s']:.1f} {document['unit']}s/s",
            f"GPU busy {100 * (s['gpu_busy_share'] or 0):.0f}%",
            f"peak {s['peak_memory_bytes'] / mib:.0f} MiB ({arm['memory_label']})",
            f"allocator peak {extra.get('allocator_peak_bytes', 0) / mib:.0f} MiB",
            f"predicted {arm['memory_predicted_bytes']['total'] / mib:.0f} MiB",
            f"kv {(s['kv_bytes'] or 0) / mib:.1f} MiB",
            *(f"{name} {seconds:.1f} s" for name, seconds in arm["phases_s"].items()),
        ]
        print(f"{document['model']} {arm['name']} {choices}: {', '.join(figures)}")
