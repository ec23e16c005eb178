"""A comparison over given texts as one document for programs (kind "quality", schema 3)."""

import msgspec

from tokendyno.backend.quality import Quality
from tokendyno.backend.runs.quality import ReadingDifference, TextReading, readings, whole_reading
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Summary
from tokendyno.backend.views.quality import Cost, cost_of, quality_sentence
from tokendyno.backend.views.schema import ArmHead, Part, RunHead, Unasked, arm_head, head


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


def quality_document(run: Run) -> QualityDocument:
    """The document of a run as it is now."""
    now = run.snapshot()
    quality, whole = now.request.quality, whole_reading(now)
    assert quality is not None
    found: ReadingDifference | None = whole.difference if whole else None
    return QualityDocument(
        **head(now),
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
        unasked=now.unasked or msgspec.UNSET,
    )


def _arm(run: Snapshot, quality: Quality, name: str) -> QualityArm:
    return QualityArm(
        **arm_head(run, name),
        positions=[
            PositionsDocument(text.name, one.ids, one.nll_nats, one.top, one.kl_nats)
            for text, one in zip(quality.texts, run.arms[name].scores, strict=False)
        ],
        summary=run.summary(name),
    )
