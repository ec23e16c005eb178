"""Many requests in sentences: which arm serves more, what made the difference, and whether the tokens agree."""

from collections.abc import Mapping

from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import Estimate, estimate
from tokendyno.backend.units import interval_text, seconds_text, three
from tokendyno.backend.views.verdict import ABOUT_SAME, VerdictText, less_or_more, unasked_sentence

ARMS = 2
GATHERS = ("eager", "sdpa", "sdpa-gqa", "sdpa-math", "auto")
"""Attention that reads pages without a block table."""


def batch_verdict(run: Snapshot) -> VerdictText:
    """The verdict on a run that has ended with all requests served; "" else."""
    if run.request.traffic is None or not all(arm.completed(0) for arm in run.arms.values()):
        return VerdictText()
    found = run.batch_summaries
    if len(found) != ARMS:
        name, one = next(iter(found.items()))
        return VerdictText(f"{name} serves {_rate(one)} useful tokens/s.")
    a, b = found.values()
    if not a.useful_tokens_s or not b.useful_tokens_s:
        return VerdictText()
    theirs, own = (run.useful_rates(name) for name in found)
    pairs = [own[n] / theirs[n] for n in own.keys() & theirs.keys() if theirs[n] > 0]
    ratio = estimate(pairs) or Estimate(b.useful_tokens_s / a.useful_tokens_s)
    change, rates = ratio.value - 1, f"{_rate(b)} against {_rate(a)}"
    if ratio.interval:
        rates += f"; {interval_text(lambda share: (three(share), ''), *ratio)} times as many"
    if run.equal_arms:
        said = f"The arms are equal, so any difference is noise: B serves {_rate(b)} useful tokens/s, A {_rate(a)}"
    elif ratio.interval and ratio.interval[0] <= 1 <= ratio.interval[1]:
        said = f"No difference found in useful tokens/s ({rates})"
    elif abs(change) < ABOUT_SAME:
        said = f"B serves as many useful tokens/s as A, within {ABOUT_SAME:.0%} ({rates})"
    elif change >= 1:
        said = f"B serves {less_or_more(change)} the useful tokens/s of A ({rates})"
    else:
        said = f"B serves {less_or_more(change).replace('less', 'fewer')} useful tokens/s than A ({rates})"
    basis = f"{len(pairs)} runs of each arm." if len(pairs) > 1 else "One run of each arm."
    return VerdictText(f"{said}; {same_sentence(run)}.", basis, unasked=unasked_sentence(run))


def same_sentence(run: Snapshot) -> str:
    """How many requests got the same tokens from both arms; "" without two arms that served any."""
    found = run.differing_requests
    if found is None:
        return ""
    same = run.same_tokens() or 0
    if same == len(found):
        return f"all {same:,} requests got the same tokens"
    return f"{same:,} of {len(found):,} requests got the same tokens"


def differing_at(run: Snapshot) -> dict[int, int]:
    """Requests whose tokens differ between the arms, with the first token that does."""
    return {request: at for request, at in (run.differing_requests or {}).items() if at is not None}


def compared(run: Snapshot) -> int:
    """Requests that both arms served."""
    return len(run.differing_requests or {})


def why_sentence(run: Snapshot) -> str:
    """What made the difference: steps, the time of each, and the work of slots; all measured. "" before both ended."""
    if run.request.traffic is None or len(run.arms) != ARMS or not all(arm.completed(0) for arm in run.arms.values()):
        return ""
    a, b = run.batch_summaries.values()
    if not a.step_mean_s or not b.step_mean_s or not a.busy_share or not b.busy_share:
        return ""
    return f"Why: A took {_steps(a)}, B {_steps(b)}.{_lesson(run, a, b)}"


def _lesson(run: Snapshot, a: BatchSummary, b: BatchSummary) -> str:
    """What the steps of static and continuous batching teach where one arm is of each kind."""
    planned: list[Mapping[str, str]] = [run.planned(name).planned for name in run.arms]
    kinds = [choices.get("batching", "off") for choices in planned]
    if sorted(kinds) != ["continuous", "static"]:
        return ""
    paged, static = (a, b) if kinds[0] == "continuous" else (b, a)
    attention = planned[kinds.index("continuous")].get("attention", "")
    assert paged.step_mean_s and static.step_mean_s and paged.useful_tokens_s and static.useful_tokens_s
    slower, fewer = paged.step_mean_s / static.step_mean_s, static.steps / paged.steps
    gathers = "its attention copies the pages of all requests together in every layer of every step"
    if paged.useful_tokens_s < static.useful_tokens_s:
        cause = f": {gathers}" if attention in GATHERS else ""
        return (
            f" Continuous batching keeps slots filled, so it needs fewer steps ({three(1 / fewer)}x), but each takes "
            f"{three(slower)}x as long, which costs more than it saves{cause}."
        )
    return f" Continuous batching keeps slots filled: {three(1 / fewer)}x the steps, each at {three(slower)}x the time."


def _steps(s: BatchSummary) -> str:
    mean = " ".join(seconds_text(s.step_mean_s or 0.0))
    return f"{s.steps:,} steps of {mean} with {three(100 * (s.busy_share or 0))}% of its slots at useful work"


def _rate(s: BatchSummary) -> str:
    return three(s.useful_tokens_s or 0.0)
