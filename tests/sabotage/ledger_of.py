"""The ledger of one small run in this process: what a saboteur patches here is what the worker meets."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from backend.evidence import Evidence
from backend.executors import open_bench
from backend.runs.run import Run
from tests.support.worker import request


def run_of(
    choices: Mapping[str, str], model: str = "pocket", models_dir: Path | None = None, own_process: bool = False,
    **work: Any,
) -> Run:  # fmt: skip
    """A finished run of one arm, with a model loaded for it alone; `own_process`: by a worker that nothing patched
    here reaches, and whose GPU memory nothing has used."""
    with mock.patch.object(os, "_exit"), mock.patch.object(sys, "stdin"):
        bench = open_bench(models_dir=models_dir, executor="subprocess" if own_process else "in-process")
        bench.start()
        try:
            run = bench.wait(bench.submit(request(choices, model=model, **work)), 300)
        finally:
            bench.close()
    assert run.status == "done", run.message
    return run


def ledger(choices: Mapping[str, str], model: str = "pocket", **more: Any) -> dict[str, Evidence]:
    """The ledger of such a run, by axis."""
    return {row.finding.axis: row for row in run_of(choices, model, **more).ledger("A")}
