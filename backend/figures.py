"""Figures in words: the tiles of an arm, the rows behind them, A against B, and what spoiled a run."""

from collections.abc import Iterable, Mapping, Sequence

from backend.messages import Loaded, Mark
from backend.records import Unit
from backend.statistics import FLOORS, UNSTEADY, Comparison, Summary
from backend.view import Tile, bytes_text, seconds_text, three

Pair = tuple[str, str]
MEASURE_REPEATS = 5
"""Runs of each arm behind the button "Measure": four degrees of freedom, so the interval is 2.8 standard errors."""

_COLD = ("start", "download", "load", "quantize", "compile", "warmup")


def _tile(key: str, label: str, pair: Pair | None, note: str = "") -> Tile:
    value, unit = pair or ("n/a", "")
    return Tile(key, label, value, unit, note)


def _s(value: float | None) -> Pair | None:
    return None if value is None else seconds_text(value)


def _bytes(value: float | None) -> Pair | None:
    return None if value is None else bytes_text(value)


def _half(interval: tuple[float, float] | None, middle: float | None) -> str:
    """Half of an interval, in the unit of its middle: the line of a tile has room for one."""
    if interval is None or middle is None:
        return ""
    scale = 1.0 if seconds_text(middle)[1] == "s" else 1e3
    return f"± {three(scale * (interval[1] - interval[0]) / 2)} (95%)"


def tiles(s: Summary, memory_label: str, batch_size: int, unit: Unit = "token", floor_note: str = "") -> list[Tile]:
    """The figures of an arm, "n/a" where there is none yet. An encoder has no first token and no cache."""
    step = "Token" if unit == "token" else "Forward pass"
    over = f"over {s.runs} runs" if s.runs > 1 else ""
    tail = "" if s.latency_p90_s is None else f"p90 {' '.join(seconds_text(s.latency_p90_s))}"
    spread = "" if s.latency_stdev_s is None else f"sd {' '.join(seconds_text(s.latency_stdev_s))}"
    latencies = [
        _tile("latency_median", f"{step} latency, median", _s(s.latency_median_s), tail),
        _tile(
            "latency_mean",
            f"{step} latency, mean",
            _s(s.latency_mean_s),
            _half(s.latency_interval_s, s.latency_mean_s) or spread,
        ),
    ]
    share = _tile("share", "Share of the limit", _percent(s.limit_share), floor_note)
    memory = _tile("memory", "Peak memory", _bytes(s.peak_memory_bytes), memory_label)
    if unit == "forward":
        rate = None if s.batch_tokens_per_s is None else (three(s.batch_tokens_per_s), "sequences/s")
        return [
            *latencies,
            _tile("rate", "Speed", rate, f"batch of {batch_size}" if batch_size > 1 else ""),
            share,
            memory,
        ]
    rate = None if s.tokens_per_s is None else (three(s.tokens_per_s), "tok/s")
    batch = kv_note = ""
    if batch_size > 1 and s.batch_tokens_per_s is not None:
        batch = f"batch of {batch_size}: {three(s.batch_tokens_per_s)} tok/s"
    if s.kv_bytes is not None and s.kv_predicted_bytes:
        error = 100 * (s.kv_bytes - s.kv_predicted_bytes) / s.kv_predicted_bytes
        kv_note = "as predicted" if abs(error) < 0.05 else f"{error:+.1f}% vs predicted"
    return [
        _tile("ttft", "Time to first token", _s(s.ttft_s), over and f"median {over}"),
        *latencies,
        _tile("rate", "Decode speed", rate, batch),
        share,
        memory,
        _tile("kv", "KV cache", _bytes(s.kv_bytes), kv_note),
    ]


def floor(s: Summary, work: str, note: str, unit: Unit = "token") -> Tile:
    """The least time of a step, and what it is made of."""
    what = "token" if unit == "token" else "forward pass"
    return _tile("floor", f"Floor of a {what}, at the middle", _s(s.floor_s), f"{work} at {note}" if work else note)


def details(
    s: Summary, extra: Mapping[str, float], phases_s: Mapping[str, float], device: str, unit: Unit = "token",
    memory_label: str = "",
) -> list[Tile]:  # fmt: skip
    """What stands behind the tiles. `extra` is that of the last run; on a CPU the GPU's rows are left out."""
    rows = [
        _tile(f"p{100 * share:.0f}", f"Latency, {100 * share:.0f}th percentile", _s(value),
              "" if value is not None else f"needs {FLOORS[share]} steps")
        for share, value in ((0.90, s.latency_p90_s), (0.99, s.latency_p99_s))
    ]  # fmt: skip
    ends = None
    if s.latency_interval_s is not None:
        scale, name = (1.0, "s") if s.latency_interval_s[1] >= 1 else (1e3, "ms")
        ends = (" to ".join(three(scale * end) for end in s.latency_interval_s), name)
    rows += [
        _tile("stdev", "Standard deviation of the steps", _s(s.latency_stdev_s), _scatter(s.latency_cv)),
        _tile("interval", "Mean latency, 95% interval", ends,
              f"Student's t over {s.runs} runs" if ends else "needs 2 runs (Measure)"),
        _tile("run_cv", "Variation between runs", _percent(s.run_cv), _unsteady(s.run_cv)),
        _tile("cold", "Seconds before the run", _s(_cold_s(phases_s)),
              ", ".join(f"{name} {' '.join(seconds_text(phases_s[name]))}" for name in _COLD if phases_s.get(name))),
        _warm_up(extra, phases_s, unit),
        _tile("memory_now", "Memory after the run", _bytes(extra.get("process_now_bytes")), memory_label),
    ]  # fmt: skip
    what = "token" if unit == "token" else "sequence"
    energy = None if s.energy_per_token_j is None else (three(s.energy_per_token_j), "J")
    rows.append(_tile("energy", f"Energy per {what}", energy, "of the whole GPU" if energy else "needs a GPU's counter"
                      " and 1 s"))  # fmt: skip
    if device == "cuda":
        rows += [
            _tile("busy", "GPU at work", _percent(s.gpu_busy_share), "launch-bound" if s.launch_bound else ""),
            _tile("allocator", "Allocator's peak", _bytes(extra.get("allocator_peak_bytes")),
                  "tensors, counted by torch"),
            _tile("allocator_now", "Allocator after the run", _bytes(extra.get("allocator_now_bytes")),
                  "tensors, counted by torch"),
            _tile("clock", "GPU clock", _of(extra, "sm_clock_mhz", "MHz"), _lowest(extra)),
            _tile("temperature", "GPU temperature", _of(extra, "temperature_c", "°C"), "highest"),
            _tile("slowed", "GPU clocks lowered", _percent(extra.get("gpu_slowed_share")), _looks(extra, "slowed")),
            _tile("gpu_others", "Others on the GPU", _percent(extra.get("gpu_others_share")), _looks(extra, "others")),
        ]  # fmt: skip
    others = _of(extra, "cpu_others_cores", "cores")
    rows.append(_tile("others", "Others on the CPU", others, "mean over the run"))
    return rows


def load_rows(loaded: Loaded | None) -> list[Tile]:
    """Largest memory while the model was loaded, with the seconds of its stages; nothing if it was there already."""
    if loaded is None or not loaded.peak_bytes:
        return []
    stages = ", ".join(
        f"{name.replace('_', ' ')} {' '.join(seconds_text(took_s))}" for name, took_s in loaded.stages_s.items()
    )
    where = {"host": "Host memory while loading, peak", "device": "GPU memory while loading, peak"}
    return [
        _tile(f"load_{place}", label, _bytes(loaded.peak_bytes[place]), stages if place == "host" else "reserved")
        for place, label in where.items()
        if place in loaded.peak_bytes
    ]


def _of(extra: Mapping[str, float], name: str, unit: str) -> Pair | None:
    return (three(extra[name]), unit) if name in extra else None


def _lowest(extra: Mapping[str, float]) -> str:
    return f"lowest {three(extra['sm_clock_low_mhz'])} MHz" if "sm_clock_low_mhz" in extra else ""


def _warm_up(extra: Mapping[str, float], phases_s: Mapping[str, float], unit: Unit) -> Tile:
    """How many steps were made before the first that counts, and where their time went."""
    steps, past = extra.get("warmup_steps"), extra.get("warmup_window_steps", 0.0)
    what = "tokens" if unit == "token" else "passes"
    note = f"{past:.0f} of them past the window, after a prompt as long as it" if past else ""
    took = [f"{name} {' '.join(seconds_text(phases_s[name]))}" for name in ("compile", "warmup") if name in phases_s]
    pair = (f"{steps:.0f}", what) if steps else None
    return _tile("warmup", "Warm-up, before the first run", pair, ", ".join(filter(None, [note, *took])))


def _looks(extra: Mapping[str, float], what: str) -> str:
    return "of the looks, two a second" if f"gpu_{what}_share" in extra else "the driver does not tell"


def _percent(share: float | None) -> Pair | None:
    return None if share is None else (three(100 * share), "%")


def _unsteady(share: float | None) -> str:
    return f"unsteady: above {100 * UNSTEADY:.0f}%" if share is not None and share > UNSTEADY else ""


def _scatter(cv: float | None) -> str:
    return "" if cv is None else ", ".join(filter(None, [f"{three(100 * cv)}% of the mean", _unsteady(cv)]))


def _cold_s(phases_s: Mapping[str, float]) -> float | None:
    known = [phases_s[name] for name in _COLD if name in phases_s]
    return sum(known) if known else None


def verdict(found: Comparison | None, unit: Unit = "token") -> str:
    """A against B in a sentence; "" without a pair of runs."""
    if found is None:
        return ""
    what = "time per token" if unit == "token" else "time per forward pass"
    if found.low is None or found.high is None:
        return (
            f"One run of each: {what} A/B is {_ratio(found.ratio)}; how much of that is noise is not known. "
            f"Measure (--repeats {MEASURE_REPEATS}) runs them {MEASURE_REPEATS} times in turn."
        )
    ratio, low, high, faster, other = found.ratio, found.low, found.high, "B", "A"
    if found.verdict == "a_faster":
        ratio, low, high, faster, other = 1 / ratio, 1 / high, 1 / low, "A", "B"
    ends = f"95% interval {_ratio(low)} to {_ratio(high)}, {found.pairs} pairs of runs"
    if found.verdict == "no_difference":
        return f"No difference found: {what} A/B is {_ratio(ratio)} ({ends})."
    return f"{faster} is {_ratio(ratio)} times as fast as {other}, by {what} ({ends})."


def _ratio(value: float) -> str:
    """Three decimals below 10: what is compared is often a few percent."""
    return f"{value:.3f}" if value < 10 else three(value)


def named(s: Summary, unit: Unit = "token") -> list[str]:
    """What the figures show of an arm, by its name."""
    if not s.launch_bound or s.gpu_busy_share is None:
        return []
    step = "token" if unit == "token" else "pass"
    return [
        f"Launch-bound: the GPU worked {three(100 * s.gpu_busy_share)}% of the time of a {step}, and waited for its "
        "next kernel the rest. CUDA graphs, compilation or a larger batch close such gaps."
    ]


def spoilers(marks: Iterable[tuple[int, Mark]], s: Summary, measured_s: float, unit: Unit = "token") -> list[str]:
    """Sentences on what may have spoiled an arm's figures. `marks`: (repeat, mark) of the kinds throttle and foreign;
    `measured_s`: length of all its runs."""
    by_cause: dict[str, list[tuple[int, Mark]]] = {}
    for repeat, mark in marks:
        by_cause.setdefault(mark.text, []).append((repeat, mark))
    found = [_spoiler(text, seen, measured_s, unit) for text, seen in by_cause.items()]
    if s.run_cv is not None and s.run_cv > UNSTEADY:
        found.append(
            f"Unsteady: the runs of this arm differ by {three(100 * s.run_cv)}% of their mean (coefficient of "
            f"variation; above {100 * UNSTEADY:.0f}% a figure is not to be trusted)."
        )
    return found


def _spoiler(text: str, seen: Sequence[tuple[int, Mark]], measured_s: float, unit: Unit) -> str:
    seconds = sum(mark.seconds for _, mark in seen)
    step = "token" if unit == "token" else "pass"
    runs = len({repeat for repeat, _ in seen})
    where = f"in {runs} runs" if runs > 1 else f"from {step} {seen[0][1].token:,} on"
    length = f"{three(min(seconds, measured_s))} of {three(measured_s)} s" if measured_s else f"{three(seconds)} s"
    return f"May be spoiled: {text}, for {length}, {where}."
