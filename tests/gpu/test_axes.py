"""Every choice of every axis on a GPU: proved in the ledger, memory back at the baseline afterwards."""

from typing import Any

import pytest

from backend import hardware
from backend.optimizations import axes
from tests.gpu.bench_cli import bench, tell

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

MODEL = "random:Qwen3-0.6B"


def arms() -> list[str]:
    found = []
    for axis in axes():
        for choice in axis.choices:
            more = ",cache=static" if axis.name == "compile" and choice.name != "off" else ""
            found.append(f"{axis.name}={choice.name}{more}")
    return found


def used_bytes() -> int:
    return sum(gpu.memory_bytes - gpu.free_bytes for gpu in hardware.machine().gpus)


@pytest.mark.parametrize("arm", arms())
def test_the_choice_is_proved_and_the_memory_given_back(arm: str) -> None:
    before = used_bytes()
    name = arm.replace("=", "-").replace(",", "_")
    document: dict[str, Any] = bench(
        name, "run", "--model", MODEL, "--arm", arm, "--prompt-tokens", "64", "--max-new-tokens", "200"
    )
    tell(document)
    (only,) = document["arms"]
    for row in only["evidence"]:
        assert row["status"] == "proved", row
    assert only["kv_bytes"] == only["kv_bytes_predicted"]
    assert only["clock"] == "CUDA events"
    assert used_bytes() - before < 64 << 20
