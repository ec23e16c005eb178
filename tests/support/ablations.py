"""Ablations, sweeps and advice whose figures are known, without a worker."""

from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.advise.course import heading_of_advice
from tokendyno.backend.ablation.advise.wishes import Limits, Question
from tokendyno.backend.ablation.journal import Cost, Heading, Journal, Left, Trial
from tokendyno.backend.config import Workload

OVER = [("batch_size", "1,4,16"), ("dtype", "bfloat16,float32")]
WORK = Workload("Once upon a time, there was", max_new_tokens=3)


def stored(folder: Path, name: str = "stored-worth", **heading: Any) -> None:
    """A journal whose figures are known: 100 ms and 100 MiB, 80 and 60 ms with a choice each, 50 ms with both."""
    changes = [("dtype", "float32"), ("cache", "static")]
    first = Heading(
        "pocket", {"dtype": "bfloat16"}, changes, ["alone", "without", "stair"], WORK, rounds=3, positions=96
    ).begun(hardware.detect())
    (folder / "ablations").mkdir(exist_ok=True)
    journal = Journal(folder / "ablations" / f"{name}.jsonl", msgspec.structs.replace(first, **heading))
    arms = {
        "dtype=bfloat16": 0.1,
        "dtype=float32": 0.08,
        "cache=static,dtype=bfloat16": 0.06,
        "cache=static,dtype=float32": 0.05,
    }
    for number in range(3):
        for arm, step_s in arms.items():
            size = (100 if arm == "dtype=bfloat16" else 90) << 20
            journal.add(Trial(arm, number, [0.5, *[step_s + 0.001 * number] * 20], 0.5, size, 7, [1, 2], {}))
    journal.add(Cost("dtype=float32", 0.02, 0.96, 1.01, "small", (0.01, 0.03)))
    journal.close()


def stored_sweep(folder: Path, name: str = "stored-sweep", over: Any = OVER, **heading: Any) -> None:
    """A journal whose figures are known: 8 ms for each sequence and 20 ms more with bfloat16, in 100 MiB, or 150 with
    float32; the 16 sequences in float32 are not measured yet."""
    first = Heading("pocket", {}, over, ["sweep"], WORK, rounds=3, positions=96).begun(hardware.detect())
    (folder / "ablations").mkdir(exist_ok=True)
    journal = Journal(folder / "ablations" / f"{name}.jsonl", msgspec.structs.replace(first, **heading))
    for number in range(3):
        for size in (1, 4, 16):
            for dtype, more_s, mib in (("bfloat16", 0.02, 100), ("float32", 0.0, 150)):
                if (size, dtype) != (16, "float32"):
                    step_s = 0.008 * size + more_s + 0.001 * number
                    point = f"batch_size={size},dtype={dtype}"
                    journal.add(Trial(point, number, [0.5, *[step_s] * 8], 0.5, mib << 20, 7, [1, 2], {}))
    journal.add(Cost("dtype=float32", 0.02, 0.96, 1.01, "small", (0.01, 0.03)))
    journal.close()


def stored_advice(folder: Path, name: str = "stored-advice", **heading: Any) -> None:
    """A journal whose figures are known: 20 ms and 100 MiB as it comes, 10 ms with a static cache in the custom loop,
    25 ms in float16, whose quality was read, and projections that failed."""
    first = heading_of_advice(Question("pocket", WORK, "latency", Limits(latency_s=0.015)), budget_s=60)
    first = msgspec.structs.replace(first.begun(hardware.detect()), positions=96, **heading)
    (folder / "ablations").mkdir(exist_ok=True)
    journal = Journal(folder / "ablations" / f"{name}.jsonl", first)
    for number in range(2):
        for arm, step_s, mib in (("", 0.02, 100), ("cache=static,loop=own", 0.01, 120), ("dtype=float16", 0.025, 90)):
            step_s += 0.0001 * number
            journal.add(Trial(arm, number, [0.05, *[step_s] * 20], 0.05, mib << 20, 7, [1], spent_s=5.0, start_s=2.0))
    journal.add(Cost("dtype=float16", 0.02, 0.96, 1.01, "small", spent_s=5.0))
    journal.add(Left("projections=fused", "out of memory", True, 1.0))
    journal.close()
