"""CPU time of a token, thread by thread: `python -m tools.bench.launch_cost [--model M] [--pairs N] [--tokens N]`.

For arms that the host's launches of kernels slow down. In turn, in processes that stay loaded: a script that only calls
`generate`, before its process was profiled, after that, and after the profiler was detached again; and a worker's
measured run, before its process took a proof and after. Two profiles are taken each time, and the kernels that the
second one saw are printed, since a profiler that was detached must be able to attach again. On a CPU nothing is
attached, and a folder with a model of tiny width and many layers shows what the code itself costs.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any
from unittest import mock

from tokendyno.backend.executors.subprocess import environment
from tokendyno.backend.paths import ROOT

PROMPT = "Once upon a time, there was a little fox named Pip."
Seconds = dict[str, float]


class Threads:
    """CPU seconds by thread between `begin` and `end`, which both are called in the thread that generates."""

    def begin(self) -> None:
        self._before, self._cpu_s, self._begin_s = _by_thread(), time.process_time(), time.perf_counter()

    def end(self) -> None:
        wall_s, cpu_s = time.perf_counter() - self._begin_s, time.process_time() - self._cpu_s
        now = {name: spent - self._before.get(name, 0.0) for name, spent in _by_thread().items()}
        others = {"threads of libraries": max(0.0, cpu_s - sum(now.values()))}
        self.found: Seconds = {"wall": wall_s, "CPU": cpu_s, **now, **others}


def _by_thread() -> Seconds:
    found = {}
    for thread in threading.enumerate():
        if thread.ident is not None:
            name = "main" if thread is threading.main_thread() else thread.name
            found[name] = time.clock_gettime(time.pthread_getcpuclockid(thread.ident))
    return found


# --- in the processes -------------------------------------------------------------------------------


def profile_once(generate: Callable[[], object]) -> Seconds:
    """As the proof of a run does; returns how many kernels were seen."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if torch.cuda.is_available() else [])]
    with profile(activities=activities, record_shapes=True) as profiler:
        generate()
    on_gpu = torch.autograd.DeviceType.CUDA
    events = profiler.profiler.kineto_results.events()
    return {"kernels": float(sum(event.device_type() == on_gpu for event in events))}


def script(model_ref: str, tokens: int) -> Callable[[str], Seconds]:
    """A bare script's calls of `generate`."""
    import torch
    from transformers import DynamicCache, GenerationConfig

    from tokendyno.backend.worker.prove.detach import detach

    model, tokenizer = _load(model_ref)
    ids = tokenizer(PROMPT, return_tensors="pt")["input_ids"].to(model.device)
    sync = torch.cuda.synchronize if model.device.type == "cuda" else lambda: None

    def generate(count: int) -> Seconds:
        settings = GenerationConfig(
            max_new_tokens=count, do_sample=False, eos_token_id=None, pad_token_id=0, disable_compile=True
        )
        cache, threads = DynamicCache(config=model.config), Threads()
        sync()
        threads.begin()
        with torch.inference_mode():
            model.generate(ids, attention_mask=torch.ones_like(ids), past_key_values=cache, generation_config=settings)
        sync()
        threads.end()
        return threads.found

    def answer(order: str) -> Seconds:
        if order == "profile":
            return profile_once(lambda: generate(4))
        if order == "detach":
            sync()
            return {"detached": float(detach())}
        return generate(tokens)

    generate(8)
    return answer


def _load(model_ref: str) -> tuple[Any, Any]:
    from tokendyno.backend.worker.channel import QueueChannel
    from tokendyno.backend.worker.load.loader import load

    loaded = load(_plan(model_ref).load, QueueChannel(lambda event: None))
    return loaded.model, loaded.tokenizer


@functools.cache
def _plan(model_ref: str) -> Any:
    from tokendyno.backend.arms.check import check
    from tokendyno.backend.arms.parse import parse_arm
    from tokendyno.backend.config import Workload
    from tokendyno.backend.hardware import detect
    from tokendyno.backend.models import resolve

    return check(parse_arm(model_ref, ""), resolve(model_ref), detect(), Workload(prompt=PROMPT)).plan


def worker(model_ref: str, tokens: int) -> Callable[[str], Seconds]:
    """A worker's measured runs, whose events go into a pipe that another process reads."""
    from tokendyno.backend.worker.lazy_imports import kept_imports

    with kept_imports():
        from tokendyno.backend.worker.serve import Worker
    from tokendyno.backend.messages import Event, Finished, Generate, Load
    from tokendyno.backend.worker.channel import PipeChannel
    from tokendyno.backend.worker.measure.annotations import Annotations

    class Noting(PipeChannel):
        def send(self, event: Event) -> None:
            if isinstance(event, Finished):
                finished.append(event)
            super().send(event)

    finished: list[Finished] = []
    reader = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert reader.stdin is not None
    channel = Noting(reader.stdin.fileno(), lambda: os._exit(1))
    plan, threads = _plan(model_ref), Threads()
    starts, stops = Annotations.start, Annotations.stop

    def start(self: Any, begin_s: float) -> None:
        starts(self, begin_s)
        threads.begin()

    def stop(self: Any) -> None:
        threads.end()
        stops(self)

    mock.patch.object(Annotations, "start", start).start()
    mock.patch.object(Annotations, "stop", stop).start()
    own = Worker(channel, threading.Event(), False)
    own.carry_out(Load(plan))

    def answer(order: str) -> Seconds:
        prove = order == "profile"
        job = Generate(plan, PROMPT, 0, tokens, 1, 0.0, 0, True, True, prove=prove)
        own.carry_out(job)
        if prove:
            last = finished[-1]
            return {"profiler attached": last.extra.profiler_attached or 0.0, "busy": last.extra.step_busy_s or 0.0}
        return threads.found

    answer("run")
    return answer


def serve(kind: str, model_ref: str, tokens: int) -> None:
    """Carry out the orders that arrive on standard input, one a line."""
    answer = {"script": script, "worker": worker}[kind](model_ref, tokens)
    print("{}", flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(line.strip())), flush=True)


# --- beside them ------------------------------------------------------------------------------------


class Process:
    """One of the processes, which works when it is told to."""

    def __init__(self, kind: str, options: Any) -> None:
        command = [sys.executable, "-m", "tools.bench.launch_cost", "--kind", kind, "--model", options.model]
        command += ["--tokens", str(options.tokens)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment(), cwd=ROOT)
        assert self._process.stdin and self._process.stdout
        self._orders, self._answers = self._process.stdin, self._process.stdout

    def ready(self) -> Seconds:
        """Its next answer. RuntimeError where it has ended."""
        if not (line := self._answers.readline()):
            raise RuntimeError(f"a process ended with exit code {self._process.wait()}")
        found: Seconds = json.loads(line)
        return found

    def tell(self, order: str) -> Seconds:
        """Its answer to an order."""
        self._orders.write(order + "\n")
        self._orders.flush()
        return self.ready()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def measure(options: Any) -> dict[str, list[Seconds]]:
    """Seconds of each run, by what ran."""
    found: dict[str, list[Seconds]] = defaultdict(list)
    before = {
        "script": (),
        "script, profiled": ("profile", "profile"),
        "script, profiled, detached": ("profile", "detach", "profile", "detach"),
        "worker": (),
        "worker, proved": ("profile", "profile"),
    }
    processes = {name: Process(name.partition(",")[0], options) for name in before}
    try:
        for process in processes.values():
            process.ready()
        for name, more in before.items():
            for order in more:
                print(f"{name}: {order}: {processes[name].tell(order)}", flush=True)
        for pair in range(options.pairs):
            for name in processes if pair % 2 == 0 else reversed(processes):
                found[name].append(processes[name].tell("run"))
                print(f"{name}: {_line([found[name][-1]], options.tokens)}", flush=True)
    finally:
        for process in processes.values():
            process.end()
    return found


def _line(runs: list[Seconds], tokens: int) -> str:
    names = sorted({name for run in runs for name in run}, key=lambda name: -runs[-1].get(name, 0.0))
    medians = {name: 1e3 * statistics.median(run.get(name, 0.0) for run in runs) / tokens for name in names}
    return ", ".join(f"{name} {ms:.3f}" for name, ms in medians.items() if ms >= 0.001)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="random:Qwen3-0.6B")
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--json", help="file for the seconds of each run")
    parser.add_argument("--kind", choices=("script", "worker"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kind:
        serve(options.kind, options.model, options.tokens)
        return
    found = measure(options)
    print("\nmilliseconds a token, medians")
    for title, runs in found.items():
        print(f"  {title}: {_line(runs, options.tokens)}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"tokens": options.tokens, "model": options.model, "runs": found}, file)


if __name__ == "__main__":
    main()
