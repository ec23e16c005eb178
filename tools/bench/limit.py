"""Decoding against the roofline bound: `python -m tools.bench.limit [--json FILE]`.

Arms of the registry, carried out by the app's code one after the other in this process. Medians of `--repeats` runs,
batch 1, random weights. The bound: bytes of weights, keys and values that a token must read, at the read bandwidth
measured on this machine (now, if it never was), else the data sheet's: that of the app. The most important rows run
first and each is saved when it is done, for runs that are cut short (`--budget-s`); `--resume` continues from the file.
`--tiny`: the embedded model, to try this script on a CPU.
"""

import argparse
import gc
import json
import statistics
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import peak_rates
from tokendyno.backend.messages import Event, Finished, Generate, Progress, Tokens
from tokendyno.backend.models import resolve

BIG, SMALL = "random:Llama-3-8B", "random:Qwen3-0.6B"
STATIC = "cache=static"
HAND = f"{STATIC},loop=own,cuda_graphs=manual"
FUSED = f"{HAND},projections=fused"
LOCAL = f"{FUSED},kernels=local"
TUNED = "compile=max-autotune-no-cudagraphs"
SETTLED = 5
"""Tokens at the start of a run that its median leaves out."""


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


@dataclass
class Row:
    """One line of the table.

    latency_s            median time of a token, one for each run
    compile_s, warmup_s  what came before the first run: compiling; capturing, tuning kernels, a few steps
    read_bytes           what a token must read
    unproved             axes whose effective choice was not the planned one; must be empty
    left_bytes           of the GPU, after the arm was given up
    """

    title: str
    model: str = ""
    arm: str = ""
    latency_s: list[float] = field(default_factory=list)
    compile_s: float = 0.0
    warmup_s: float = 0.0
    ttft_s: float = 0.0
    read_bytes: float = 0.0
    unproved: list[str] = field(default_factory=list)
    error: str = ""
    left_bytes: int = 0


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
    arms = sorted(ARMS, key=lambda arm: not arm.soon)
    perform([arm for arm in arms if not options.only or any(part in arm.title for part in options.only)], options)


def perform(arms: list[Arm], options: argparse.Namespace) -> None:
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
    rows = []
    if options.resume and options.json and options.json.exists():
        rows = [Row(**fields) for fields in json.loads(options.json.read_text()) if not fields["error"]]
    for row in rows:
        print(line_of(row, bandwidth))
    work = Workload("", options.prompt_tokens, options.new, repeats=options.repeats, ignore_eos=True)
    for arm in [arm for arm in arms if arm.title not in {row.title for row in rows}]:
        if time.monotonic() - begin_s > options.budget_s:
            print(f"{arm.title}: skipped, after {options.budget_s:.0f} s")
            continue
        row = Row(arm.title, "random:pocket" if options.tiny else arm.model, arm.arm)
        rows.append(measure(row, replace(work, temperature=arm.temperature, top_k=arm.top_k)))
        print(line_of(row, bandwidth), flush=True)
        if options.json:
            options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1))


def line_of(row: Row, bandwidth: float | None) -> str:
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


def measure(row: Row, work: Workload) -> Row:
    """Load, warm up, run `work.repeats` times. `error` says why an arm was refused or failed."""
    from tokendyno.backend.worker.channel import Channel
    from tokendyno.backend.worker.load.loader import LoadedModel, load
    from tokendyno.backend.worker.runners.course import Course, course_for

    events: list[Event] = []
    channel = Channel(events.append)
    checked = check(parse_arm(row.model, row.arm), resolve(row.model), hardware.detect(), work)
    if checked.blocked:
        row.error = checked.blocked[0].reason
        return row
    tokens = work.prompt_tokens, work.max_new_tokens
    job = Generate(checked.plan, "", *tokens, 1, work.temperature, 0, True, warmup=True, top_k=work.top_k)
    runner: Course | None = None
    model: LoadedModel | None = None
    try:
        model = load(checked.plan.load, channel)
        runner = course_for(model, checked.plan, channel)
        for repeat in range(work.repeats):
            events.clear()
            runner.run(msgspec.structs.replace(job, prove=repeat == work.repeats - 1))  # as the app does
            times = [s for event in events if isinstance(event, Tokens) for s in event.latency_s]
            row.latency_s.append(statistics.median(times[SETTLED:]))
            row.compile_s += _seconds(events, "compile")
            row.warmup_s += _seconds(events, "warmup")
        finished = next(event for event in events if isinstance(event, Finished))
        row.ttft_s = finished.ttft_s
        row.unproved = [
            f"{f.axis}: {f.effective}"
            for f in finished.findings
            if checked.planned.get(f.axis, f.effective) != f.effective
        ]
        row.read_bytes = read_bytes(model.model, work)
    except Exception as error:
        row.error = f"{type(error).__name__}: {error}"[:300]
    runner = model = None
    row.left_bytes = give_back()
    return row


def give_back() -> int:
    """Free the last arm's memory (a compiled step and its model form a cycle). Returns the bytes still allocated."""
    import torch

    torch._dynamo.reset()
    gc.collect()
    if not torch.cuda.is_available():
        return 0
    torch.cuda.empty_cache()
    return int(torch.cuda.memory_allocated())


def _seconds(events: list[Event], phase: str) -> float:
    return sum(e.seconds for e in events if isinstance(e, Progress) and e.phase == phase and e.state == "end")


def read_bytes(model: Any, work: Workload) -> float:
    """Bytes that one token must read: all weights (of an untied input embedding one row), and keys and values in the
    middle of the run, at 2 bytes per element."""
    from tokendyno.backend.worker.prove.tensor_bytes import total_bytes, weight_tensors

    total = total_bytes(weight_tensors(model))
    table, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if table.data_ptr() != head.data_ptr():
        total -= table.nbytes
    config = model.config.get_text_config(decoder=True)
    tokens = work.prompt_tokens + work.max_new_tokens // 2
    return float(total + 4 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * tokens)


if __name__ == "__main__":
    main()
