"""Ablations and sweeps whose figures are known, without a worker."""

from pathlib import Path
from typing import Any

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.journal import Cost, Heading, Journal, Trial
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
