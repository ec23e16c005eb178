"""A comparison over given texts as one document for programs (kind "quality", schema 2)."""

from typing import Literal

from backend import hardware
from backend.quality import Quality
from backend.runs.quality import ReadingDifference, TextReading, readings, whole_reading
from backend.runs.records import Status
from backend.runs.run import Run
from backend.runs.snapshot import Snapshot
from backend.runs.summary import Summary
from backend.views.ledger import LedgerRow, ledger_rows
from backend.views.quality import Cost, cost_of, quality_sentence
from backend.views.schema import Part, VerdictRow


class PositionsDocument(Part, frozen=True):
    """One text read by one arm, one entry a position. `kl_nats` is empty for arm A."""

    text: str
    token_ids: list[int]
    nll_nats: list[float]
    top_ids: list[int]
    kl_nats: list[float]


class QualityArm(Part, frozen=True):
    """One arm. `summary`: its speed when it generates as many tokens behind as long a context."""

    name: str
    state: str
    requested: dict[str, str]
    planned: dict[str, str]
    effective: dict[str, str]
    evidence: list[LedgerRow]
    verdicts: list[VerdictRow]
    positions: list[PositionsDocument]
    summary: Summary


class QualityDocument(Part, frozen=True):
    """Arms over given texts.

    cost   none, rounding, small or large: by the tolerances of docs/metrics.md; null for one arm
    all    every position of every text together; null until every arm has read a text
    kl_nats, top1_agreement, first_divergence, perplexity_ratio: of `all`, null for one arm
    """

    kind: Literal["quality"]
    schema: Literal[2]
    run: str
    created: float
    status: Status
    message: str
    model: str
    model_label: str
    model_note: str
    machine: dict[str, str]
    versions: dict[str, str]
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


def quality_document(run: Run) -> QualityDocument:
    """The document of a run as it is now."""
    now = run.snapshot()
    created, quality, whole = now.created, now.request.quality, whole_reading(now)
    assert quality is not None
    found: ReadingDifference | None = whole.difference if whole else None
    return QualityDocument(
        kind="quality",
        schema=2,
        run=created.id,
        created=created.created,
        status=now.status,
        message=now.message,
        model=created.request.model,
        model_label=created.model_label,
        model_note=created.model_note,
        machine=created.machine,
        versions=hardware.versions(),
        texts=readings(now),
        all=whole,
        cost=cost_of(found) if found else None,
        sentence=quality_sentence(now),
        kl_nats=found.kl_nats if found else None,
        top1_agreement=found.top1_agreement if found else None,
        first_divergence=found.first_divergence if found else None,
        perplexity_ratio=found.perplexity_ratio if found else None,
        asked=quality,
        arms=[_arm(now, quality, name) for name in now.arms],
    )


def _arm(run: Snapshot, quality: Quality, name: str) -> QualityArm:
    arm, planned, ledger = run.arms[name], run.planned(name), run.ledger(name)
    return QualityArm(
        name=name,
        state=arm.state,
        requested=planned.requested,
        planned=planned.planned,
        effective={row.finding.axis: row.finding.effective for row in ledger},
        evidence=ledger_rows(ledger),
        verdicts=[VerdictRow(v.level, v.axis, v.reason, v.source) for v in planned.verdicts],
        positions=[
            PositionsDocument(text.name, one.ids, one.nll_nats, one.top, one.kl_nats)
            for text, one in zip(quality.texts, arm.scores, strict=False)
        ],
        summary=run.summary(name),
    )
