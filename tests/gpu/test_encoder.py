"""An encoder at its real shape on a GPU: attention, compile and quantization, each proved, with its memory released."""

from typing import Any

import pytest

from backend import hardware
from backend.arms.check import check
from backend.models import resolve
from backend.optimizations import all_axes
from tests.support.ledger import SOUND
from tests.support.refusals import skip_or_fail
from tools.bench.gpu.bench_cli import bench, tell

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

MODEL = "random:bert-base-uncased"
AXES = ("dtype", "attention", "compile", "quantization")
PASSES = 200


def arms() -> list[str]:
    """Each choice of these axes alone, and useful combinations."""
    single = [f"{axis.name}={c.name}" for axis in all_axes() if axis.name in AXES for c in axis.choices]
    return [*single, "dtype=float16,compile=max-autotune", "dtype=float16,attention=sdpa,compile=reduce-overhead"]


def used_bytes() -> int:
    return sum(gpu.memory_bytes - gpu.free_bytes for gpu in hardware.detect().gpus)


def blocked(arm: str) -> str:
    """Why the rules refuse this arm here, "" if they do not."""
    from backend.arms.parse import parse_arm
    from backend.config import Workload

    work = Workload(prompt_tokens=128, max_new_tokens=PASSES)
    found = check(parse_arm(MODEL, arm), resolve(MODEL), hardware.detect(), work).blocked
    return found[0].reason if found else ""


@pytest.mark.parametrize("arm", arms())
def test_the_choice_is_proved_and_the_memory_given_back(arm: str) -> None:
    reason = blocked(arm)
    if reason:
        skip_or_fail(arm, reason, MODEL)
    before = used_bytes()
    name = "encoder_" + arm.replace("=", "-").replace(",", "_")
    document: dict[str, Any] = bench(
        name, "run", "--model", MODEL, "--arm", arm, "--prompt-tokens", "128", "--batch-size", "8", "--max-new-tokens",
        str(PASSES),
    )  # fmt: skip
    tell(document)
    (only,) = document["arms"]
    for row in only["evidence"]:
        assert row["status"] in (*SOUND, "fallback"), row
    assert document["unit"] == "forward" and only["ttft_s"] is None and only["token_ids"] == []
    assert only["clock"] == "CUDA events"
    assert len(only["latency_s"]) == PASSES and min(only["latency_s"]) > 0
    assert only["time_s"] == sorted(only["time_s"])
    assert used_bytes() - before < 64 << 20


def test_a_compiled_encoder_leaves_less_of_the_gpu_idle() -> None:
    document = bench(
        "encoder_compared", "compare", "--model", MODEL, "--a", "dtype=float16", "--b",
        "dtype=float16,compile=reduce-overhead", "--prompt-tokens", "32", "--max-new-tokens", "300", "--repeats", "5",
    )  # fmt: skip
    tell(document)
    a, b = (arm["summary"]["gpu_busy_share"] for arm in document["arms"])
    assert a < b
    assert document["comparison"]["verdict"] == "b_faster"
    assert document["comparison"]["pairs"] == 5
