"""The bandwidth that `tokendyno doctor --bandwidth` measures, held against another source, on an idle machine:
`python -m tools.bench.bandwidth [--rounds N]`.

Prints a JSON object with ratios: on a CPU to what numpy reads and copies in turn with it, on a GPU to the data sheet's
(presets/gpus.toml). Twice the bytes or half the seconds in the measurement would show as 2 or 0.5.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

from tokendyno.backend import hardware
from tokendyno.backend.hardware.bandwidth import measure
from tokendyno.backend.hardware.gpu_specs import find_by_nvml_name

BUFFER_BYTES = 64 << 20


def to_numpy(rounds: int) -> dict[str, float]:
    """Median ratios of torch's rates to numpy's."""
    import numpy as np

    from tokendyno.backend.worker import bandwidth as inside

    source = np.ones(BUFFER_BYTES // 4, dtype=np.float32)
    target = np.empty_like(source)
    ratios: dict[str, list[float]] = {"read": [], "copy": []}
    for _ in range(rounds):
        found = inside.measure("cpu", source.nbytes)
        others = {"read": _median_s(source.max), "copy": _median_s(np.copyto, target, source) / 2}
        for name, taken_s in others.items():
            ratios[name].append(float(str(found[f"{name}_bytes_per_s"])) * taken_s / source.nbytes)
    return {name: statistics.median(each) for name, each in ratios.items()}


def _median_s(act: Callable[..., object], *arguments: object) -> float:
    taken_s = []
    for _ in range(5):
        begin_s = time.perf_counter()
        act(*arguments)
        taken_s.append(time.perf_counter() - begin_s)
    return statistics.median(taken_s)


def to_data_sheet(name: str) -> dict[str, float | None]:
    """Ratios of what a process of its own measures to the data sheet's rate; None for a GPU that is not listed."""
    found, spec = measure(hardware.detect()), find_by_nvml_name(name)
    rates = {"read": found.read_bytes_per_s, "copy": found.copy_bytes_per_s}
    return {kind: rate / spec.bandwidth_bytes_per_s if spec else None for kind, rate in rates.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.bench.bandwidth", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--rounds", type=int, default=9, metavar="N", help="of the two in turn, on a CPU")
    options = parser.parse_args()
    machine = hardware.detect()
    ratios = to_data_sheet(machine.gpus[0].name) if machine.gpus else to_numpy(options.rounds)
    print(json.dumps({"device": machine.name, "to": "data sheet" if machine.gpus else "numpy", **ratios}))


if __name__ == "__main__":
    main()
