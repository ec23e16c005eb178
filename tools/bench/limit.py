"""Decoding against the roofline bound: `python -m tools.bench.limit [--json FILE]`.

Arms of the registry, carried out by the app's code one after the other in this process. Medians of `--repeats` runs,
batch 1, random weights. The bound: bytes of weights, keys and values that a token must read, at the read bandwidth
measured on this machine (now, if it never was), else the data sheet's: that of the app. The most important rows run
first and each is saved when it is done, for runs that are cut short (`--budget-s`); `--resume` continues from the file.
`--tiny`: a small model, to try this script on a CPU.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from tokendyno.backend import hardware
from tokendyno.backend.hardware import peak_rates
from tools.bench.limit_arms import Row, Work, measure

BIG, SMALL = "random:Llama-3-8B", "random:Qwen3-0.6B"
STATIC = "cache=static"
HAND = f"{STATIC},loop=own,cuda_graphs=manual"
FUSED = f"{HAND},projections=fused"
LOCAL = f"{FUSED},kernels=local"
TUNED = "compile=max-autotune-no-cudagraphs"
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 300,
    "max_position_embeddings": 512,
    "dtype": "bfloat16",
}


class Arm(NamedTuple):
    """An arm to measure. `soon`: an important one, measured before the others."""

    title: str
    arm: str
    soon: bool = False
    temperature: float = 0.0
    top_k: int = 0
    model: str = BIG


ARMS: tuple[Arm, ...] = (
    Arm("generate as it comes, in the app's worker", "", True),
    Arm("generate, static cache", STATIC),
    Arm("generate, static cache, compiled", f"{STATIC},compile=reduce-overhead"),
    Arm("own loop, launched one by one", f"{STATIC},loop=own"),
    Arm("own loop, captured by hand", HAND),
    Arm("own loop over the compiled forward", f"{STATIC},loop=own,compile=reduce-overhead"),
    Arm("captured, compiled and tuned", f"{HAND},{TUNED}"),
    Arm("and sdpa-gqa", f"{HAND},{TUNED},attention=sdpa-gqa"),
    Arm("and fused projections", f"{FUSED},{TUNED},attention=sdpa-gqa", True),
    Arm("captured, fused, our kernels", LOCAL, True),
    Arm("and the rest compiled", f"{LOCAL},compile=default", True),
    Arm("our kernels, sampling as gpt-fast does", LOCAL, True, 0.8, 200),
    Arm("captured, compiled, tuned, torchao int8", f"{FUSED},{TUNED},attention=sdpa-gqa,quantization=torchao-int8"),
    Arm("captured, fused, our kernels, torchao int8", f"{LOCAL},quantization=torchao-int8", True),
    Arm("captured, fused, our kernels, torchao int4", f"{LOCAL},quantization=torchao-int4", True),
    Arm("Qwen3-0.6B: generate as it comes", "", model=SMALL),
    Arm("Qwen3-0.6B: captured, compiled and tuned", f"{FUSED},{TUNED},attention=sdpa-gqa", model=SMALL),
    Arm("Qwen3-0.6B: captured, fused, our kernels", LOCAL, True, model=SMALL),
    Arm("Qwen3-0.6B: and the rest compiled", f"{LOCAL},compile=default", True, model=SMALL),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompt-tokens", type=int, default=224)
    parser.add_argument("--new", type=int, default=800)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="*", help="rows whose title contains one of these")
    parser.add_argument("--json", type=Path, help="file for the rows, rewritten after each")
    parser.add_argument("--budget-s", type=float, default=1e9, help="start no more rows after this many seconds")
    parser.add_argument("--resume", action="store_true", help="skip rows that are already in the --json file")
    parser.add_argument("--tiny", action="store_true")
    options = parser.parse_args()
    work = Work(options.prompt_tokens, options.new, options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        if options.tiny:
            (Path(folder) / "config.json").write_text(json.dumps(TINY))
        perform(rows(options, work, f"random:{folder}"), options)


def rows(options: argparse.Namespace, work: Work, tiny: str) -> list[tuple[str, Callable[[], Row]]]:
    """The rows to measure, the most important first."""
    big, small = (tiny, tiny) if options.tiny else (BIG, SMALL)
    arms = [
        (a, lambda a=a: measure(Row(a.title, small if a.model == SMALL else big, a.arm), work, a.temperature, a.top_k))
        for a in ARMS
    ]
    found = [(a.title, act) for a, act in sorted(arms, key=lambda arm: not arm[0].soon)]
    return [row for row in found if not options.only or any(part in row[0] for part in options.only)]


def perform(wanted: list[tuple[str, Callable[[], Row]]], options: argparse.Namespace) -> None:
    """Measure, print and save one row after the other."""
    begin_s = time.monotonic()
    machine = hardware.detect()
    peak_rates.measure_once(machine, stopped=lambda: False)
    rates = peak_rates.of_machine(machine, "bfloat16")
    bandwidth = rates.bandwidth_bytes_per_s if rates else None
    print(
        f"roofline bound at {bandwidth / 1e9:,.4g} GB/s, {rates.source}" if bandwidth and rates else "no roofline bound"
    )
    print(f"prompt {options.prompt_tokens}, {options.new} tokens, medians of {options.repeats} runs; ms a token")
    print(f"{'ms':>8} {'x bound':>8} {'runs':>23} {'compile':>8} {'warm-up':>8}  row")
    kept = []
    if options.resume and options.json and options.json.exists():
        rows_before = [Row(**found) for found in json.loads(options.json.read_text())]
        kept = [row for row in rows_before if not row.error]
    for row in kept:
        print(told(row, bandwidth))
    for title, act in [(title, act) for title, act in wanted if title not in {row.title for row in kept}]:
        if time.monotonic() - begin_s > options.budget_s:
            print(f"{title}: skipped, after {options.budget_s:.0f} s")
            continue
        kept.append(act())
        print(told(kept[-1], bandwidth), flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in kept], indent=1))


def told(row: Row, bandwidth: float | None) -> str:
    """The row as one line of the table."""
    if row.error:
        return f"{row.title}: {row.error}"
    latency_s = statistics.median(row.latency_s)
    runs = " ".join(f"{1e3 * s:.3f}" for s in row.latency_s)
    share = f"{latency_s * bandwidth / row.read_bytes:.3f}" if row.read_bytes and bandwidth else ""
    wrong = f"  NOT PROVED: {', '.join(row.unproved)}" if row.unproved else ""
    left = f"  {row.left_bytes / 2**20:,.0f} MiB left behind" if row.left_bytes > 64 << 20 else ""
    seconds = f"{row.compile_s:>7.1f}s {row.warmup_s:>7.1f}s"
    return f"{1e3 * latency_s:>8.3f} {share:>8} {runs:>23} {seconds}  {row.title}{wrong}{left}"


if __name__ == "__main__":
    main()
