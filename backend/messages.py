"""Messages between engine and worker: one JSON object per line, distinguished by its type.

A subprocess receives commands on standard input and sends events through a pipe. Unknown fields and types are errors:
both ends always have the same version. All times are in seconds, all sizes in bytes. A truncated last line (the worker
was killed while writing) fails to decode; the reader drops it and then reports the death.
"""

import gzip
from typing import Literal

import msgspec

from tokendyno.backend.counts import RunCounts, StepTime, counts_of
from tokendyno.backend.evidence import Finding
from tokendyno.backend.plan import Plan
from tokendyno.backend.traffic.requests import Traffic

PhaseName = Literal["start", "import", "download", "load", "quantize", "compile", "warmup", "run", "prove", "quality"]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="type"):
    """Base of everything on the wire."""


# --- commands: engine -> worker -------------------------------------------------------------------


class Load(Message, frozen=True, tag="load"):
    """Load the plan's model (a no-op if it is loaded). Answered by Loaded or Failed.

    expected_s      seconds for which the arm is predicted to need its device, for executors that borrow one
    """

    plan: Plan
    expected_bytes: int = 0
    expected_s: float = 0.0


class Generate(Message, frozen=True, tag="generate"):
    """Warm up if needed, then run once. Answered by Tokens and Samples, then Finished or Failed.

    prove   verify afterwards what was in effect, under a profiler; where that cannot be detached from the GPU again,
            it slows later runs of the process, and Finished says so
    keep    a Prove may follow: keep what it needs until the next Generate
    traffic  many requests instead of the prompt: answered by Steps, PageMoves and RequestEnds in place of Tokens
    most_prompt_tokens  refuse a prompt that turns out to have more; 0: no limit but the model's positions
    places  least slots of a static cache, where it serves several prompts
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
    system: str = ""
    prove: bool = True
    keep: bool = False
    traffic: Traffic | None = None
    most_prompt_tokens: int = 0
    prompt_ids: list[int] = []
    places: int = 0


class Cancel(Message, frozen=True, tag="cancel"):
    """Stop the current generation after the token in flight; its Finished says "cancelled"."""


class Prove(Message, frozen=True, tag="prove"):
    """Verify what was in effect in the latest Generate, which said `keep`. Answered by Proved or Failed."""


class Probe(Message, frozen=True, tag="probe"):
    """How close the two likeliest tokens are after the latest prompt and these tokens. Answered by Probed or Failed."""

    token_ids: list[int]


class Score(Message, frozen=True, tag="score"):
    """Give the model a text token by token, in the arm's own way of generating. Answered by Scored or Failed.

    context    tokens at the beginning of the text that are its prompt
    positions  tokens after them, at most, that are predicted, one a step
    keep       file in which to keep the distributions, as float32 of shape (positions, vocabulary); "": not kept
    against    such a file of another arm, to compare with; "": not compared
    places     least slots of a static cache: those of a run, so that its warm-up serves the text too
    """

    plan: Plan
    text: str
    context: int
    positions: int
    keep: str = ""
    against: str = ""
    name: str = ""
    places: int = 0


class Shutdown(Message, frozen=True, tag="shutdown"):
    """Exit in good order."""


Command = Load | Generate | Prove | Probe | Score | Cancel | Shutdown


# --- events: worker -> engine ---------------------------------------------------------------------


class Ready(Message, frozen=True, tag="ready"):
    """Commands are accepted. `versions`: package -> version; `import_s`: 0 where the process was forked."""

    pid: int
    import_s: float
    versions: dict[str, str]


PartUse = Literal["read", "render", "tokenize"]
"""What a worker does with a part of a model: reads it, renders a chat template, turns text into tokens or back."""


class Reading(Message, frozen=True, tag="reading", omit_defaults=True):
    """The worker begins to use a part of the model, which alone is at fault for what goes wrong until the next Reading.
    `part`: with the names of its files, as in "the model's tokenizer (tokenizer.json)"; "" when it is done."""

    part: str = ""
    use: PartUse = "read"


class Amount(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Bytes that have arrived, of so many, at this rate over the last seconds; None: unknown."""

    done_bytes: int
    total_bytes: int | None = None
    bytes_per_s: float | None = None


class Progress(Message, frozen=True, tag="progress"):
    """A phase began (`state` "begin"), progressed, or ended. `seconds`: since the phase began; `amount`: of a download
    or a load."""

    phase: PhaseName
    state: Literal["begin", "step", "end"]
    seconds: float
    fraction: float | None = None
    note: str = ""
    amount: Amount | None = None


class Loaded(Message, frozen=True, tag="loaded"):
    """The model is loaded.

    stages_s    seconds of each stage of the load, e.g. read, quantize, move
    peak_bytes  peak memory during the load: "host" and, on a GPU, "device"
    cached      share of the weights' files that was in the system's page cache before; None where nothing was read, or
                that is not known
    """

    weight_bytes: int
    parameters: int
    reused: bool
    stages_s: dict[str, float] = {}
    peak_bytes: dict[str, int] = {}
    cached: float | None = None


class Started(Message, frozen=True, tag="started"):
    """The measured run begins: the prompt as the model received it.

    prompt_tokens  padding included
    cache_places   slots of a static cache; 0: prompt and new tokens
    """

    prompt_tokens: int
    batch_size: int
    max_new_tokens: int
    notes: list[str]
    cache_places: int = 0

    @property
    def places(self) -> int:
        """Slots of a static cache."""
        return self.cache_places or self.prompt_tokens + self.max_new_tokens


class Tokens(Message, frozen=True, tag="tokens", omit_defaults=True):
    """Consecutive tokens of one sequence, in columns of equal length.

    t_s           when the token existed, in seconds since the run began (prefill included)
    latency_s     since the previous token; for token 0 the time to first token. Tokens of one step (speculation) have
                  the same time and share the step's latency evenly
    kv_sliding    bytes of the KV cache's tensors after this token, layers with a sliding window
    kv_full       all others; of these kv_latent: latent vectors in place of keys and values, kv_state: states that do
                  not grow, kv_index: keys by which sparse attention chooses tokens; empty where there are none
    text          what these tokens add to the text (incomplete characters wait for the next batch)
    text_ends     characters of the sequence's whole text that exist after each token; empty in records of older
                  versions
    sequence      index in the batch; today only sequence 0 is reported
    rank          process that reports, where several run one model
    """

    first: int
    t_s: list[float]
    latency_s: list[float]
    kv_sliding: list[int]
    kv_full: list[int]
    memory_bytes: list[int]
    ids: list[int]
    text: str
    text_ends: list[int] = []
    sequence: int = 0
    rank: int = 0
    kv_latent: list[int] = []
    kv_state: list[int] = []
    kv_index: list[int] = []


class Samples(Message, frozen=True, tag="samples", omit_defaults=True):
    """Memory over time: seconds since the measured run began (without load and warm-up)."""

    t_s: list[float]
    memory_bytes: list[int]
    rank: int = 0


NO_TOKEN = -1
"""In the place of a token's id: a part of a step gave none."""

PREFILL, DECODE, IDLE = 0, 1, 2
"""What a request did in a step: part of its prompt; one token; nothing, in a row of a static batch that it holds."""

WaitReason = Literal["batch", "pages", "tokens", "requests", "margin", "reads"]
"""Why a request that has arrived waits: batch: the static batch before it must end; pages: no free pages; tokens: the
token budget of the step is used up; requests: as many as are allowed are in work; margin: free pages are kept back for
requests that decode; reads: the limit of cached tokens that a step may read."""

EndReason = Literal["length", "eos", "cancelled"]


class Steps(Message, frozen=True, tag="steps", omit_defaults=True):
    """Consecutive passes of the model over many requests, in columns.

    One entry for each step: `begin_s` and `end_s` since the run began, `parts` (how many entries of the columns below
    are this step's), `padding` (positions that hold padding), `waiting` (requests that have arrived and wait),
    `free_bytes` (of the paged KV cache; empty for static batches).
    One entry for each part: `request` (index; -1 for an empty row), `kind` (PREFILL, DECODE, IDLE), `tokens` (positions
    processed), `made` (id of the token that it gave, or NO_TOKEN).
    """

    first: int
    begin_s: list[float]
    end_s: list[float]
    parts: list[int]
    padding: list[int]
    waiting: list[int]
    request: list[int]
    kind: list[int]
    tokens: list[int]
    made: list[int]
    free_bytes: list[int] = []


class Waits(Message, frozen=True, tag="waits"):
    """Why requests wait, where that changed: `request` began to wait for `reason` at `t_s`. It ends with its next
    step: a request that lost its pages waits again."""

    t_s: list[float]
    request: list[int]
    reason: list[WaitReason]


class PageGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Pages of the layers with one kind of attention. A page of a request covers all these layers.

    Page n begins at byte n x `page_bytes` of the cache, whose bytes the groups share.
    """

    attention: str
    layers: int
    page_tokens: int
    page_bytes: int
    pages: int


class PagesAllocated(Message, frozen=True, tag="pages_allocated"):
    """The paged KV cache of this run. `cache_bytes`: what pages share; `spare_bytes`: beside them, for padding."""

    groups: list[PageGroup]
    cache_bytes: int
    spare_bytes: int


class PageMoves(Message, frozen=True, tag="page_moves"):
    """Pages that changed hands before `step`: taken by `request`, or given back (-1). `group`: index of its group."""

    step: list[int]
    group: list[int]
    page: list[int]
    request: list[int]


class RequestEnds(Message, frozen=True, tag="request_ends"):
    """Requests that ended, with their whole texts."""

    request: list[int]
    t_s: list[float]
    reason: list[EndReason]
    text: list[str]


AnnotationKind = Literal["compile", "recompile", "graph_skip", "window", "cache", "gc", "throttle", "foreign"]


class Annotation(Message, frozen=True, tag="mark", omit_defaults=True):
    """Something that happened while a token was generated and may explain its latency.

    text     what it was; for a recompile the guard that failed
    """

    kind: AnnotationKind
    token: int
    t_s: float
    seconds: float
    text: str
    sequence: int = 0
    rank: int = 0


class CompiledGraph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One graph. `seconds`: to trace and compile it, or to load it from the cache; `guard`: the guard of an earlier
    graph of the same code that failed, "" for the first; `id`: as torch's own tools name it; `stages_s`: as those of
    `Compiled`."""

    seconds: float
    guard: str = ""
    id: str = ""
    stages_s: dict[str, float] = {}


class Compiled(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What torch.compile did for an arm's settings, from their first use in its worker to the end of this run.

    cold_s         seconds of the compile phase: until the first compiled tokens existed
    breaks, skips  reason -> count: graph breaks and code that Dynamo gave up on (the recompile limit); graphs that
                   were not run as CUDA graphs
    hits, misses   graphs loaded from Inductor's cache on disk, and compiled anew
    loaded_bytes, saved_bytes  size of compile artefacts
    cold_before_s  cold_s of the run that saved those artefacts; 0 without them
    stages_s       seconds of all graphs in dynamo (tracing), inductor (with AOTAutograd: lowering, fusing), codegen
                   (generated code, compiled or loaded) and autotune (also when the code is first called), as torch
                   counts them
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
    stages_s: dict[str, float] = {}


class RankMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What one of several ranks held, or one of several devices of a process (`of`): bytes of its weights and of its KV
    cache at the end, and its memory as `Finished.memory_label` says: the peak, and some samples, with seconds since the
    measured run began."""

    weight_bytes: int
    kv_bytes: int
    peak_bytes: int
    sample_t_s: list[float] = []
    sample_bytes: list[int] = []
    of: Literal["rank", "device"] = "rank"


class GraphCode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The code that Inductor generated for a graph: the graph's id as torch's own tools name it, how many characters
    the code has, and the code itself packed by gzip; empty where an arm's code is longer than is kept."""

    id: str
    characters: int
    packed: bytes

    @property
    def text(self) -> str:
        """The code as text; "" where it was not kept."""
        return gzip.decompress(self.packed).decode() if self.packed else ""


class Finished(Message, frozen=True, tag="finished"):
    """The run is over: `reason` says why it stopped, `text` is the whole text of sequence 0; `compiled` is None where
    nothing was compiled; `ranks` is empty for a process with one device. `step`: where the time of a step went; None
    where that was not traced, and `no_step` says why. `code`: of compiled graphs, with the proof. `unchecked`: of
    records before schema 3, why tokens were not compared with the model's own choice. `extra`: `counts` as JSON."""

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
    ranks: list[RankMemory] = []
    step: StepTime | None = None
    no_step: str = ""
    unchecked: str = ""
    code: list[GraphCode] = []

    @property
    def counts(self) -> RunCounts:
        """What was counted."""
        return counts_of(self.extra)


class Proved(Message, frozen=True, tag="proved"):
    """What was in effect in the latest run, as `Finished` has it. `extra`: what was counted meanwhile."""

    findings: list[Finding]
    extra: dict[str, float]
    step: StepTime | None = None
    no_step: str = ""
    code: list[GraphCode] = []

    @property
    def counts(self) -> RunCounts:
        """What was counted meanwhile."""
        return counts_of(self.extra)


class Probed(Message, frozen=True, tag="probed"):
    """The two likeliest next tokens, most likely first: ids, texts and logits, of one forward pass over all tokens."""

    token: int
    ids: list[int]
    texts: list[str]
    logits: list[float]

    @property
    def gap(self) -> float:
        """By how much the likeliest leads."""
        return self.logits[0] - self.logits[1]


class Scored(Message, frozen=True, tag="scored"):
    """How a model predicted a given text, one entry a position.

    nll_nats  negative log probability of each
    top       the most likely token at each
    kl_nats   KL(the other arm's distribution || this one's); empty where nothing was compared
    left_bytes  what the runs and texts so far left in the process, as `counts.Residue` has it; None: not known
    """

    ids: list[int]
    nll_nats: list[float]
    top: list[int]
    kl_nats: list[float] = []
    left_bytes: float | None = None


class Failed(Message, frozen=True, tag="failed"):
    """The command failed; `error` says why and `advice` what to do.

    fatal      the worker must not be used again (a sticky CUDA error, out of memory)
    bad_input  the request cannot be run as written (a prompt that is too long); nothing broke
    """

    phase: PhaseName
    error: str
    advice: str
    detail: str = ""
    fatal: bool = False
    bad_input: bool = False


BatchEvent = Steps | Waits | PagesAllocated | PageMoves | RequestEnds
"""Events of many requests."""

Event = (
    Ready
    | Reading
    | Progress
    | Loaded
    | Started
    | Tokens
    | Samples
    | Annotation
    | Finished
    | Proved
    | Probed
    | Failed
    | Scored
    | BatchEvent
)

encode = msgspec.json.Encoder().encode
decode_command = msgspec.json.Decoder(Command).decode
decode_event = msgspec.json.Decoder(Event).decode
