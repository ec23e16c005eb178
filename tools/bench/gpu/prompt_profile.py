"""Profiles the pass over a prompt, and measures what each kernel between its products gains.

    python -m tools.bench.gpu.prompt_profile [--model random:Llama-3-8B] [--tokens 8000] [--json FILE]

As the custom decode loop reads it: fused projections, kernels=local, of mixtures experts=triton. Printed: milliseconds
with everything on and with each piece off, in turns, and the kernels of one pass in order of time.
"""

import argparse
import json
import statistics
from pathlib import Path

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.loop.step import Step
from tools.bench.gpu.step_profile import Bed, summed

ROUNDS = 7
PIECES = {"rotation in one kernel": "ROTATES", "gates in one kernel": "GATES"}
"""Piece -> the name in the kernels' `prompts` that switches it off."""


def main() -> None:
    """Print both tables, and write them as JSON with --json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="random:Llama-3-8B")
    parser.add_argument("--tokens", type=int, default=8000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with torch.inference_mode():
        bed = Bed(options.model, options.tokens + 64)
        prompts = bed.module("tokendyno-matvec", "prompts")
        step = Step(bed.model, bed.cache, 1, Sampling(), 0)
        ids = torch.randint(3, 1000, (1, options.tokens), device="cuda")

        def once() -> None:
            step.begin(ids, torch.ones_like(ids), 0, [])

        def pass_s() -> float:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            once()
            last.record()
            last.synchronize()
            return float(first.elapsed_time(last)) / 1e3

        variants: dict[str, tuple[str, ...]] = {
            "everything on": (),
            **{f"without: {piece}": (name,) for piece, name in PIECES.items()},
            "everything off": tuple(PIECES.values()),
        }
        times: dict[str, list[float]] = {variant: [] for variant in variants}
        for turn in range(ROUNDS + 1):  # the first warms up
            for variant, off in variants.items():
                for name in PIECES.values():
                    setattr(prompts, name, name not in off)
                took_s = pass_s()
                if turn:
                    times[variant].append(took_s)
        for name in PIECES.values():
            setattr(prompts, name, True)
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            once()
            torch.cuda.synchronize()
    events = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
    rows = summed(sorted(((e.name, e.time_range.start, e.time_range.end) for e in events), key=lambda span: span[1]))
    gpu = torch.cuda.get_device_name()
    print(f"{options.model}, {options.tokens} tokens, {gpu}")
    for variant, passes in times.items():
        print(f"{variant:34} {1e3 * statistics.median(passes):8.2f} ms")
    for row in rows[:24]:
        print(f"{row['count']:4} x {row['name'][:70]:70} adds {row['added_us'] / 1e3:8.2f} ms")
    if options.json:
        setup = {"model": options.model, "tokens": options.tokens, "gpu": gpu, "torch": torch.__version__}
        options.json.write_text(json.dumps({**setup, "pass_s": times, "kernels": rows}))


if __name__ == "__main__":
    main()
