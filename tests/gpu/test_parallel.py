"""Two GPUs share a model: same text in float32, everything proved, bytes as predicted. Needs two GPUs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import sitecustomize, with_path
from tests.support.quantization import PACKED
from tokendyno.backend import hardware
from tokendyno.backend.models.catalogue import find
from tokendyno.backend.paths import ROOT

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(300),
    pytest.mark.skipif(len(hardware.detect().gpus) < 2, reason="needs two GPUs"),
]

OWN = "cache=static,loop=own,cuda_graphs=manual,attention=sdpa,dtype=float32"
KERNELS = "kernels=local,projections=fused"
ARMS = {
    "generate": ("", "parallel=tensor-2"),
    "captured": (OWN, f"{OWN},parallel=tensor-2"),
    "kernels": (f"{OWN},{KERNELS}", f"{OWN},{KERNELS},parallel=tensor-2"),
}


FEW_OF_GPT_OSS = {"num_hidden_layers": 4, "layer_types": ["sliding_attention", "full_attention"] * 2}
BY_KERNEL = "by our kernel from GPU to GPU"


def compared(a: str, b: str, batch: int = 1, model: str = "random:Qwen3-0.6B") -> dict[str, Any]:
    command = [sys.executable, "-m", "tokendyno", "compare", "--model", model, "--a", a, "--b", b]
    command += ["--prompt-tokens", "64", "--max-new-tokens", "32", "--batch-size", str(batch)]
    command += ["--repeats", "1", "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", ARMS)
def test_two_gpus_give_the_text_of_one_and_prove_it(name: str) -> None:
    a, b = (",".join(filter(None, [arm, "dtype=float32" if "dtype" not in arm else ""])) for arm in ARMS[name])
    one, two = compared(a, b)["arms"]
    assert one["token_ids"] == two["token_ids"]
    rows = {row["axis"]: row for row in two["evidence"]}
    assert rows["parallel"]["status"] == "verified", rows["parallel"]
    check = two["memory_check"]["weights"]
    assert check["measured"] == check["predicted"] < 0.55 * one["memory_check"]["weights"]["measured"]
    assert len({rank["weight_bytes"] for rank in two["ranks"]}) == 1
    peak = two["memory_check"]["peak"]
    if name != "kernels":  # so small, separate matrices share segments with others, which keep what they leave
        assert peak["measured"] == pytest.approx(peak["predicted"], rel=0.05), "NCCL and a context included"
    assert (BY_KERNEL in rows["parallel"]["proof"]) is (name == "kernels"), rows["parallel"]["proof"]


def test_texts_of_a_batch_are_those_of_one_gpu_in_whole_layers() -> None:
    arm = f"{OWN},{KERNELS}"
    one, two = compared(arm, f"{arm},parallel=tensor-2", batch=4)["arms"]
    assert one["token_ids"] == two["token_ids"]
    rows = {row["axis"]: row for row in two["evidence"]}
    assert rows["parallel"]["status"] == rows["kernels"]["status"] == "verified", rows
    assert BY_KERNEL in rows["parallel"]["proof"]
    assert "tokendyno_rows_norm" in rows["kernels"]["proof"], "the layers ran in the model's own code"


def test_ranks_read_their_part_of_the_experts_from_an_mxfp4_file() -> None:
    arm = "dtype=float32,experts=triton"
    one, two = compared(arm, f"{arm},parallel=expert-2", model=PACKED)["arms"]
    assert one["token_ids"] == two["token_ids"]
    rows = {row["axis"]: row["status"] for row in two["evidence"]}
    assert {rows[axis] for axis in ("parallel", "quantization", "experts")} == {"verified"}, rows
    check = two["memory_check"]["weights"]
    assert check["measured"] == check["predicted"] and len({rank["weight_bytes"] for rank in two["ranks"]}) == 1


@pytest.mark.parametrize(
    ("choice", "quantization", "more"),
    [("expert-2", "mxfp4", KERNELS), ("tensor-2", "mxfp4", ""), ("tensor-2", "none", KERNELS)],
)
def test_ranks_compute_their_part_of_the_experts_where_it_lies(
    choice: str, quantization: str, more: str, tmp_path: Path
) -> None:
    """Four layers of gpt-oss-20b, captured."""
    entry = find("gpt-oss-20b")
    assert entry is not None
    (tmp_path / "config.json").write_text(json.dumps(json.loads(entry.config) | FEW_OF_GPT_OSS))
    arm = f"cache=static,loop=own,cuda_graphs=manual,dtype=float32,experts=triton,quantization={quantization}"
    arm = f"{arm},{more}" if more else arm
    one, two = compared(arm, f"{arm},parallel={choice}", model=f"random:{tmp_path}")["arms"]
    assert one["token_ids"] == two["token_ids"]
    rows = {row["axis"]: row for row in two["evidence"]}
    axes = {"parallel", "experts", "cuda_graphs"} | ({"quantization"} if quantization == "mxfp4" else set())
    for axis in axes | ({"kernels", "projections"} if more else set()):
        assert rows[axis]["status"] == "verified", rows[axis]
    check = two["memory_check"]["weights"]
    assert check["measured"] == check["predicted"] < 0.55 * one["memory_check"]["weights"]["measured"]
    assert len({rank["weight_bytes"] for rank in two["ranks"]}) == 1


APART = """
import sys
if "tokendyno.backend.worker.ranks" in sys.orig_argv:
    import torch
    torch.cuda.can_device_access_peer = lambda *gpus: False
"""


def test_where_gpus_do_not_reach_each_other_nccl_exchanges_and_the_ledger_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sitecustomize(tmp_path, APART)
    monkeypatch.setenv("PYTHONPATH", with_path(tmp_path))
    arm = f"{OWN},{KERNELS}"
    one, two = compared(arm, f"{arm},parallel=tensor-2")["arms"]
    assert one["token_ids"] == two["token_ids"]
    row = next(row for row in two["evidence"] if row["axis"] == "parallel")
    assert row["status"] == "verified" and "all of them by NCCL" in row["proof"], row
