"""What the worker counts and measures beside the tokens: one flat record for each run, and the parts of a step."""

from typing import Literal

import msgspec

StepPart = Literal["attention", "products", "other", "collectives", "gaps", "host"]
"""attention; products with weights; other operators or kernels; collectives between GPUs; gaps: the GPU is idle though
the next kernel was launched; host: nothing runs but Python, and on a GPU it waits for a launch."""


class StepTime(msgspec.Struct, frozen=True):
    """Where the time of a step went: the mean of traced steps of the same generation, while a profiler listened.

    seconds  of a step, which is what `parts_s` add up to; attention or products that are not among them could not be
             told apart: compiled code has fused them with other operators
    gpu      the GPU's time was divided, else that of the CPU's thread, which has no gaps
    others   names that took longest in the part "other"
    """

    steps: int
    seconds: float
    gpu: bool
    parts_s: dict[StepPart, float]
    others: dict[str, float] = {}


class RunCounts(msgspec.Struct, omit_defaults=True, repr_omit_defaults=True, kw_only=True):
    """Effects that were counted or measured while loading, warming up and running, never settings.

    None means not known or not applicable, and such a field is left out of JSON. JSON names are the keys of `extra`
    in documents and in the history; they stay even where a Python name is better. Unknown keys are ignored: records of
    other versions can be read.
    """

    # memory, in bytes; the process's as the meter's label says, the allocator's on CUDA only
    process_now_bytes: float | None = None
    process_peak_bytes: float | None = None
    allocator_now_bytes: float | None = None
    allocator_peak_bytes: float | None = None
    allocator_reserved_bytes: float | None = None
    weight_bytes: float | None = None
    # what this worker's process holds beyond what it held before its first measured run, or before it compiled, caches
    # not counted, and what of that the proof of this run left; on a CPU also what it held then
    left_bytes: float | None = None
    clean_bytes: float | None = None
    proof_left_bytes: float | None = None
    # 1 where the profiler of the proof could not be detached from the GPU's driver, 0 where it was
    profiler_attached: float | None = None
    kv_cpu_bytes: float | None = None
    kv_cuda_bytes: float | None = None

    # loading: what the allocator's warm-up reserved, and what reached the GPU through host memory
    load_warmup_bytes: float | None = None
    load_moved_bytes: float | None = None
    # tensors of the model that its checkpoint lacks
    drawn_tensors: float | None = None

    # the prompt as the model received it: positions in a row, how many of them are padding
    positions: float | None = None
    padding: float | None = None
    padding_share: float | None = None

    # warm-up: prompts, tokens after them, and how many of those tokens were past a sliding window; what the run's own
    # prompt took with its few tokens for the first time and for the last: the rest is made on first use
    warmup_prompts: float | None = None
    warmup_steps: float | None = None
    warmup_window_steps: float | None = None
    warmup_first_s: float | None = None
    warmup_last_s: float | None = None

    # speculation: n-gram lookups, decode steps, tokens drafted and accepted
    lookups: float | None = None
    steps: float | None = None
    draft_tokens: float | None = msgspec.field(default=None, name="guessed")
    accepted_tokens: float | None = msgspec.field(default=None, name="accepted")
    # draft tokens that look-ups in the text should have proposed, computed anew
    due_drafts: float | None = None
    # of those, the tokens that the text went on with, which should have been accepted
    due_accepted: float | None = None

    # of records before schema 3, where the row `tokens` was no finding yet: tokens that were held against the model,
    # and those of them that it would not choose
    checked_tokens: float | None = None
    strange_tokens: float | None = None

    # passes through the model in the measured run, that of the prompt included
    passes: float | None = None
    # positions of a row that the model itself was given, where that can be seen; layers of a static cache whose tensors
    # moved
    model_positions: float | None = None
    moved_layers: float | None = None
    # of these passes, those until the prompt was read, the positions of a row that the widest was given, and those that
    # were given just what was planned for them
    prompt_passes: float | None = None
    widest_prompt_pass: float | None = None
    planned_prompt_passes: float | None = None
    # graphs that were replayed until the prompt was read
    prompt_replays: float | None = None
    # matrices that compiled graphs of Inductor received until then, in replays too
    prompt_compiled_matrices: float | None = None

    # the custom decode loop: its steps in the measured run, graphs captured so far
    own_steps: float | None = None
    graph_captures: float | None = None

    # many requests: batches formed, steps, rows or requests that those steps had room for and that did something in
    # them, useful tokens, positions of padding and rows that held an ended request
    batch_requests: float | None = None
    batches: float | None = None
    batch_steps: float | None = None
    slot_steps: float | None = None
    busy_steps: float | None = None
    useful_tokens: float | None = None
    fullest_step: float | None = None  # requests in the step that had most
    padding_tokens: float | None = None
    idle_steps: float | None = None
    # padding where the model received ids, against what the batches should have held; rows that were sorted
    padding_seen: float | None = None
    rows_seen: float | None = None
    # pairs of requests of static batches that followed each other although both had arrived: all of them, those in the
    # order of arrival, those in the order of length
    order_pairs: float | None = None
    order_arrival: float | None = None
    order_sorted: float | None = None
    # continuous batching: steps that the scheduler filled, layers that wrote into the paged cache in them, replayed
    # graphs, requests that lost their pages and began again, and tokens of requests that came from such steps
    paged_steps: float | None = None
    paged_layer_calls: float | None = None
    paged_tokens: float | None = None
    paged_replays: float | None = None
    paged_bytes: float | None = None
    page_tokens: float | None = None
    widest_step_tokens: float | None = None
    cut_prompts: float | None = None
    restarts: float | None = None
    overlapped_steps: float | None = None
    paged_captures: float | None = None
    pages_taken: float | None = None
    pages_needed: float | None = None
    full_steps: float | None = None
    contended_steps: float | None = None
    prefill_first_steps: float | None = None

    # compilation since these settings were first used in this worker
    compile_cold_s: float | None = None
    capture_s: float | None = None  # of CUDA graphs, within the warm-up
    cache_s: float | None = None  # of filling and sharing the compile cache, before the run
    graphs: float | None = None
    graph_breaks: float | None = None
    recompiles: float | None = None
    graph_records: float | None = None
    cudagraph_skips: float | None = None
    fx_cache_hits: float | None = None
    fx_cache_misses: float | None = None
    artefacts_loaded_bytes: float | None = None
    artefacts_saved_bytes: float | None = None
    artefacts_cold_s: float | None = None
    tuned_kernels: float | None = None
    own_code_files: float | None = None
    # graphs for which Inductor generated code or loaded it, and those for which every option asked for was in effect
    inductor_graphs: float | None = None
    option_graphs: float | None = None

    # the measured run's steps without the prefill, and the model's matrices; those that compiled graphs of Inductor
    # received, summed over those steps, and their share of the bytes; those in its CUDA graphs; our own replays
    counted_steps: float | None = None
    matrices: float | None = None
    compiled_steps: float | None = None
    compiled_matrices: float | None = None
    compiled_share: float | None = None
    replayed_steps: float | None = None
    replayed_matrices: float | None = None
    manual_replays: float | None = None

    # files in the worker's compile cache: at the start, of how many that workers share, and
    # how many of those there now are shared
    cache_files_before: float | None = None
    cache_files_shared: float | None = None
    cache_files_published: float | None = None
    cache_files_compiled: float | None = None

    # the machine during the run
    step_busy_s: float | None = None
    step_launches: float | None = None  # of kernels and CUDA graphs in a traced step after the first
    sm_clock_mhz: float | None = None
    sm_clock_low_mhz: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    energy_j: float | None = None
    gpu_slowed_share: float | None = None
    gpu_others_share: float | None = None
    cpu_own_cores: float | None = None
    cpu_others_cores: float | None = None

    def update(self, other: "RunCounts") -> None:
        """Take over every field that is known in `other`."""
        for name in self.__struct_fields__:
            value = getattr(other, name)
            if value is not None:
                setattr(self, name, value)

    def filled_from(self, other: "RunCounts") -> "RunCounts":
        """A copy, with the fields of `other` where they are unknown here."""
        filled = msgspec.structs.replace(other)
        filled.update(self)
        return filled
