"""One compile for each length of a static cache: when batches of a length ran, and when its step was compiled."""

from collections.abc import Sequence

import msgspec

from tokendyno.backend.messages import PREFILL
from tokendyno.backend.plan import ShapesKind
from tokendyno.backend.predict.lengths import cache_places
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.traffic import TrafficRequest
from tokendyno.backend.units import seconds_text

MOST = 16
"""Lengths that are shown, the shortest first: unpadded prompts have one each."""


class Bucket(msgspec.Struct, frozen=True):
    """A length that batches were padded to.

    slots     of the static cache, whose length a compiled step is for
    batches   seconds since the run began at which each batch of it began and ended
    compiled  the same of each time that something was compiled for it during the run
    said      in words: how often it was used, and when it was compiled
    """

    slots: int
    batches: list[tuple[float, float]]
    compiled: list[tuple[float, float]]
    said: str


def buckets(arm: ArmSeries, shapes: ShapesKind, requests: Sequence[TrafficRequest]) -> list[Bucket]:
    """Of a compiled arm's static batches so far, by length. `requests`: as they were asked for."""
    series, found = arm.batch, dict[int, list[tuple[int, int]]]()  # slots -> first step of each batch and the one after
    ends = series.part_ends
    parts = [range(ends[i - 1] if i else 0, ends[i]) for i in range(len(ends))]
    first = [i for i, part in enumerate(parts) if any(series.kind[one] == PREFILL for one in part)]
    for begin, end in zip(first, [*first[1:], len(parts)], strict=True):
        rows = {series.request[one] for one in parts[begin] if series.kind[one] == PREFILL}
        longest = max(series.row(one).prompt_tokens for one in rows)
        slots = cache_places(shapes, longest, max(requests[one].max_new_tokens for one in rows))
        found.setdefault(slots, []).append((begin, end))
    shown = [_bucket(arm, slots, found[slots], slots == next(iter(found))) for slots in sorted(found)[:MOST]]
    if len(found) > MOST:
        more = f"{shown[-1].said}; {len(found) - MOST} longer ones are not shown"
        shown[-1] = msgspec.structs.replace(shown[-1], said=more)
    return shown


def _bucket(arm: ArmSeries, slots: int, batches: Sequence[tuple[int, int]], warm: bool) -> Bucket:
    """`warm`: its first batch is the run's, in whose shapes was warmed up."""
    inside = [one for one in arm.annotations if any(begin <= one.token < end for begin, end in batches)]
    marks = [one for one in inside if one.kind in ("compile", "recompile")]
    refused = any(one.kind == "graph_skip" and one.text.startswith("not compiled") for one in inside)
    steps = sum(end - begin - 1 for begin, end in batches)
    told = ["compiled in the warm-up"] * warm
    if marks:
        took = " ".join(seconds_text(sum(one.seconds for one in marks)))
        told.append(f"compiled{' again' * warm} {' '.join(seconds_text(marks[0].t_s))} into the run, in {took}")
    said = f"{len(batches)} batch{'es' * (len(batches) != 1)}, {steps:,} steps after the prompt; "
    said += ", ".join(told) or "nothing compiled for it in the run"
    if refused:
        said += "; then torch gave up compiling again, and it ran uncompiled"
    return Bucket(
        slots,
        [(arm.batch.begin_s[begin], arm.batch.end_s[end - 1]) for begin, end in batches],
        [(one.t_s, one.t_s + one.seconds) for one in marks],
        said,
    )
