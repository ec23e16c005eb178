"""Segments of torch's CUDA allocator on a GPU: proved by a snapshot, and what gaps take of the peak."""

from pathlib import Path

import pytest

from tokendyno.backend.config import Workload
from tokendyno.backend.executors import open_bench
from tools.bench.gpu.every import perform

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

WORK = Workload(prompt_tokens=8000, max_new_tokens=16, ignore_eos=True)
CAPTURED = {"loop": "own", "cache": "static", "cuda_graphs": "manual"}


@pytest.mark.parametrize("beside", [{"prefill": "chunks-512"}, CAPTURED], ids=["growing", "captured"])
def test_expandable_segments_are_proved_and_take_no_more_memory(beside: dict[str, str], tmp_path: Path) -> None:
    bench = open_bench(tmp_path / "h.sqlite")
    bench.start()
    peak_bytes = {}
    try:
        for segments in ("fixed", "expandable"):
            run, document = perform(bench, "random:Qwen3-0.6B", {**beside, "allocator": segments}, WORK)
            assert run.status == "done", run.message
            (arm,) = document["arms"]
            row = next(row for row in arm["evidence"] if row["axis"] == "allocator")
            status = "verified" if segments == "expandable" else "off"
            assert (row["planned"], row["effective"], row["status"]) == (segments, segments, status), row
            peak_bytes[segments] = arm["summary"]["peak_memory_bytes"]
            bench.pool.drop("A")
    finally:
        bench.close()
    print(peak_bytes)
    assert peak_bytes["expandable"] <= 1.02 * peak_bytes["fixed"]
