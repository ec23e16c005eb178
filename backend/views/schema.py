"""The JSON document of a run, schema 3, as structs: field names on the wire are a public interface."""

from typing import Any, Literal

import msgspec

from tokendyno.backend.config import Workload
from tokendyno.backend.counts import StepPart
from tokendyno.backend.evidence import TOKENS, Level
from tokendyno.backend.messages import AnnotationKind, PhaseName, RankMemory
from tokendyno.backend.runs.records import Status, Unit
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison, Summary
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.views.card import Card
from tokendyno.backend.views.gate import QualityGate
from tokendyno.backend.views.ledger import LedgerRow, ledger_rows
from tokendyno.backend.views.prompt_pass import PromptPass
from tokendyno.backend.views.sentences import interference_of


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
    """What every arm of a document begins with: what was asked, planned and proved, and what the rules said.

    values       axis -> value of its choice, where the choice carries one
    environment  variables that were set for its worker
    engine       what carries it out
    """

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


def head(run: Snapshot) -> dict[str, Any]:
    """Which run it is, how it ended, of which model, and where: `schema` to `versions`."""
    created = run.created
    return {
        "schema": 3,
        "run": created.id,
        "created": created.created,
        "status": run.status,
        "message": run.message,
        "model": created.request.model,
        "model_label": created.model_label,
        "model_note": created.model_note,
        "machine": created.machine,
        "versions": created.versions,
    }


def arm_head(run: Snapshot, name: str) -> dict[str, Any]:
    """What was asked for, what was planned, and what the ledger and the rules say: `name` to `verdicts`."""
    planned, ledger = run.planned(name), run.ledger(name)
    return {
        "name": name,
        "state": run.arms[name].state,
        "values": {},
        "environment": {},
        "engine": "transformers",
        "requested": planned.requested,
        "planned": planned.planned,
        "effective": {row.finding.axis: row.finding.effective for row in ledger if row.finding.axis != TOKENS},
        "evidence": ledger_rows(ledger),
        "verdicts": [VerdictRow(v.level, v.axis, v.reason, v.source) for v in planned.verdicts],
    }


def arm_measured(run: Snapshot, name: str) -> dict[str, Any]:
    """What is measured of an arm whatever it generates for: memory, load, phases, clocks and counters."""
    arm = run.arms[name]
    started, loaded, finished = arm.started, arm.loaded, arm.finished
    return {
        "notes": started.notes if started else [],
        "memory_label": run.memory_label,
        "memory_samples": MemorySamples(arm.sample_t_s, arm.sample_bytes),
        "memory_predicted_bytes": run.planned(name).predicted_bytes,
        "weight_bytes": loaded.weight_bytes if loaded else None,
        "parameters": loaded.parameters if loaded else None,
        "load": Load(loaded.stages_s, loaded.peak_bytes) if loaded else Load({}, {}),
        "phases_s": {phase.name: phase.seconds for phase in arm.phases.values()},
        "wall_s": finished.wall_s if finished else None,
        "clock": finished.clock if finished else None,
        "extra": finished.extra if finished else {},
        "interference": interference_of(run, name),
        "annotations": [Annotated(m.kind, m.token, m.t_s, m.seconds, m.text) for m in arm.annotations],
    }
