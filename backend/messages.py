"""What engine and worker say to each other: one JSON line a message, told apart by type, never by text.

Commands go down the worker's standard input, events come up a pipe. An unknown field or type is an error:
both ends are always of one version. All times are seconds, all sizes bytes. A torn last line (the worker
was killed in mid-write) fails to decode and is dropped by the reader, which then reports the death.
"""

from typing import Literal

import msgspec

from backend.plan import Plan

PhaseName = Literal["start", "download", "load", "quantize", "compile", "warmup", "run", "prove"]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """Base of everything on the wire."""


# --- commands: engine -> worker -------------------------------------------------------------------


class Load(Message, frozen=True, tag="load"):
    """Bring the plan's model into memory (a no-op if it is there). Answered by Loaded or Failed.

    `expected_bytes`: the predicted weights, for the progress of the load; 0 if unknown.
    """

    plan: Plan
    expected_bytes: int = 0


class Generate(Message, frozen=True, tag="generate"):
    """Warm up if needed, then run once. Answered by Tokens and Samples, then Finished or Failed.

    prove   look at what was on, afterwards: under a profiler, which may slow a process that launches many kernels
    """

    plan: Plan
    prompt: str
    prompt_tokens: int
    max_new_tokens: int
    batch_size: int
    temperature: float
    seed: int
    ignore_eos: bool
    warmup: bool
    top_k: int = 0
    top_p: float = 1.0
    chat: bool = False
    reasoning_effort: str = ""
    prove: bool = True


class Cancel(Message, frozen=True, tag="cancel"):
    """End the current generation after the token in flight; its Finished says "cancelled"."""


class Shutdown(Message, frozen=True, tag="shutdown"):
    """Leave in good order."""


Command = Load | Generate | Cancel | Shutdown


# --- events: worker -> engine ---------------------------------------------------------------------


class Ready(Message, frozen=True, tag="ready"):
    """Imports are done and commands are read. `versions`: package -> version."""

    pid: int
    import_s: float
    versions: dict[str, str]


class Progress(Message, frozen=True, tag="progress"):
    """A phase began (`state` "begin"), moved on, or ended. `seconds`: since the phase began."""

    phase: PhaseName
    state: Literal["begin", "step", "end"]
    seconds: float
    fraction: float | None = None
    note: str = ""


class Loaded(Message, frozen=True, tag="loaded"):
    """The model is in memory.

    stages_s    seconds of each stage of the load, e.g. read, quantize, move
    peak_bytes  largest memory during the load: "host" and, on a GPU, "device"
    """

    weight_bytes: int
    parameters: int
    reused: bool
    stages_s: dict[str, float] = {}
    peak_bytes: dict[str, int] = {}


class Started(Message, frozen=True, tag="started"):
    """The measured run begins: the prompt as the model got it.

    prompt_tokens  padding included
    cache_places   tokens that a static cache is made for; 0: prompt and new tokens
    """

    prompt_tokens: int
    batch_size: int
    max_new_tokens: int
    notes: list[str]
    cache_places: int = 0

    @property
    def places(self) -> int:
        """Tokens that a static cache is made for."""
        return self.cache_places or self.prompt_tokens + self.max_new_tokens


class Tokens(Message, frozen=True, tag="tokens"):
    """A batch of consecutive tokens of sequence 0, in columns of one length.

    first         index of the first token of this batch, counted from 0
    t_s           when the token existed, seconds since the run began (prefill included)
    latency_s     since the token before; for token 0 the time to first token. Tokens of one step (speculation) have
                  one time, and share what the step took evenly
    kv_sliding    bytes that the cache's tensors hold after this token, layers with a sliding window
    kv_full       the same, layers with full attention
    memory_bytes  newest sample of the worker's memory at that moment (see Finished.memory_label)
    ids           token ids
    text          what these tokens add to the text (incomplete characters wait for the next batch)
    """

    first: int
    t_s: list[float]
    latency_s: list[float]
    kv_sliding: list[int]
    kv_full: list[int]
    memory_bytes: list[int]
    ids: list[int]
    text: str


class Samples(Message, frozen=True, tag="samples"):
    """Memory over time: seconds since the run began (load and warm-up are not in it)."""

    t_s: list[float]
    memory_bytes: list[int]


MarkKind = Literal["compile", "recompile", "graph_skip", "window", "cache", "gc", "throttle", "foreign"]


class Mark(Message, frozen=True, tag="mark"):
    """Something that happened while a token was made and may explain its latency.

    token    index of that token, counted from 0
    seconds  how long it took, 0 if unknown
    text     what it was, in words: for a recompile the guard that failed
    """

    kind: MarkKind
    token: int
    t_s: float
    seconds: float
    text: str


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One row of the ledger: what was asked, what was planned, what was found, and how it was found."""

    axis: str
    requested: str
    planned: str
    effective: str
    proof: str
    reason: str = ""
    fell_back: bool = False

    @property
    def status(self) -> Literal["proved", "fallback", "failed"]:
        """Green, amber or red."""
        if self.effective != self.planned:
            return "failed"
        return "fallback" if self.fell_back else "proved"


class Finding(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an axis found to be in effect in the worker, and how."""

    axis: str
    effective: str
    proof: str


class CompiledGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One graph. `seconds`: to trace and compile it, or to take it from the cache; `guard`: what an earlier graph of
    the same code stumbled over, "" for the first."""

    seconds: float
    guard: str = ""


class Compiled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What torch.compile did for an arm's settings, from their first use in its worker to the end of this run.

    cold_s         seconds of the compile phase: everything until the first compiled tokens were there
    breaks, skips  reason -> how often: graph breaks and code that was given up (the recompile limit), and graphs that
                   were not run as CUDA graphs
    records        CUDA graphs that Inductor recorded
    hits, misses   graphs that came from Inductor's cache on disk, and that were compiled anew
    loaded_bytes, saved_bytes  of compile artefacts
    cold_before_s  cold seconds of the run that saved those artefacts; 0 without them
    """

    cold_s: float
    graphs: list[CompiledGraph]
    breaks: dict[str, int]
    skips: dict[str, int]
    records: int
    hits: int
    misses: int
    loaded_bytes: int = 0
    saved_bytes: int = 0
    cold_before_s: float = 0.0


class Finished(Message, frozen=True, tag="finished"):
    """The run is over: `reason` says why it stopped, `text` is the whole text of sequence 0; `compiled` is None where
    nothing was."""

    reason: Literal["length", "eos", "cancelled"]
    text: str
    ttft_s: float
    wall_s: float
    peak_memory_bytes: int
    memory_label: str
    clock: str
    findings: list[Finding]
    extra: dict[str, float]
    compiled: Compiled | None = None


class Failed(Message, frozen=True, tag="failed"):
    """The worker could not go on with this command, and says why and what to do.

    fatal      the process is not to be used again (a sticky CUDA error, out of memory)
    bad_input  the request cannot be done as written (a prompt that is too long); nothing broke
    detail     traceback for the log; never shown on the page
    """

    phase: PhaseName
    error: str
    advice: str
    detail: str = ""
    fatal: bool = False
    bad_input: bool = False


Event = Ready | Progress | Loaded | Started | Tokens | Samples | Mark | Finished | Failed

encode = msgspec.json.Encoder().encode
decode_command = msgspec.json.Decoder(Command).decode
decode_event = msgspec.json.Decoder(Event).decode
