"""The JSON documents of runs, schema 3, as structs: field names on the wire are a public interface."""

from typing import Literal

import msgspec

from tokendyno.backend.config import Workload
from tokendyno.backend.counts import StepPart
from tokendyno.backend.evidence import Level
from tokendyno.backend.messages import AnnotationKind, PageGroup, PhaseName, RankMemory, WaitReason
from tokendyno.backend.quality import Quality
from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.quality import TextReading
from tokendyno.backend.runs.records import Status, Unit
from tokendyno.backend.runs.summary import Comparison, Summary
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.traffic import Limits, TrafficRequest
from tokendyno.backend.views.card import Card
from tokendyno.backend.views.details import PromptPass
from tokendyno.backend.views.ledger import LedgerRow
from tokendyno.backend.views.quality import Cost, QualityGate


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every part of a document: an unknown key is an error."""


Unasked = dict[str, tuple[str, str]] | msgspec.UnsetType
"""In what two arms differ although nobody named it, such as what "auto" came to: axis -> choices of A and of B. Left
out where nothing does."""


class VerdictRow(Part, frozen=True):
    """What a rule said of one axis before the run."""

    level: Level
    axis: str
    reason: str
    source: str


class KvSeries(Part, frozen=True):
    """KV bytes by layer kind, one entry per step."""

    sliding: list[int]
    full: list[int]


class MemorySamples(Part, frozen=True):
    """Memory over time, from the beginning of the run."""

    t_s: list[float]
    bytes: list[int]


class Check(Part, frozen=True):
    """Predicted and measured bytes; `error` is in percent of the prediction, and so is `margin`, by which it may be
    off, where one is stated."""

    predicted: int | None
    measured: int | None
    error: float | None
    margin: float | msgspec.UnsetType = msgspec.UNSET


class MemoryChecks(Part, frozen=True):
    """Predicted against measured memory; `allocator` (tensors) exists on a GPU only."""

    weights: Check
    kv: Check
    peak: Check
    allocator: Check | msgspec.UnsetType = msgspec.UNSET


class PrefillRoofline(Part, frozen=True):
    """The least seconds of the prefill, their share of the median time to first token, and what they are."""

    seconds: float
    share: float | None
    limited_by: Literal["memory", "compute"]
    work: str


class Roofline(Part, frozen=True):
    """Corners of the roofline curve: least seconds of the token that attends to `length` tokens. `prefill`: only where
    its bound is known."""

    length: list[int]
    seconds: list[float]
    note: str
    work: str
    prefill: PrefillRoofline | msgspec.UnsetType = msgspec.UNSET


class Load(Part, frozen=True):
    """Stages of the load, and its peak memory on "host" and "device"."""

    stages_s: dict[str, float]
    peak_bytes: dict[str, int]


class Repeat(Part, frozen=True):
    """One repeat: the latency of each step, and what the worker counted."""

    latency_s: list[float]
    extra: dict[str, float]


class Annotated(Part, frozen=True):
    """An event that may explain the latency of a token."""

    kind: AnnotationKind
    token: int
    t_s: float
    seconds: float
    text: str


class Recompile(Part, frozen=True):
    """A graph that was compiled again because `guard` failed."""

    guard: str
    seconds: float


class CompileReport(Part, frozen=True):
    """What torch.compile did; `saved_s`: seconds that stored artefacts saved."""

    cold_s: float
    graphs: int
    graph_s: list[float]
    graph_breaks: dict[str, int]
    recompiles: list[Recompile]
    cudagraph_skips: dict[str, int]
    cudagraph_records: int
    cache_hits: int
    cache_misses: int
    artefacts_loaded_bytes: int
    artefacts_saved_bytes: int
    cold_before_s: float | None
    saved_s: float | None
    stages_s: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    graph_stages_s: list[dict[str, float]] | msgspec.UnsetType = msgspec.UNSET


class StepDocument(Part, frozen=True):
    """Where the time of a mean traced step went: seconds by part, which add up to `seconds`; None where no step was
    traced, for the reason in `missing`.

    weight_bytes, kv_bytes, bytes_per_s  what the step must read, and the rate that is known; None where steps differ
    """

    seconds: float | None
    steps: int
    gpu: bool | None
    parts_s: dict[StepPart, float]
    others: dict[str, float]
    weight_bytes: int | None
    kv_bytes: int | None
    bytes_per_s: float | None
    missing: str


class ArmHead(Part, frozen=True):
    """What every arm of a document begins with: what was asked, planned and proved, and what the rules said. `values`:
    axis -> value of its choice, where the choice carries one."""

    name: str
    state: str
    values: dict[str, dict[str, str]]
    environment: dict[str, str]
    engine: str
    requested: dict[str, str]
    planned: dict[str, str]
    effective: dict[str, str]
    evidence: list[LedgerRow]
    verdicts: list[VerdictRow]


class ArmDocument(ArmHead, frozen=True):
    """One arm. Every series has one entry per step of repeat 0.

    latency_s[0] is the time to first token and the rest are decode steps. With `unit` "forward" (an encoder) all
    entries are forward passes, and there is no first token. `step_time` is left out where nothing was recorded of it.
    """

    prompt_tokens: int | None
    notes: list[str]
    ttft_s: float | None
    latency_s: list[float]
    time_s: list[float]
    kv_bytes: KvSeries
    kv_bytes_predicted: KvSeries
    memory_bytes: list[int]
    memory_label: str
    memory_samples: MemorySamples
    memory_predicted_bytes: dict[str, int]
    memory_check: MemoryChecks
    roofline: Roofline
    weight_bytes: int | None
    parameters: int | None
    load: Load
    text: str
    token_ids: list[int]
    phases_s: dict[PhaseName, float]
    stopped_by: str | None
    wall_s: float | None
    clock: str | None
    extra: dict[str, float]
    repeats: list[Repeat]
    interference: list[str]
    launch_bound: bool | None
    annotations: list[Annotated]
    compile: CompileReport | None
    summary: Summary
    ranks: list[RankMemory] | msgspec.UnsetType = msgspec.UNSET  # only where several ran the model
    step_time: StepDocument | msgspec.UnsetType = msgspec.UNSET
    prompt_pass: PromptPass | msgspec.UnsetType = msgspec.UNSET  # of a decoder, once it has a first token


class RunHead(Part, frozen=True, tag_field="kind"):
    """What the document of every kind of run begins with, after its `kind`. `created`: seconds since the epoch, UTC."""

    schema: Literal[3]
    run: str
    created: float
    status: Status
    message: str
    model: str
    model_label: str
    model_note: str
    machine: dict[str, str]
    versions: dict[str, str]


class Document(RunHead, frozen=True, tag="run"):
    """A run. Seconds and bytes throughout."""

    workload: Workload
    unit: Unit
    comparison: Comparison | None
    texts: TextComparison | None
    arms: list[ArmDocument]
    verdict: Card | msgspec.UnsetType = msgspec.UNSET  # only where two arms answered one prompt
    quality: QualityGate | msgspec.UnsetType = msgspec.UNSET  # likewise
    unasked: Unasked = msgspec.UNSET


# --- many requests, given texts ---------------------------------------------------------------------


class RequestDocument(Part, frozen=True):
    """One request. Times are seconds since the run began; null where it did not get so far. `ended`: length, eos,
    cancelled, or "" while it has not ended."""

    arrival_s: float
    start_s: float | None
    first_token_s: float | None
    end_s: float | None
    prompt_tokens: int
    tokens: int
    token_ids: list[int]
    token_s: list[float]
    waited_for: list[WaitReason]
    ended: str
    text: str


class StepsDocument(Part, frozen=True):
    """The steps, in columns. `active`: requests in each; `tokens`: positions that they processed, without padding."""

    begin_s: list[float]
    end_s: list[float]
    active: list[int]
    tokens: list[int]
    padding: list[int]
    idle: list[int]
    waiting: list[int]


class PagesDocument(Part, frozen=True):
    """The paged KV cache. `held`: pages of each group that requests hold, by step; `moves`: each page that changed
    hands before a step, `request` -1 where it was given back."""

    groups: list[PageGroup]
    cache_bytes: int
    predicted_bytes: int | None
    free_bytes: list[int]
    held: list[list[int]]
    moves: dict[str, list[int]]


class BatchArm(ArmHead, frozen=True):
    """One arm: requests, steps, pages and `summary` of the first run; `useful_tokens_s` over all `runs`."""

    notes: list[str]
    useful_tokens_s: float | None
    runs: list[float]
    summary: BatchSummary
    requests: list[RequestDocument]
    steps: StepsDocument
    pages: PagesDocument | None
    memory_label: str
    memory_samples: MemorySamples
    memory_predicted_bytes: dict[str, int]
    weight_bytes: int | None
    parameters: int | None
    load: Load
    phases_s: dict[PhaseName, float]
    wall_s: float | None
    clock: str | None
    extra: dict[str, float]
    interference: list[str]
    annotations: list[Annotated]


class TrafficDocument(Part, frozen=True):
    """What was asked of both arms."""

    label: str
    concurrent: int
    pages: int
    limits: Limits
    requests: list[TrafficRequest]


class BatchDocument(RunHead, frozen=True, tag="batch"):
    """A run of many requests. `same_tokens`: how many got the same tokens from both arms, null for one arm.
    `comparison`, `verdict`: of useful tokens/s, once there is a pair of runs."""

    workload: Workload
    traffic: TrafficDocument
    same_tokens: int | None
    arms: list[BatchArm]
    comparison: Comparison | msgspec.UnsetType = msgspec.UNSET
    verdict: Card | msgspec.UnsetType = msgspec.UNSET
    unasked: Unasked = msgspec.UNSET


class PositionsDocument(Part, frozen=True):
    """One text read by one arm, one entry a position. `kl_nats` is empty for arm A."""

    text: str
    token_ids: list[int]
    nll_nats: list[float]
    top_ids: list[int]
    kl_nats: list[float]


class QualityArm(ArmHead, frozen=True):
    """One arm. `summary`: its speed when it generates as many tokens behind as long a context."""

    positions: list[PositionsDocument]
    summary: Summary


class QualityDocument(RunHead, frozen=True, tag="quality"):
    """Arms over given texts.

    cost   none, rounding, small or large: by the tolerances of docs/metrics.md; null for one arm
    all    every position of every text together; null until every arm has read a text
    kl_nats, top1_agreement, first_divergence, perplexity_ratio: of `all`, null for one arm
    """

    texts: list[TextReading]
    all: TextReading | None
    cost: Cost | None
    sentence: str
    kl_nats: float | None
    top1_agreement: float | None
    first_divergence: int | None
    perplexity_ratio: float | None
    asked: Quality
    arms: list[QualityArm]
    unasked: Unasked = msgspec.UNSET
