"""Profiles a step of the custom decode loop, and measures what each optimization in it gains.

    python -m tools.bench.gpu.step_profile [--model random:Qwen3-0.6B] [--places 1024] [--filled 0] [--ranks 1]
        [--cache static] [--quantization mxfp4] [--json FILE]

One token per step, fused projections, kernels=local, of mixtures experts=triton, captured manually. Printed:
milliseconds per token with everything on, with each optimization off and with all of them off, without attention, with
a small kernel more in each layer, and the kernels of one replayed step in order of time. With --ranks N the model is as
small as the part of one of N ranks: their step, without exchanges, on one GPU. With --filled N each step begins at so
many tokens in the cache, which are random numbers, in place of a prompt of a quarter of the places; with --cache
static-fp8 they are kept in 8 bits.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from kernels import get_loaded_kernels
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from tokendyno.backend.hardware import kernel_packages
from tokendyno.backend.models.catalogue import catalogue
from tokendyno.backend.models.source import ModelSource
from tokendyno.backend.plan import LoadPlan
from tokendyno.backend.worker.load.device import Observed
from tokendyno.backend.worker.load.loader import apply_patches
from tokendyno.backend.worker.load.random_weights import load_as_checkpoint, random_model
from tokendyno.backend.worker.loop.cache import StaticSlotCache
from tokendyno.backend.worker.loop.cuda_graph import capture
from tokendyno.backend.worker.loop.sampling import Sampling
from tokendyno.backend.worker.loop.step import Step
from tokendyno.backend.worker.patch.experts import TRITON
from tokendyno.backend.worker.patch.projections import fuse

STEPS, ROUNDS, WARM = 200, 3, 20
EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")  # the number of experts in a config
PIECES: dict[str, tuple[str, str, str, Any]] = {
    "attention in one kernel": ("tokendyno-matvec", "attention", "FOLDED", False),
    "long caches in blocks": ("tokendyno-matvec", "attention", "LONG", False),
    "attention by warps": ("tokendyno-matvec", "attention", "BY_WARPS", False),
    "weights prefetched into L2": ("tokendyno-matvec", "decoder_layer", "MAX_PREFETCH_BYTES", 0),
    "sum and norm in the next product": ("tokendyno-matvec", "decoder_layer", "SUMMED", False),
    "step end": ("tokendyno-matvec", "steps", "ENDS", False),
    "rotary embedding": ("tokendyno-matvec", "steps", "ROTATES", False),
    "norm launched early": ("tokendyno-rmsnorm", "layers", "EARLY", False),
}
"""Optimization -> package, module, name, and the value that switches it off."""


class Bed:
    """A model with the kernels, or the part of it that one of `ranks` has, and a cache, on which steps are built and
    timed. `filled`: random tokens in the cache; 0: a prompt of a quarter of the places. `eight_bits`: of the cache."""

    def __init__(
        self,
        model: str,
        places: int,
        ranks: int = 1,
        quantization: str = "none",
        filled: int = 0,
        eight_bits: bool = False,
    ) -> None:
        name = model.removeprefix("random:")
        config = next(entry.config for entry in catalogue() if entry.name == name)
        if ranks > 1:
            config = part_of(config, ranks)
        text = json.loads(config)
        text = text.get("text_config", text)
        plan = LoadPlan(
            ModelSource("random", config_json=config),
            dtype="bfloat16",
            device="cuda",
            quantization=quantization,
            kernels="local",
            kernels_path=str(kernel_packages.BUNDLED),
            projections="fused",
            experts=TRITON if any(text.get(name) for name in EXPERTS) else None,
            kernels_rows=text["model_type"] in ("gpt2", "phi3"),
        )
        if quantization == "none":
            self.model = random_model(config, plan.dtype, None, plan.device).eval()
        else:
            self.model = load_as_checkpoint(plan, Observed()).eval()
        fuse(self.model)
        apply_patches(self.model, plan)
        self.loaded = {str(kernel.metadata.name): kernel.module for kernel in get_loaded_kernels()}
        self.cache = StaticSlotCache(self.model.config, places, eight_bits)
        self.filled = filled
        self._ids = torch.randint(3, 1000, (1, 16 if filled else places // 4), device="cuda")
        self._most = places - (filled or self._ids.shape[1]) - WARM - 2

    def module(self, package: str, name: str) -> Any:
        return getattr(self.loaded[package], name)

    def step(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Capture a step with the current settings; returns it with a function that rewinds to the prompt."""
        step = Step(self.model, self.cache, 1, Sampling(), 0)

        def begin() -> None:
            step.begin(self._ids, torch.ones_like(self._ids), 0, [])
            if self.filled:
                fill(self.cache, step, self.filled)

        begin()
        with step.decoding():
            return capture(step.advance, step.rewind), begin

    def attending(self, by: Callable[[Callable[..., None]], Callable[..., None]]) -> float:
        """Seconds per token where layers attend by what `by` makes of their attention."""
        decoder = self.module("tokendyno-matvec", "decoder_layer")
        attend = decoder.attend
        try:
            decoder.attend = by(attend)
            return self.token_s()
        finally:
            decoder.attend = attend

    def with_kernel_behind(self, attend: Callable[..., None]) -> Callable[..., None]:
        """Attention, and then a norm of its result that nobody reads."""
        norm = self.module("tokendyno-matvec", "rows").norm

        def attend_and_norm(*given: Any, **more: Any) -> None:
            attend(*given, **more)
            mixed = given[7]
            norm(mixed, mixed.flatten(), 1e-6)

        return attend_and_norm

    def token_s(self, rounds: int = ROUNDS, steps: int = STEPS) -> float:
        """Seconds per token between two CUDA events, median over rounds."""
        replay, begin = self.step()
        steps, times_s = max(1, min(steps, self._most // rounds)), []
        begin()
        for _ in range(WARM):
            replay()
        for _ in range(rounds):
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            for _ in range(steps):
                replay()
            last.record()
            last.synchronize()
            times_s.append(float(first.elapsed_time(last)) / 1e3 / steps)
        return statistics.median(times_s)

    def kernels(self) -> list[tuple[str, float, float]]:
        """(name, begin, end) in microseconds of the kernels of one replayed step."""
        replay, begin = self.step()
        begin()
        for _ in range(WARM):
            replay()
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            replay()
            torch.cuda.synchronize()
        spans = [event for event in profiler.events() if event.device_type == DeviceType.CUDA]
        return sorted(((e.name, e.time_range.start, e.time_range.end) for e in spans), key=lambda span: span[1])


def fill(cache: StaticSlotCache, step: Step, tokens: int) -> None:
    """Go on as if `tokens` were in the cache: their keys and values are random numbers."""
    for slots in cache.slots:
        slots.filled[:, : tokens + 1] = True
        slots.current.fill_(tokens % slots.size)
        if slots.added is not None:
            slots.added.masked_fill_(slots.filled[:, None, None], 0)
    for layer in cache.layers:
        for states in (layer.keys, layer.values):
            states.copy_(torch.randn(states.shape, device=states.device, dtype=torch.bfloat16))
        if cache.eight_bits:
            layer.key_scales.fill_(1)
            layer.value_scales.fill_(1)
    step.positions.fill_(tokens)


def part_of(config: str, ranks: int) -> str:
    """The text of a config with as many heads, and as wide a feed-forward and vocabulary, as one of `ranks` has."""
    values = json.loads(config)
    values["head_dim"] = values.get("head_dim") or values["hidden_size"] // values["num_attention_heads"]
    for name in ("num_attention_heads", "num_key_value_heads", "intermediate_size", "vocab_size"):
        values[name] //= ranks
    return json.dumps(values)


def summed(spans: list[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """A row per kernel name: count, microseconds each, and how much later each ended than all previous ones.

    A kernel that is launched early waits for its predecessor within its own duration, so only the last column adds up.
    """
    rows: dict[str, dict[str, Any]] = {}
    latest = spans[0][1] if spans else 0.0
    for name, begin, end in spans:
        row = rows.setdefault(name, {"name": name, "count": 0, "each_us": 0.0, "gap_us": 0.0, "added_us": 0.0})
        row["count"] += 1
        row["each_us"] += end - begin
        row["gap_us"] += begin - latest
        row["added_us"] += max(0.0, end - latest)
        latest = max(latest, end)
    for row in rows.values():
        row["each_us"] /= row["count"]
        row["gap_us"] /= row["count"]
    return sorted(rows.values(), key=lambda row: -row["added_us"])


def main() -> None:
    """Print both tables, and write them as JSON with --json."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="random:Qwen3-0.6B")
    parser.add_argument("--places", type=int, default=1024)
    parser.add_argument("--filled", type=int, default=0)
    parser.add_argument("--cache", default="static", choices=("static", "static-fp8"))
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--quantization", default="none")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with torch.inference_mode():
        eight_bits = options.cache == "static-fp8"
        bed = Bed(options.model, options.places, options.ranks, options.quantization, options.filled, eight_bits)
        spans = bed.kernels()
        bed.token_s()  # warm up clocks and temperature
        whole_s = bed.token_s()
        gpu = torch.cuda.get_device_name()
        print(f"{options.model}, {options.places} places, {gpu}: {1e3 * whole_s:.4f} ms a token")
        pieces = {"everything on": whole_s}
        present = {name: piece for name, piece in PIECES.items() if piece[0] in bed.loaded}
        for name, (package, module, switch, off) in present.items():
            on = getattr(bed.module(package, module), switch)
            setattr(bed.module(package, module), switch, off)
            pieces[f"without: {name}"] = bed.token_s()
            setattr(bed.module(package, module), switch, on)
            gained = pieces[f"without: {name}"] - whole_s
            print(
                f"without: {name:26} {1e3 * (whole_s + gained):.4f} ms, so it gains {1e6 * gained:6.1f} us", flush=True
            )
        for name, by in {
            "without attention": lambda attend: lambda *given, **more: None,
            "with a small kernel more a layer": bed.with_kernel_behind,
        }.items():
            pieces[name] = bed.attending(by)
            each_us = 1e6 * (pieces[name] - whole_s) / len(bed.cache.layers)
            print(f"{name} {1e3 * pieces[name]:.4f} ms, {each_us:+.2f} us a layer", flush=True)
        for package, module, switch, off in present.values():
            setattr(bed.module(package, module), switch, off)
        pieces["everything off"] = bed.token_s()
        print(f"everything off {1e3 * pieces['everything off']:.4f} ms")
    rows = summed(spans)
    total_us = sum(row["added_us"] for row in rows)
    print(f"one step: {len(spans)} kernels, {total_us:.1f} us from start to end")
    for row in rows:
        print(
            f"{row['count']:4} x {row['name'][:60]:60} {row['each_us']:7.2f} us each, gap {row['gap_us']:6.2f}, "
            f"adds {row['added_us']:7.1f}"
        )
    if options.json:
        setup = {"model": options.model, "gpu": gpu, "torch": torch.__version__}
        options.json.write_text(json.dumps({**setup, "token_s": pieces, "kernels": rows, "spans": spans}))


if __name__ == "__main__":
    main()
