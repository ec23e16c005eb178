"""The detail rows of one arm behind its tiles: figures, load, roofline bound, its prompt, memory against prediction."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tokendyno.backend.counts import Memory, RunCounts
from tokendyno.backend.messages import Loaded, PhaseName, RankMemory
from tokendyno.backend.runs.records import PrefillBound, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import MIN_ENERGY_S, NOISY_CV, Summary
from tokendyno.backend.units import bytes_text, ends_of, plural, three
from tokendyno.backend.views.phases import PHASE_TITLES
from tokendyno.backend.views.tiles import (
    Figure,
    Tile,
    batch_details,
    in_bytes,
    in_percent,
    in_seconds,
    joined,
    of_unit,
    percentile_tile,
    step_word,
    tile,
)

PhaseSeconds = Mapping[PhaseName, float]
_SETUP: tuple[PhaseName, ...] = ("start", "import", "download", "load", "quantize", "compile", "warmup")
_WARM_UP: tuple[PhaseName, ...] = ("compile", "warmup")


def detail_rows(run: Snapshot, name: str) -> list[Tile]:
    """The rows behind the tiles of an arm of any run, once it has completed a repeat."""
    arm = run.arms[name]
    if not arm.finishes:
        return []
    if run.request.traffic is not None:
        return batch_details(run.batch_summaries[name], arm.peak_memory_bytes, run.memory_label)
    summary, counts, predicted = run.summaries[name], arm.finishes[max(arm.finishes)].counts, arm.predicted
    bound = predicted.prefill
    phases_s = {phase.name: phase.seconds for phase in arm.phases.values()}
    ranks = arm.finished.ranks if arm.finished else []
    return [
        *details(summary, counts, phases_s, run.created.device, run.unit, run.memory_label, bool(ranks)),
        *_load_rows(arm.loaded),
        tile(
            "floor",
            f"Roofline bound per {step_word(run.unit)}, mid-run",
            in_seconds(summary.roofline_s),
            " at ".join(filter(None, [predicted.roofline_work, predicted.roofline_note])),
        ),
        *prompt_pass_rows(prompt_pass(run, name), bound),
        *(
            [tile("ttft_floor", "Roofline bound of the prefill", in_seconds(bound.seconds), bound.work)]
            if bound
            else []
        ),
        *(check.tile() for check in memory_checks_of(run, name)),
        *_rank_rows(ranks),
    ]


def _rank_rows(ranks: list[RankMemory]) -> list[Tile]:
    """Memory of each rank, where several run the model, or of each device over which its layers are spread."""
    rows = []
    for i, rank in enumerate(ranks):
        peak, weights, kv = (bytes_text(size) for size in (rank.peak_bytes, rank.weight_bytes, rank.kv_bytes))
        note = f"weights {' '.join(weights)}, KV cache {' '.join(kv)}"
        rows.append(Tile(f"rank-{i}", f"Peak memory of {rank.of} {i}", *peak, note))
    return rows


def details(
    summary: Summary,
    counts: RunCounts,
    phases_s: PhaseSeconds,
    device: str,
    unit: Unit = "token",
    memory_label: str = "",
    several: bool = False,
) -> list[Tile]:
    """Detail rows. `counts` come from the last repeat; GPU rows are omitted on a CPU. Of `several` GPUs they are those
    of the first, as the peak and its prediction are (`predict/memory.py`)."""
    what, cv = "token" if unit == "token" else "sequence", summary.latency_cv
    energy = of_unit(summary.energy_per_token_j, "J")
    need = f"needs a GPU energy counter and {MIN_ENERGY_S:.0f} s"
    rows = [
        tile(
            "latency_median",
            f"Time per {step_word(unit)}, median",
            in_seconds(summary.latency_median_s),
            "over all steps",
        ),
        percentile_tile("p90", "Latency", 0.90, summary.latency_p90_s, "steps"),
        percentile_tile("p99", "Latency", 0.99, summary.latency_p99_s, "steps"),
        tile(
            "stdev",
            "Standard deviation of step latency",
            in_seconds(summary.latency_stdev_s),
            ", ".join(filter(None, [f"{three(100 * cv)}% of the mean", _noisy(cv)])) if cv is not None else "",
        ),
        interval_tile(summary, unit),
        tile("run_cv", "Variation between runs", in_percent(summary.run_cv), _noisy(summary.run_cv)),
        _setup(phases_s),
        _warm_up(counts, phases_s, unit),
        *_first_use(counts),
        tile("memory_now", "Memory after the run", in_bytes(counts.memory.process_now_bytes), memory_label),
        tile("energy", f"Energy per {what}", energy, "of the whole GPU" if energy else need),
    ]
    if device == "cuda":
        rows += _gpu_rows(summary, counts, several)
    contention = of_unit(counts.machine.cpu_others_cores, "cores")
    return [*rows, tile("others", "CPU used by other programs", contention, "mean over the run")]


def _gpu_rows(summary: Summary, counts: RunCounts, several: bool) -> list[Tile]:
    machine, low_mhz = counts.machine, counts.machine.sm_clock_low_mhz
    lowest = f"lowest {three(low_mhz)} MHz" if low_mhz is not None else ""
    counted = f"tensors{' on the first GPU' * several}, counted by PyTorch's allocator"
    return [
        tile("busy", "GPU busy", in_percent(summary.gpu_busy_share), "launch-bound" if summary.launch_bound else ""),
        tile("allocator", "Peak allocated memory", in_bytes(counts.memory.allocator_peak_bytes), counted),
        tile("allocator_now", "Allocated memory after the run", in_bytes(counts.memory.allocator_now_bytes), counted),
        tile("clock", "GPU clock", of_unit(machine.sm_clock_mhz, "MHz"), lowest),
        tile("temperature", "GPU temperature", of_unit(machine.temperature_c, "°C"), "highest"),
        tile("slowed", "GPU throttled", *_sampled(machine.gpu_slowed_share)),
        tile("gpu_others", "GPU used by other programs", *_sampled(machine.gpu_others_share)),
    ]


def _load_rows(loaded: Loaded | None) -> list[Tile]:
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


def interval_tile(summary: Summary, unit: Unit) -> Tile:
    title = f"Time per {step_word(unit)}, mean, 95% interval"
    if summary.latency_interval_s is None:
        return tile("interval", title, None, "needs 2 runs")
    ends, word = ends_of(summary.latency_mean_s or 0.0, *summary.latency_interval_s, summary.both_s)
    scale, scaled = (1.0, "s") if ends[1] >= 1 else (1e3, "ms")
    note = f"over {summary.runs} runs" if word == "to" else "2 runs: three or more give an interval"
    return tile("interval", title, (f" {word} ".join(three(scale * end) for end in ends), scaled), note)


def _setup(phases_s: PhaseSeconds) -> Tile:
    known = [phases_s[name] for name in _SETUP if name in phases_s]
    parts = ", ".join(f"{_cold(name)} {joined(phases_s[name])}" for name in _SETUP if phases_s.get(name))
    return tile("cold", "Setup time before the run", in_seconds(sum(known) if known else None), parts)


def _warm_up(counts: RunCounts, phases_s: PhaseSeconds, unit: Unit) -> Tile:
    steps, past = counts.warmup.warmup_steps, counts.warmup.warmup_window_steps
    what = "tokens" if unit == "token" else "passes"
    note = f"{past} of them past the sliding window, after a prompt of its length" if past else ""
    took = [f"{_cold(name)} {joined(phases_s[name])}" for name in _WARM_UP if name in phases_s]
    figure = (f"{steps}", what) if steps else None
    return tile("warmup", "Warm-up before the first run", figure, ", ".join(filter(None, [note, *took])))


def _first_use(counts: RunCounts) -> list[Tile]:
    """What the first token would have to wait for without a warm-up; no row where a prompt was read only once."""
    first_s, last_s = counts.warmup.warmup_first_s, counts.warmup.warmup_last_s
    if first_s is None or last_s is None:
        return []
    note = f"kernels loaded, chosen, compiled, captured: {joined(first_s)} for the first prompt, {joined(last_s)} later"
    return [tile("first_use", "Made on first use, in the warm-up", in_seconds(max(0.0, first_s - last_s)), note)]


def _cold(phase: PhaseName) -> str:
    return "compile (cold)" if phase == "compile" else PHASE_TITLES[phase]


def _sampled(share: float | None) -> tuple[Figure | None, str]:
    return in_percent(share), "not reported by the driver" if share is None else "of samples (2 per second)"


def _noisy(cv: float | None) -> str:
    return f"noisy: above {100 * NOISY_CV:.0f}%" if cv is not None and cv > NOISY_CV else ""


# --- the prompt -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PromptPass:
    """The passes up to the first token, whose sampling is in their time too. `tokens`: of all rows, padding
    included."""

    tokens: int
    passes: int
    seconds: float
    tokens_per_s: float


def prompt_pass(run: Snapshot, name: str) -> PromptPass | None:
    """The prompt pass of an arm; None for an encoder, all of whose passes are timed, and before the first token."""
    arm, ttft_s = run.arms[name], run.summaries[name].ttft_s
    if run.unit != "token" or arm.started is None or not ttft_s:
        return None
    tokens = arm.started.prompt_tokens * arm.started.batch_size
    passes = max(1, arm.finished.counts.prefill.prompt_passes) if arm.finished else 1
    return PromptPass(tokens, passes, ttft_s / passes, tokens / ttft_s)


def prompt_pass_rows(prompt: PromptPass | None, bound: PrefillBound | None) -> list[Tile]:
    """One row, with the share of the time that the hardware needs at least, where that is known."""
    if prompt is None:
        return []
    notes = [plural(prompt.tokens, "token"), f"{three(prompt.tokens_per_s)} tok/s"]
    if prompt.passes > 1:
        notes.insert(0, f"mean of {prompt.passes} passes")
    if bound is not None:
        share = "".join(in_percent(bound.seconds / (prompt.seconds * prompt.passes)) or ())
        notes.append(f"{share} of its {bound.limited_by} bound")
    return [tile("prompt_pass", "Forward pass over the prompt", in_seconds(prompt.seconds), ", ".join(notes))]


# --- memory -----------------------------------------------------------------------------------------

OF_PROCESS = "of the worker"
"""Part of the label of a memory series that counts only the worker's process: no other is held against a prediction."""

RESERVED_SHARE = 0.02
"""Above this share of a peak, what a GPU's allocator had reserved beside tensors is said."""


class MemoryCheck(NamedTuple):
    """One part of the memory; None: not predicted, or not measured. `remark`: what may explain an error, beside the
    prediction. `margin`: bytes by which the prediction may be off, 0 where none is stated."""

    part: str
    label: str
    predicted: int | None
    measured: int | None
    remark: str = ""
    margin: int = 0

    @property
    def margin_percent(self) -> float:
        """The margin in percent of the prediction, to a tenth: bytes are whole."""
        return round(100 * self.margin / self.predicted, 1) if self.predicted else 0.0

    @property
    def error_percent(self) -> float | None:
        if not self.predicted or self.measured is None:
            return None
        return 100 * (self.measured - self.predicted) / self.predicted

    def tile(self) -> Tile:
        """The measured bytes, with the prediction and its error as the note."""
        value, unit = bytes_text(self.measured) if self.measured is not None else ("n/a", "")
        note, error = "", self.error_percent
        if self.predicted is not None:
            note = f"predicted {' '.join(bytes_text(self.predicted))}"
            note += f" \u00b1 {self.margin_percent:.0f}%" if self.margin else ""
            note += f", {error:+.2f}%" if error is not None else ""
            note += f"; {self.remark}" if self.remark and error is not None else ""
        return Tile(f"check_{self.part}", self.label, value, unit, note)


def memory_checks_of(run: Snapshot, name: str) -> list[MemoryCheck]:
    arm, summary = run.arms[name], run.summaries[name]
    counts = arm.finished.counts.memory if arm.finished else Memory()
    weights = arm.loaded.weight_bytes if arm.loaded else None
    kv = (summary.kv_predicted_bytes, summary.kv_bytes)
    return memory_checks(arm.predicted.memory, weights, kv, summary.peak_memory_bytes or 0, run.memory_label, counts)


def memory_checks(
    predicted: Mapping[str, int],
    weights: int | None,
    kv: tuple[int | None, int | None],
    peak: int,
    label: str,
    counts: Memory,
) -> list[MemoryCheck]:
    """Every part. `kv`: (predicted, measured) at the end of the run; `label`: what `peak` counts.

    On a GPU the process also holds what torch's allocator has reserved and no tensor used: this is not predicted, but
    said. On a CPU the C library does not tell it, so the prediction has a margin.
    """
    checks = [
        MemoryCheck("weights", "Weights", predicted.get("weights"), weights),
        MemoryCheck("kv", "KV cache at the end", *kv),
        MemoryCheck(
            "peak",
            "Peak process memory",
            predicted.get("total"),
            peak if peak and OF_PROCESS in label else None,
            _remark(peak, counts),
            predicted.get("margin", 0),
        ),
    ]
    if counts.allocator_peak_bytes is not None:
        allocator = counts.allocator_peak_bytes
        checks.append(MemoryCheck("allocator", "Peak tensor memory", predicted.get("tensors"), allocator))
    return checks


def _remark(peak: int, counts: Memory) -> str:
    if counts.allocator_peak_bytes is None or counts.allocator_reserved_bytes is None:
        return ""
    unused = counts.allocator_reserved_bytes - counts.allocator_peak_bytes
    if unused <= RESERVED_SHARE * peak:
        return ""
    return f"torch's allocator kept {' '.join(bytes_text(unused))} that no tensor used"
