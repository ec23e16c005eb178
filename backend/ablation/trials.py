"""Carries an ablation out: every arm once a round, in an order that favours none, and what each costs in quality."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from backend.ablation.bootstrap import mean_interval
from backend.ablation.journal import Cost, Journal, Trial
from backend.ablation.steps import Step
from backend.config import ArmRequest, Request, Workload, reading_of
from backend.engine.bench import Bench
from backend.errors import InputError
from backend.evidence import Verdict
from backend.hosting.visitor import LOCAL_USER, Visitor
from backend.quality import Quality
from backend.runs.quality import whole_reading
from backend.runs.run import Run
from backend.views.quality import cost_of

DOUBTFUL = ("partial", "no_effect", "fallback", "failed")
"""Statuses of a row that is not as it was planned."""

Follow = Callable[[Run, str], None]
"""Called once for each trial, with its run and what it is; returns when the run has ended."""


class Stopped(Exception):
    """The user stopped the ablation; finished trials are in the journal."""


class TrialFailed(InputError):
    """A run failed; finished trials are in the journal. Whoever shows it says how to go on."""


@dataclass(slots=True)
class Admitted:
    """Arms after the rules.

    planned   arm -> choice of every axis, as it will be done
    verdicts  arm -> what the rules said
    refused   arm -> why it cannot run
    """

    planned: dict[str, dict[str, str]] = field(default_factory=dict)
    verdicts: dict[str, list[Verdict]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)


def admit(bench: Bench, model: str, steps: Sequence[Step], work: Workload) -> Admitted:
    """Check every arm before any is run. InputError if the base is refused, or every other arm."""
    found = Admitted()
    for step in steps:
        if step.arm in found.planned:
            continue
        checked = bench.check(Request(model, [ArmRequest("A", step.choices)], work))["A"]
        found.planned[step.arm], found.verdicts[step.arm] = dict(checked.planned), list(checked.verdicts)
        if checked.blocked:
            found.refused[step.arm] = " ".join(verdict.reason for verdict in checked.blocked)
    base = steps[0].arm
    if base in found.refused:
        raise InputError(f"The base cannot run: {found.refused[base]}")
    if all(step.arm in found.refused or step.arm == base for step in steps):
        reasons = "; ".join(f"{arm}: {reason}" for arm, reason in found.refused.items())
        raise InputError(f"No change can run here. {reasons}")
    return found


def perform(
    bench: Bench, model: str, arms: Sequence[str], choices: dict[str, dict[str, str]], work: Workload, rounds: int,
    journal: Journal, follow: Follow, visitor: Visitor = LOCAL_USER, ablation: str = "",
    works: Mapping[str, Workload] | None = None,
) -> None:  # fmt: skip
    """Run what the journal lacks. `arms`: what can run, the base first; `ablation`: its id, which each run names;
    `works`: workloads of arms that have one of their own. Raises Stopped where a run was cancelled, and
    TrialFailed where one failed."""
    for number in range(rounds):
        for arm in order(arms, number):
            if (arm, number) in journal.trials:
                continue
            own = (works or {}).get(arm, work)
            request = Request(model, [ArmRequest("A", choices[arm])], own, trial=ablation)
            run = _run(bench, request, visitor, follow, f"round {number + 1} of {rounds}: {arm or 'defaults'}")
            journal.add(_trial(run, arm, number))


def order(arms: Sequence[str], number: int) -> list[str]:
    """Every other round takes the one before it backwards, so that drift favours none; pairs begin with another arm."""
    first = number // 2 % len(arms)
    turned = [*arms[first:], *arms[:first]]
    return turned[::-1] if number % 2 else turned


def read_texts(
    bench: Bench, model: str, arms: Sequence[str], choices: dict[str, dict[str, str]], quality: Quality,
    journal: Journal, follow: Follow, visitor: Visitor = LOCAL_USER, ablation: str = "",
) -> None:  # fmt: skip
    """Compare every arm with the base on given texts, but for those that the journal has."""
    base = arms[0]
    for arm in arms[1:]:
        if arm in journal.costs:
            continue
        both = [ArmRequest("A", choices[base]), ArmRequest("B", choices[arm])]
        request = Request(model, both, reading_of(quality), None, quality, ablation)
        run = _run(bench, request, visitor, follow, f"quality: {arm}").snapshot()
        found = whole_reading(run)
        assert found is not None and found.difference is not None
        one, apart = found.difference, [nats for score in run.arms["B"].scores for nats in score.kl_nats]
        cost = Cost(arm, one.kl_nats, one.top1_agreement, one.perplexity_ratio, cost_of(one), mean_interval(apart))
        journal.add(cost)


def _run(bench: Bench, request: Request, visitor: Visitor, follow: Follow, what: str) -> Run:
    run = bench.runs.get(bench.submit(request, visitor))
    assert run is not None
    follow(run, what)
    if run.status == "cancelled":
        raise Stopped
    if run.status != "done":
        raise TrialFailed(f"{what}: {run.message}")
    return run


def _trial(run: Run, arm: str, number: int) -> Trial:
    series, summary = run.arms["A"], run.summary("A")
    memory, ttft_s = summary.peak_memory_bytes or 0, summary.ttft_s or 0.0
    doubtful: dict[str, str] = {row.finding.axis: row.status for row in run.ledger("A") if row.status in DOUBTFUL}
    return Trial(arm, number, series.latency_s, ttft_s, memory, summary.kv_bytes, series.ids, doubtful)
