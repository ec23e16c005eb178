"""How near to the hardware's limit decoding comes, step by step: `python -m tests.bench.limit [--gpt-fast PATH]`.

Every step is an arm of the registry, run by the same code as in the app, one after the other in this process; medians
of `--repeats` runs. The floor: the bytes of weights that a token must read, and the keys and values that it sees, at
`--bandwidth`. Batch 1, random weights.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from backend.arms import parse_arm
from backend.config import Workload
from backend.hardware import machine
from backend.messages import Event, Finished, Generate, Progress, Tokens
from backend.models import resolve
from backend.rules import check

STATIC = "cache=static"
HAND = f"{STATIC},loop=own,cuda_graphs=manual"
FUSED = f"{HAND},projections=fused"
LOCAL = f"{FUSED},kernels=local"
STEPS: tuple[tuple[str, str], ...] = (
    ("generate as it comes", ""),
    ("generate, static cache", STATIC),
    ("generate, static cache, compiled", f"{STATIC},compile=reduce-overhead"),
    ("own loop, launched one by one", f"{STATIC},loop=own"),
    ("own loop, captured by hand", HAND),
    ("and fused projections", FUSED),
    ("and compiled, tuned, sdpa-gqa", f"{FUSED},compile=max-autotune-no-cudagraphs,attention=sdpa-gqa"),
    ("captured, fused, our kernels", LOCAL),
    ("and the rest compiled", f"{LOCAL},compile=default"),
    ("captured, torchao int8", f"{HAND},quantization=torchao-int8"),
    ("captured, fused, our kernels, torchao int8", f"{LOCAL},quantization=torchao-int8"),
)


@dataclass
class Step:
    """One arm's figures. `unproved`: axes whose effective choice was not the planned one; must be empty."""

    title: str
    arm: str
    latency_s: list[float] = field(default_factory=list)
    cold_s: float = 0.0
    ttft_s: float = 0.0
    read_bytes: float = 0.0
    unproved: list[str] = field(default_factory=list)
    error: str = ""


def measure(title: str, arm: str, model: str, options: argparse.Namespace) -> Step:
    """Load, warm up, run `--repeats` times. A step that is refused or fails says so in `error`."""
    import torch

    from backend.worker.decode import Decoder
    from backend.worker.loader import load
    from backend.worker.outbox import Outbox

    events: list[Event] = []

    class Kept(Outbox):
        def send(self, event: Event) -> None:
            events.append(event)

    step = Step(title, arm)
    workload = Workload(prompt="", prompt_tokens=options.prompt_tokens, max_new_tokens=options.new, ignore_eos=True)
    checked = check(parse_arm(model, arm), resolve(model), machine(), workload)
    if checked.blocked:
        step.error = checked.blocked[0].reason
        return step
    plan = checked.plan
    outbox = Kept(os.open(os.devnull, os.O_WRONLY))
    decoder: Decoder | None = None
    try:
        decoder = Decoder(load(plan.load, outbox), outbox)
        job = Generate(plan, "", options.prompt_tokens, options.new, 1, 0.0, 0, True, True)
        for _ in range(options.repeats):
            events.clear()
            decoder.run(job)
            times = [s for event in events if isinstance(event, Tokens) for s in event.latency_s]
            step.latency_s.append(statistics.median(times[5:]))
            compiling = [e.seconds for e in events if isinstance(e, Progress) and e.phase == "compile"]
            step.cold_s = max(step.cold_s, *compiling, 0.0)
        finished = next(event for event in events if isinstance(event, Finished))
        step.ttft_s = finished.ttft_s
        planned = checked.planned
        step.unproved = [f"{f.axis}: {f.effective}" for f in finished.findings if planned[f.axis] != f.effective]
        step.read_bytes = read_bytes(decoder.bench.model, options)
    except Exception as error:
        step.error = f"{type(error).__name__}: {error}"[:300]
    finally:
        del decoder
        torch._dynamo.reset()
        torch.cuda.empty_cache()
    return step


def read_bytes(model: Any, options: argparse.Namespace) -> float:
    """Bytes that one token must read: all weights, but of an input embedding of its own only a row; keys and values of
    the tokens before it, in the middle of the run."""
    from backend.optimizations.tensors import held_bytes, weight_tensors

    total = held_bytes(weight_tensors(model))
    table, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if table.data_ptr() != head.data_ptr():
        total -= table.nbytes
    config = model.config.get_text_config(decoder=True)
    tokens = options.prompt_tokens + options.new // 2
    return float(total + 4 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * tokens)


def gpt_fast(path: Path, options: argparse.Namespace) -> Step:
    """In a process of its own: it changes torch's settings."""
    command = [sys.executable, "-m", "tests.bench.gpt_fast", str(path), "--prompt-tokens", str(options.prompt_tokens)]
    command += ["--new", str(options.new), "--repeats", str(options.repeats)]
    command += ["--length", str(options.prompt_tokens + options.new)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return Step("gpt-fast", "", error=done.stderr.strip().splitlines()[-1])
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return Step("gpt-fast", "", found["latency_s"], found["cold_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="random:Llama-3-8B")
    parser.add_argument("--prompt-tokens", type=int, default=224)
    parser.add_argument("--new", type=int, default=800)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bandwidth", type=float, default=4.3e12, help="bytes a second; an H200 copies at 4.3e12")
    parser.add_argument("--gpt-fast", type=Path, help="a checkout to compare with")
    parser.add_argument("--only", nargs="*", help="steps whose title contains one of these")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    steps = [gpt_fast(options.gpt_fast, options)] if options.gpt_fast else []
    wanted = [s for s in STEPS if not options.only or any(part in s[0] for part in options.only)]
    print(f"{options.model}: prompt {options.prompt_tokens}, {options.new} tokens, medians of {options.repeats} runs")
    print(f"{'ms a token':>10} {'x floor':>8} {'runs':>23} {'cold s':>7}  step")
    for step in steps:
        tell(step, 0.0)
    for title, arm in wanted:
        steps.append(measure(title, arm, options.model, options))
        tell(steps[-1], steps[-1].read_bytes / options.bandwidth)
    if options.json:
        options.json.write_text(json.dumps([asdict(step) for step in steps], indent=1))


def tell(step: Step, floor_s: float) -> None:
    """One line."""
    if step.error:
        print(f"{'':>10} {'':>8} {'':>23} {'':>7}  {step.title}: {step.error}", flush=True)
        return
    runs = " ".join(f"{1e3 * s:.3f}" for s in step.latency_s)
    share = f"{statistics.median(step.latency_s) / floor_s:.3f}" if floor_s else ""
    wrong = f"  NOT PROVED: {', '.join(step.unproved)}" if step.unproved else ""
    latency_ms = 1e3 * statistics.median(step.latency_s)
    print(f"{latency_ms:>10.3f} {share:>8} {runs:>23} {step.cold_s:>7.1f}  {step.title}{wrong}", flush=True)


if __name__ == "__main__":
    main()
