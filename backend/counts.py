"""What the worker counts and measures beside the tokens: a record in parts for each run, and the parts of a step.

In documents, in the history and on the way from the worker it is one flat object, `extra`, whose names never change:
`flat` and `counts_of` are the way there and back.
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

StepPart = Literal["attention", "products", "other", "collectives", "gaps", "host"]
"""attention; products with weights; other operators or kernels; collectives between GPUs; gaps: the GPU is idle though
the next kernel was launched; host: nothing runs but Python, and on a GPU it waits for a launch."""


class StepTime(msgspec.Struct, frozen=True):
    """Where the time of a step went: the mean of traced steps of the same generation, while a profiler listened.

    seconds  of a step, the sum of `parts_s`; attention or products that are missing there could not be told apart:
             compiled code has fused them with other operators
    gpu      whether it is the GPU's time that was divided, else that of the CPU's thread, which has no gaps
    others   of the part "other", the names that took longest: name -> seconds
    """

    steps: int
    seconds: float
    gpu: bool
    parts_s: dict[StepPart, float]
    others: dict[str, float] = {}


class Part(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Base of the parts. Each is counted in one place, whole: a 0 was counted; None is not known or not applicable."""


class Memory(Part, frozen=True):
    """Bytes of the process as the meter's label says, and of torch's allocator, on CUDA only."""

    process_now_bytes: int | None = None
    allocator_now_bytes: int | None = None
    allocator_peak_bytes: int | None = None
    allocator_reserved_bytes: int | None = None


class Residue(Part, frozen=True):
    """What this worker's process holds beyond what it held before its first measured run, or before it compiled,
    caches not counted, and what of that the proof of this run left; on a CPU also what it held then."""

    left_bytes: int | None = None
    proof_left_bytes: int | None = None
    clean_bytes: int | None = None


class Load(Part, frozen=True):
    """What the allocator's warm-up reserved, what reached the GPU through host memory, and tensors of the model that
    its checkpoint lacks."""

    load_warmup_bytes: int = 0
    load_moved_bytes: int = 0
    drawn_tensors: int = 0


class Prompt(Part, frozen=True):
    """The prompt as the model received it: positions in a row, how many of them are padding."""

    positions: int = 0
    padding: int = 0


class Prefill(Part, frozen=True):
    """Passes until the prompt was read, the positions of a row that the widest was given, and how many were given just
    what was planned for them; graphs that were replayed until then, and matrices that compiled graphs received."""

    prompt_passes: int = 0
    widest_prompt_pass: int = 0
    planned_prompt_passes: int = 0
    prompt_replays: int = 0
    prompt_compiled_matrices: int = 0


class WarmUp(Part, frozen=True):
    """Steps before the measured run, and how many were past a sliding window; what the run's own prompt took for the
    first time and for the last: the rest is made on first use. Seconds of capturing CUDA graphs in the warm-up, and
    of filling and sharing the compile cache before the run."""

    warmup_steps: int = 0
    warmup_window_steps: int = 0
    warmup_first_s: float | None = None
    warmup_last_s: float | None = None
    capture_s: float | None = None
    cache_s: float | None = None


class Drafts(Part, frozen=True, rename={"draft_tokens": "guessed", "accepted_tokens": "accepted"}):
    """N-gram lookups, decode steps, tokens drafted and accepted."""

    lookups: int = 0
    steps: int = 0
    draft_tokens: int = 0
    accepted_tokens: int = 0


class CheckedTokens(Part, frozen=True):
    """Of records before schema 3, where the row `tokens` was no finding yet: tokens that were compared with the
    model's own choice, and those that were not it."""

    checked_tokens: int = 0
    strange_tokens: int = 0


class Passes(Part, frozen=True):
    """Passes through the model in the measured run, that of the prompt included; steps of the custom loop."""

    passes: int = 0
    own_steps: int = 0


class Requests(Part, frozen=True):
    """Many requests: how many; steps, rows that these had room for, rows of the fullest; useful tokens, padding."""

    batch_requests: int = 0
    batch_steps: int = 0
    slot_steps: int = 0
    fullest_step: int = 0
    useful_tokens: int = 0
    padding_tokens: int = 0


class StaticBatches(Part, frozen=True):
    """Static batches; rows of ids that the model received; pairs of requests that followed each other though both
    had arrived: all of them, those in the order of arrival, those in the order of length."""

    batches: int = 0
    rows_seen: int = 0
    order_pairs: int = 0
    order_arrival: int = 0
    order_sorted: int = 0


class Pages(Part, frozen=True):
    """Continuous batching: steps that the scheduler filled, layers that wrote into the paged cache in them, tokens of
    requests that came from them, replayed graphs, requests that lost their pages and began again. Pages taken and
    needed are those of whole sequences."""

    paged_steps: int = 0
    paged_layer_calls: int = 0
    paged_tokens: int = 0
    paged_replays: int = 0
    paged_captures: int = 0
    paged_bytes: int = 0
    page_tokens: int = 0
    pages_taken: int | None = None
    pages_needed: int = 0
    widest_step_tokens: int = 0
    full_steps: int = 0
    overlapped_steps: int = 0
    contended_steps: int = 0
    prefill_first_steps: int = 0
    restarts: int = 0


class Compilation(Part, frozen=True):
    """torch.compile since these settings were first used in this worker. `option_graphs`: of those for which Inductor
    generated or loaded code, how many had every option that was asked for. `cache_files_`: in the worker's compile
    cache at the start; of its files, how many workers share now."""

    compile_cold_s: float = 0.0
    graphs: int = 0
    graph_breaks: int = 0
    recompiles: int = 0
    cudagraph_skips: int = 0
    fx_cache_hits: int = 0
    fx_cache_misses: int = 0
    artefacts_loaded_bytes: int = 0
    artefacts_saved_bytes: int = 0
    artefacts_cold_s: float | None = None
    tuned_kernels: int = 0
    own_code_files: int = 0
    inductor_graphs: int = 0
    option_graphs: int = 0
    cache_files_before: int = 0
    cache_files_published: int = 0


class GraphSteps(Part, frozen=True):
    """The measured run's steps without the prefill, and the model's matrices; those that compiled graphs of Inductor
    received, summed over those steps; those in its CUDA graphs; our own replays."""

    counted_steps: int | None = None
    matrices: int = 0
    compiled_steps: int = 0
    compiled_matrices: int = 0
    replayed_steps: int = 0
    replayed_matrices: int = 0
    manual_replays: int = 0


class Machine(Part, frozen=True):
    """The machine during the run; shares are of the samples that the driver answered."""

    sm_clock_mhz: float | None = None
    sm_clock_low_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    gpu_slowed_share: float | None = None
    gpu_others_share: float | None = None
    cpu_others_cores: float | None = None


class Traced(Part, frozen=True):
    """Of the proof: seconds of a step in which the GPU was busy; 1 where the profiler could not be detached from the
    GPU's driver, 0 where it was."""

    step_busy_s: float | None = None
    profiler_attached: int | None = None


class RunCounts(msgspec.Struct, kw_only=True, repr_omit_defaults=True):
    """Effects that were counted or measured while loading, warming up and running, never settings. A part that nobody
    has counted is its default, the very object."""

    memory: Memory = Memory()
    residue: Residue = Residue()
    load: Load = Load()
    prompt: Prompt = Prompt()
    prefill: Prefill = Prefill()
    warmup: WarmUp = WarmUp()
    drafts: Drafts = Drafts()
    tokens: CheckedTokens = CheckedTokens()
    passes: Passes = Passes()
    requests: Requests = Requests()
    static: StaticBatches = StaticBatches()
    pages: Pages = Pages()
    compilation: Compilation = Compilation()
    graphs: GraphSteps = GraphSteps()
    machine: Machine = Machine()
    traced: Traced = Traced()

    def update(self, other: "RunCounts") -> None:
        """Take over every part of `other` in which something was counted."""
        for name in self.__struct_fields__:
            part = getattr(other, name)
            if part is not _NOT_COUNTED[name]:
                setattr(self, name, part)


_NOT_COUNTED: dict[str, Part] = {field.name: field.default for field in msgspec.structs.fields(RunCounts)}
_PLACES = {
    field.encode_name: (name, field.name, field.type in (int, int | None))
    for name, part in _NOT_COUNTED.items()
    for field in msgspec.structs.fields(part)
}
"""By the name in JSON: the part, its field, and whether it is a whole number."""


def flat(counts: RunCounts) -> dict[str, float]:
    """All parts as one object, without what was not counted."""
    extra = {}
    for name, (part, field, _) in _PLACES.items():
        counted = getattr(counts, part)
        if counted is not _NOT_COUNTED[part] and getattr(counted, field) is not None:
            extra[name] = getattr(counted, field)
    return extra


def counts_of(extra: Mapping[str, float]) -> RunCounts:
    """The counts of such an object. Unknown names are ignored: records of other versions can be read."""
    counts = RunCounts()
    parts: dict[str, dict[str, float]] = {}
    for name in extra.keys() & _PLACES.keys():
        part, field, whole = _PLACES[name]
        parts.setdefault(part, {})[field] = int(extra[name]) if whole else extra[name]
    for part, values in parts.items():
        setattr(counts, part, type(_NOT_COUNTED[part])(**values))
    return counts
