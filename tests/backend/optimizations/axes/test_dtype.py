"""dtype=auto: the checkpoint's, but for bfloat16 on a CPU that was measured to be slower in it."""

from dataclasses import replace

import pytest

from tests.support.machines import CPU, GIB, H200, facts
from tokendyno.backend.arms.check import Checked, check
from tokendyno.backend.arms.parse import make_config
from tokendyno.backend.config import Workload
from tokendyno.backend.evidence import Evidence, Finding
from tokendyno.backend.hardware import Machine
from tokendyno.backend.hardware.number_formats import FormatTime
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.optimizations.subject import CLEARLY_SLOWER
from tokendyno.backend.plan import LoadPlan, Plan
from tokendyno.backend.worker.prove.observation import Observation
from tokendyno.backend.worker.witness import find

TIMES = (
    FormatTime(8 << 20, 1, 2.14),
    FormatTime(8 << 20, 8, 1.0),
    FormatTime(96 << 20, 1, 1.1),
    FormatTime(96 << 20, 8, 0.5),
)
SLOW = replace(CPU, bfloat16=TIMES)
SLOW_TO_12_MIB = replace(CPU, bfloat16=(FormatTime(8 << 20, 1, 2.14), FormatTime(18 << 20, 1, 1.0)))
SLOW_FOR_ALL = replace(CPU, bfloat16=(FormatTime(96 << 20, 1, 3.0),))


def checked(machine: Machine, model: str = "pocket", batch_size: int = 1, **choices: str) -> Checked:
    return check(make_config(model, choices), facts(model), machine, Workload(prompt="x", batch_size=batch_size))


@pytest.mark.parametrize(
    ("machine", "model", "batch_size", "choices", "dtype"),
    [
        (SLOW, "pocket", 1, {}, "float32"),
        (SLOW_TO_12_MIB, "pocket", 1, {}, "float32"),  # 9.5 MiB of weights
        (replace(CPU, bfloat16=(FormatTime(8 << 20, 1, CLEARLY_SLOWER),)), "pocket", 1, {}, "float32"),
        (replace(CPU, bfloat16=(FormatTime(8 << 20, 1, CLEARLY_SLOWER - 0.01),)), "pocket", 1, {}, "bfloat16"),
        (SLOW, "pocket", 8, {}, "bfloat16"),  # with more rows it is as fast
        (SLOW, "pocket", 8, {"batching": "static"}, "float32"),  # of many requests the same in both ways
        (SLOW, "pocket", 8, {"batching": "continuous"}, "float32"),
        (SLOW, "pocket", 1, {"dtype": "bfloat16"}, "bfloat16"),
        (CPU, "pocket", 1, {}, "bfloat16"),  # never measured
        (SLOW, "random:Qwen3-0.6B", 1, {}, "bfloat16"),
        (SLOW_FOR_ALL, "random:Qwen3-0.6B", 1, {}, "float32"),
        (replace(SLOW_FOR_ALL, memory_bytes=8 * GIB), "random:Qwen3-0.6B", 1, {}, "bfloat16"),  # too much in float32
        (SLOW_FOR_ALL, "random:gpt2", 1, {}, "float32"),  # as the checkpoint is
        (replace(H200, bfloat16=TIMES), "pocket", 1, {}, "bfloat16"),
    ],
)
def test_auto_settles_for_what_was_measured_to_be_fast(
    machine: Machine, model: str, batch_size: int, choices: dict[str, str], dtype: str
) -> None:
    arm = checked(machine, model, batch_size, **choices)
    assert arm.planned["dtype"] == dtype
    settled = [verdict for verdict in arm.verdicts if verdict.axis == "dtype" and verdict.becomes]
    moved = dtype != facts(model).dtype and "dtype" not in choices
    assert [verdict.level for verdict in settled] == ["note"] * moved
    assert arm.plan.load.dtype == ("float32" if moved else "auto")


def test_the_note_names_the_measurement_and_memory_is_predicted_in_float32() -> None:
    arm = checked(SLOW)
    (note,) = [verdict for verdict in arm.verdicts if verdict.becomes]
    assert note.reason.startswith(
        "auto -> float32: on this CPU, products of 8 MiB of bfloat16 weights took 2.14 times as long as in float32"
    )
    assert arm.memory == checked(SLOW, dtype="float32").memory != checked(SLOW, dtype="bfloat16").memory


def test_a_row_that_was_settled_is_verified_with_the_reason() -> None:
    row = Evidence("auto", "float32", Finding("dtype", "float32", "all", 3, 3), settled="auto -> float32: measured.")
    assert row.status == "verified" and row.reason == "auto -> float32: measured."


@pytest.mark.parametrize(("blocks", "reached"), [("uint8", 3), ("bfloat16", 4), ("a kernel's own", 3)])
def test_biases_beside_packed_weights_may_be_in_float32(blocks: str, reached: int) -> None:
    """MXFP4's experts add theirs to sums in float32; beside plain weights the same biases are of another format."""
    import torch

    experts, model = torch.nn.Module(), torch.nn.Module()
    parameters = {"gate_up_proj_bias": torch.float32}
    if blocks == "a kernel's own":
        experts.gate_up_proj = object()
    else:
        parameters["gate_up_proj_blocks"] = getattr(torch, blocks)
    for name, dtype in parameters.items():
        experts.register_parameter(name, torch.nn.Parameter(torch.zeros(4, dtype=dtype), requires_grad=False))
    model.experts = experts
    model.head = torch.nn.Linear(64, 64, dtype=torch.bfloat16)
    model.norm = torch.nn.RMSNorm(64, dtype=torch.bfloat16)
    finding = find("dtype", Observation(model, None, Plan(LoadPlan(ModelSource("random")))))
    assert (finding.effective, finding.reached) == ("bfloat16", reached)
    assert finding.expected == (5 if blocks == "bfloat16" else 3)
