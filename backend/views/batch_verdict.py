"""Many requests in sentences: which arm serves more, what made the difference, and whether the tokens agree."""

from collections.abc import Mapping

from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.units import seconds_text, three, times
from tokendyno.backend.views.arm_names import arm_names
from tokendyno.backend.views.verdict import (
    ABOUT_SAME,
    USEFUL,
    VerdictText,
    basis,
    headline,
    less_or_more,
    range_text,
    unasked_sentence,
)

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
        return VerdictText(f"{name} serves {_rate(one)} {USEFUL}.")
    a, b = found.values()
    compared = run.comparison()
    if compared is None:
        return VerdictText()
    names, change = arm_names(run), compared.ratio - 1
    if run.equal_arms:
        known = compared.low is not None and compared.high is not None
        ratio = range_text(compared.low, compared.high) if known else f"{compared.ratio:.2f}"  # type: ignore[arg-type]
        said = f"The arms are equal, so any difference is noise: B serves {ratio} times A's {USEFUL}"
    elif compared.outcome != "unknown":
        said = headline(compared, names, serves=True).text
    elif abs(change) < ABOUT_SAME:
        said = f"One pair of runs: {names['B']} served as many {USEFUL} as {names['A']}, within {ABOUT_SAME:.0%}"
    elif change >= 1:
        said = f"One pair of runs: {names['B']} served {less_or_more(change)} the {USEFUL} of {names['A']}"
    else:
        fewer_or_more = less_or_more(change).replace("less", "fewer")
        said = f"One pair of runs: {names['B']} served {fewer_or_more} {USEFUL} than {names['A']}"
    sentence = f"{said}, {_rate(b)} against {_rate(a)}; {same_sentence(run)}."
    return VerdictText(sentence, basis(compared, USEFUL), unasked=unasked_sentence(run))


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
            f" Continuous batching keeps slots filled, so it needs fewer steps ({times(1 / fewer)}), but each takes "
            f"{times(slower)} as long, which costs more than it saves{cause}."
        )
    return f" Continuous batching keeps slots filled: {times(1 / fewer)} the steps, each at {times(slower)} the time."


def _steps(s: BatchSummary) -> str:
    mean = " ".join(seconds_text(s.step_mean_s or 0.0))
    return f"{s.steps:,} steps of {mean} with {three(100 * (s.busy_share or 0))}% of its slots at useful work"


def _rate(s: BatchSummary) -> str:
    return three(s.useful_tokens_s or 0.0)
