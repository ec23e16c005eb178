"""Measures one arm in this process with the code that the app's worker runs, for `limit.py`."""

import gc
import statistics
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tokendyno.backend.arms.check import check
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.config import Workload
from tokendyno.backend.hardware import detect
from tokendyno.backend.messages import Event, Finished, Generate, Progress, Tokens
from tokendyno.backend.models import resolve

SETTLED = 5  # tokens at the start of a run that its median leaves out


@dataclass(frozen=True)
class Work:
    """Length of the text, and number of runs. Batch 1; random weights never generate EOS."""

    prompt_tokens: int
    new: int
    repeats: int


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


def measure(row: Row, work: Work, temperature: float = 0.0, top_k: int = 0) -> Row:
    """Load, warm up, run `work.repeats` times. `error` says why an arm was refused or failed."""
    from tokendyno.backend.worker.channel import QueueChannel
    from tokendyno.backend.worker.load.loader import LoadedModel, load
    from tokendyno.backend.worker.runners.base import Runner
    from tokendyno.backend.worker.runners.choice import runner_for

    events: list[Event] = []
    channel = QueueChannel(events.append)
    workload = Workload(
        prompt="",
        prompt_tokens=work.prompt_tokens,
        max_new_tokens=work.new,
        ignore_eos=True,
        temperature=temperature,
        top_k=top_k,
    )
    checked = check(parse_arm(row.model, row.arm), resolve(row.model), detect(), workload)
    if checked.blocked:
        row.error = checked.blocked[0].reason
        return row
    job = Generate(
        plan=checked.plan,
        prompt="",
        prompt_tokens=work.prompt_tokens,
        max_new_tokens=work.new,
        batch_size=1,
        temperature=temperature,
        seed=0,
        ignore_eos=True,
        warmup=True,
        top_k=top_k,
    )
    runner: Runner | None = None
    model: LoadedModel | None = None
    try:
        model = load(checked.plan.load, channel)
        runner = runner_for(model, checked.plan, channel)
        for repeat in range(work.repeats):
            events.clear()
            runner.run(msgspec.structs.replace(job, prove=repeat == work.repeats - 1))  # as the app does
            times = [s for event in events if isinstance(event, Tokens) for s in event.latency_s]
            row.latency_s.append(statistics.median(times[SETTLED:]))
            row.compile_s += _seconds(events, "compile")
            row.warmup_s += _seconds(events, "warmup")
        finished = next(event for event in events if isinstance(event, Finished))
        row.ttft_s = finished.ttft_s
        row.unproved = [f"{f.axis}: {f.effective}" for f in finished.findings if checked.planned[f.axis] != f.effective]
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


def read_bytes(model: Any, work: Work) -> float:
    """Bytes that one token must read: all weights (of an untied input embedding one row), and keys and values in the
    middle of the run, at 2 bytes per element."""
    from tokendyno.backend.optimizations.tensor_bytes import total_bytes, weight_tensors

    total = total_bytes(weight_tensors(model))
    table, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
    if table.data_ptr() != head.data_ptr():
        total -= table.nbytes
    config = model.config.get_text_config(decoder=True)
    tokens = work.prompt_tokens + work.new // 2
    return float(total + 4 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * tokens)
