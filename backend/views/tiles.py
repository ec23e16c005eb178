"""The figures of an arm in words, of three significant digits: its tiles, and the detail rows behind them."""

from collections.abc import Mapping

from tokendyno.backend.counts import RunCounts
from tokendyno.backend.messages import Loaded, PhaseName
from tokendyno.backend.runs.records import PrefillBound, Unit
from tokendyno.backend.runs.statistics import MIN_SAMPLES
from tokendyno.backend.runs.summary import MIN_ENERGY_S, NOISY_CV, Summary
from tokendyno.backend.units import three
from tokendyno.backend.views.tile import Pair, Tile, in_bytes, in_percent, in_seconds, joined, of_unit, tile

PhaseSeconds = Mapping[PhaseName, float]

PHASE_TITLES: dict[PhaseName, str] = {
    "start": "start",
    "import": "imports",
    "download": "download",
    "load": "load",
    "quantize": "quantize",
    "compile": "compile",
    "warmup": "warm-up",
    "run": "run",
    "prove": "verify",
    "quality": "read texts",
}
_SETUP: tuple[PhaseName, ...] = ("start", "import", "download", "load", "quantize", "compile", "warmup")
_WARM_UP: tuple[PhaseName, ...] = ("compile", "warmup")


def tiles(
    s: Summary,
    memory_label: str,
    batch_size: int,
    unit: Unit = "token",
    roofline_note: str = "",
    prefill: PrefillBound | None = None,
) -> list[Tile]:
    """The figures of an arm, "n/a" where there is none yet."""
    step = "token" if unit == "token" else "forward pass"
    over = f"mean over {s.runs} runs" if s.runs > 1 else ""
    p90 = "" if s.latency_p90_s is None else f"p90 {joined(s.latency_p90_s)}"
    latency = tile("latency", f"Time per {step}, mean", in_seconds(s.latency_mean_s), p90)
    bounded = s.roofline_s is not None or not roofline_note  # a bound may come, or is known not to
    share = [tile("share", "% of roofline", in_percent(s.roofline_share), roofline_note)] if bounded else []
    memory = tile("memory", "Peak memory", in_bytes(s.peak_memory_bytes), memory_label)
    if unit == "forward":
        rate = of_unit(s.batch_tokens_per_s, "sequences/s")
        batch = f"batch of {batch_size}" if batch_size > 1 else ""
        return [latency, tile("rate", "Throughput", rate, batch), *share, memory]
    batch = ""
    if batch_size > 1 and s.batch_tokens_per_s is not None:
        batch = f"{three(s.batch_tokens_per_s)} tok/s in the batch of {batch_size}"
    return [
        tile("ttft", "Time to first token", in_seconds(s.ttft_s), _against_bound(s, over, prefill)),
        latency,
        tile("rate", f"Decode speed{' per sequence' * (batch_size > 1)}", of_unit(s.tokens_per_s, "tok/s"), batch),
        *share,
        memory,
        tile("kv", "KV cache", in_bytes(s.kv_bytes), _against_prediction(s)),
    ]


def _against_bound(s: Summary, note: str, prefill: PrefillBound | None) -> str:
    """That note, and which share of the first token's time the hardware could not do without."""
    if prefill is None or not s.ttft_s:
        return note
    share = " ".join(in_percent(prefill.seconds / s.ttft_s) or ())
    return ", ".join(filter(None, [note, f"{share.replace(' ', '')} of its {prefill.limited_by} bound"]))


def _against_prediction(s: Summary) -> str:
    if s.kv_bytes is None or not s.kv_predicted_bytes:
        return ""
    error = 100 * (s.kv_bytes - s.kv_predicted_bytes) / s.kv_predicted_bytes
    return "as predicted" if abs(error) < 0.05 else f"{error:+.1f}% vs predicted"


def details(
    s: Summary,
    counts: RunCounts,
    phases_s: PhaseSeconds,
    device: str,
    unit: Unit = "token",
    memory_label: str = "",
) -> list[Tile]:
    """Detail rows. `counts` come from the last repeat; GPU rows are omitted on a CPU."""
    what = "token" if unit == "token" else "sequence"
    energy = of_unit(s.energy_per_token_j, "J")
    need = f"needs a GPU energy counter and {MIN_ENERGY_S:.0f} s"
    rows = [
        _median(s, unit),
        _percentile(0.90, s.latency_p90_s),
        _percentile(0.99, s.latency_p99_s),
        tile("stdev", "Standard deviation of step latency", in_seconds(s.latency_stdev_s), _scatter(s.latency_cv)),
        _interval(s, unit),
        tile("run_cv", "Variation between runs", in_percent(s.run_cv), _noisy(s.run_cv)),
        _setup(phases_s),
        _warm_up(counts, phases_s, unit),
        *_first_use(counts),
        tile("memory_now", "Memory after the run", in_bytes(counts.memory.process_now_bytes), memory_label),
        tile("energy", f"Energy per {what}", energy, "of the whole GPU" if energy else need),
    ]
    if device == "cuda":
        rows += _gpu_rows(s, counts)
    contention = of_unit(counts.machine.cpu_others_cores, "cores")
    return [*rows, tile("others", "CPU used by other programs", contention, "mean over the run")]


def _gpu_rows(s: Summary, counts: RunCounts) -> list[Tile]:
    machine, low_mhz = counts.machine, counts.machine.sm_clock_low_mhz
    lowest = f"lowest {three(low_mhz)} MHz" if low_mhz is not None else ""
    counted = "tensors, counted by PyTorch's allocator"
    return [
        tile("busy", "GPU busy", in_percent(s.gpu_busy_share), "launch-bound" if s.launch_bound else ""),
        tile("allocator", "Peak allocated memory", in_bytes(counts.memory.allocator_peak_bytes), counted),
        tile("allocator_now", "Allocated memory after the run", in_bytes(counts.memory.allocator_now_bytes), counted),
        tile("clock", "GPU clock", of_unit(machine.sm_clock_mhz, "MHz"), lowest),
        tile("temperature", "GPU temperature", of_unit(machine.temperature_c, "°C"), "highest"),
        tile("slowed", "GPU throttled", *_sampled(machine.gpu_slowed_share)),
        tile("gpu_others", "GPU used by other programs", *_sampled(machine.gpu_others_share)),
    ]


def load_rows(loaded: Loaded | None) -> list[Tile]:
    """Peak memory of the load, with the seconds of its stages; no rows if the model was already loaded."""
    if loaded is None or not loaded.peak_bytes:
        return []
    stages = ", ".join(f"{name.replace('_', ' ')} {joined(took_s)}" for name, took_s in loaded.stages_s.items())
    where = {"host": "Peak host memory while loading", "device": "Peak GPU memory while loading"}
    return [
        tile(f"load_{place}", label, in_bytes(loaded.peak_bytes[place]), stages if place == "host" else "reserved")
        for place, label in where.items()
        if place in loaded.peak_bytes
    ]


def roofline_row(s: Summary, work: str, note: str, unit: Unit = "token") -> Tile:
    """The least time of the middle step of a run, and what it consists of."""
    what = "token" if unit == "token" else "forward pass"
    work = f"{work} at {note}" if work else note
    return tile("floor", f"Roofline bound per {what}, mid-run", in_seconds(s.roofline_s), work)


def prefill_rows(prefill: PrefillBound | None) -> list[Tile]:
    """The least time to the first token, and what it consists of; no row where that is not known."""
    if prefill is None:
        return []
    return [tile("ttft_floor", "Roofline bound of the prefill", in_seconds(prefill.seconds), prefill.work)]


def _median(s: Summary, unit: Unit) -> Tile:
    step = "token" if unit == "token" else "forward pass"
    return tile("latency_median", f"Time per {step}, median", in_seconds(s.latency_median_s), "over all steps")


def _percentile(share: float, value_s: float | None) -> Tile:
    note = "" if value_s is not None else f"needs {MIN_SAMPLES[share]} steps"
    return tile(f"p{100 * share:.0f}", f"Latency, {100 * share:.0f}th percentile", in_seconds(value_s), note)


def _interval(s: Summary, unit: Unit) -> Tile:
    """Both bounds in one unit."""
    title = f"Time per {'token' if unit == 'token' else 'forward pass'}, mean, 95% interval"
    if s.latency_interval_s is None:
        return tile("interval", title, None, "needs 2 runs")
    scale, scaled = (1.0, "s") if s.latency_interval_s[1] >= 1 else (1e3, "ms")
    bounds = " to ".join(three(scale * bound) for bound in s.latency_interval_s)
    return tile("interval", title, (bounds, scaled), f"over {s.runs} runs")


def _setup(phases_s: PhaseSeconds) -> Tile:
    """The phases before the first run, in sum and one by one."""
    known = [phases_s[name] for name in _SETUP if name in phases_s]
    parts = ", ".join(f"{_cold(name)} {joined(phases_s[name])}" for name in _SETUP if phases_s.get(name))
    return tile("cold", "Setup time before the run", in_seconds(sum(known) if known else None), parts)


def _warm_up(counts: RunCounts, phases_s: PhaseSeconds, unit: Unit) -> Tile:
    """Steps executed before the first measured one, and where their time went."""
    steps, past = counts.warmup.warmup_steps, counts.warmup.warmup_window_steps
    what = "tokens" if unit == "token" else "passes"
    note = f"{past} of them past the sliding window, after a prompt of its length" if past else ""
    took = [f"{_cold(name)} {joined(phases_s[name])}" for name in _WARM_UP if name in phases_s]
    pair = (f"{steps}", what) if steps else None
    return tile("warmup", "Warm-up before the first run", pair, ", ".join(filter(None, [note, *took])))


def _first_use(counts: RunCounts) -> list[Tile]:
    """What would be paid for by the first token without a warm-up; no row where a prompt was read once only."""
    first_s, last_s = counts.warmup.warmup_first_s, counts.warmup.warmup_last_s
    if first_s is None or last_s is None:
        return []
    note = f"kernels loaded, chosen, compiled, captured: {joined(first_s)} for the first prompt, {joined(last_s)} later"
    return [tile("first_use", "Made on first use, in the warm-up", in_seconds(max(0.0, first_s - last_s)), note)]


def _cold(phase: PhaseName) -> str:
    return "compile (cold)" if phase == "compile" else PHASE_TITLES[phase]


def _sampled(share: float | None) -> tuple[Pair | None, str]:
    return in_percent(share), "not reported by the driver" if share is None else "of samples (2 per second)"


def _noisy(cv: float | None) -> str:
    return f"noisy: above {100 * NOISY_CV:.0f}%" if cv is not None and cv > NOISY_CV else ""


def _scatter(cv: float | None) -> str:
    return "" if cv is None else ", ".join(filter(None, [f"{three(100 * cv)}% of the mean", _noisy(cv)]))
