"""Carries an ablation out: every arm once a round, in an order that favours none, and what each costs in quality."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tokendyno.backend.ablation.bootstrap import mean_interval
from tokendyno.backend.ablation.journal import Cost, Journal, Trial
from tokendyno.backend.ablation.steps import Step
from tokendyno.backend.config import ArmRequest, Request, Workload, reading_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.executors.trial_process import Done
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.quality import Quality
from tokendyno.backend.runs.quality import finer_arm, whole_reading
from tokendyno.backend.runs.records import Created
from tokendyno.backend.runs.run import Run
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.views.quality import cost_of, is_random
from tokendyno.backend.views.start import start_of

DOUBTFUL = ("partial", "no_effect", "fallback", "failed")
"""Statuses of a row that is not as it was planned."""

Follow = Callable[[Run, str], None]
"""Called once for each trial, with its run and what it is; returns when the run has ended."""


class Stopped(Exception):
    """The user stopped the ablation; finished trials are in the journal."""


class TrialFailed(InputError):
    """A run failed; finished trials are in the journal. Whoever shows it says how to go on. `bad_input`: what was asked
    for could not be run."""

    def __init__(self, sentence: str, bad_input: bool) -> None:
        super().__init__(sentence)
        self.bad_input = bad_input


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

    @property
    def said(self) -> dict[tuple[str, str, str], str]:
        """Level, axis and reason of every verdict, each once, with the first arm of which it was said."""
        found = dict[tuple[str, str, str], str]()
        for arm, verdicts in self.verdicts.items():
            for verdict in verdicts:
                found.setdefault((verdict.level, verdict.axis, verdict.reason), arm)
        return found


def admit(bench: Bench, model: str, steps: Sequence[Step], work: Workload) -> Admitted:
    """Check every arm before any is run. InputError if the base is refused, or every other arm."""
    found, base = Admitted(), steps[0].arm
    for step in steps:
        if step.arm in found.planned:
            continue
        checked = bench.check(Request(model, [ArmRequest("A", step.choices)], work))["A"]
        found.planned[step.arm], found.verdicts[step.arm] = dict(checked.planned), list(checked.verdicts)
        if checked.blocked:
            found.refused[step.arm] = " ".join(verdict.reason for verdict in checked.blocked)
            if step.arm == base:
                raise InputError(f"The base cannot run: {checked.refusal()}")
    if all(step.arm in found.refused or step.arm == base for step in steps):
        reasons = " ".join(f"{arm}: {reason}" for (level, _, reason), arm in found.said.items() if level == "blocked")
        raise InputError(f"No change can run here. {reasons}")
    return found


@dataclass(frozen=True, slots=True)
class Task:
    """What the journal lacks: a trial of an arm, or, without a round, a reading of texts against the base. `what`: for
    the user."""

    arm: str
    round: int | None
    request: Request
    what: str


def trial_tasks(
    model: str,
    arms: Sequence[str],
    choices: Mapping[str, dict[str, str]],
    work: Workload,
    rounds: int,
    journal: Journal,
    ablation: str = "",
    works: Mapping[str, Workload] | None = None,
    titles: Mapping[str, str] | None = None,
    traffics: Mapping[str, Traffic | None] | None = None,
) -> list[Task]:
    """Every arm once a round. `arms`: what can run, the base first; `ablation`: its id, which each run names; `works`,
    `traffics`: workloads and requests of arms that have their own; `titles`: what the user is told of arms that differ
    in more than their choices."""
    return [
        Task(
            arm,
            number,
            Request(
                model,
                [ArmRequest("A", choices[arm])],
                (works or {}).get(arm, work),
                (traffics or {}).get(arm),
                trial=ablation,
            ),
            f"round {number + 1} of {rounds}: {(titles or {}).get(arm) or titles_text(choices[arm])}",
        )
        for number in range(rounds)
        for arm in order(arms, number)
        if (arm, number) not in journal.trials
    ]


def reading_tasks(
    model: str,
    arms: Sequence[str],
    choices: Mapping[str, dict[str, str]],
    quality: Quality,
    journal: Journal,
    ablation: str = "",
) -> list[Task]:
    """Every arm but the first is compared with it on given texts."""
    base = ArmRequest("A", choices[arms[0]])
    return [
        Task(
            arm,
            None,
            Request(model, [base, ArmRequest("B", choices[arm])], reading_of(quality), None, quality, ablation),
            f"quality: {titles_text(choices[arm])}",
        )
        for arm in arms[1:]
        if arm not in journal.costs
    ]


def perform(
    bench: Bench, tasks: Sequence[Task], journal: Journal, follow: Follow, visitor: Visitor = LOCAL_USER
) -> None:
    """Run one after the other. Raises Stopped where a run was cancelled, and TrialFailed where one failed."""
    for task in tasks:
        run = bench.runs.get(bench.submit(task.request, visitor))
        assert run is not None
        follow(run, task.what)
        keep(task, run, journal)


def run_of(bench: Bench, done: Done) -> Run:
    """A run that was carried out elsewhere, as one of this bench."""
    first, *rest = done.records
    assert isinstance(first, Created)
    run = bench.runs.create(first)
    for record in rest:
        bench.runs.append(run.id, record)
    return run


def keep(task: Task, run: Run, journal: Journal, node: str = "", spent_s: float | None = None) -> None:
    """Note what a run came to. `node`: where it ran, "" for here; `spent_s`: what is charged for it, else how long it
    took. Raises Stopped and TrialFailed."""
    if run.status == "cancelled":
        raise Stopped
    if run.status != "done":
        raise TrialFailed(f"{task.what}: {run.message}", run.bad_input)
    found = _cost(run, task.arm) if task.round is None else _trial(run, task.arm, task.round, node)
    journal.add(found if spent_s is None else msgspec.structs.replace(found, spent_s=spent_s))


def order(arms: Sequence[str], number: int) -> list[str]:
    """Every other round takes the one before it backwards, so that drift favours none; pairs begin with another arm."""
    first = number // 2 % len(arms)
    turned = [*arms[first:], *arms[:first]]
    return turned[::-1] if number % 2 else turned


def _cost(run: Run, arm: str) -> Cost:
    snapshot = run.snapshot()
    found = whole_reading(snapshot)
    assert found is not None and found.difference is not None
    one, apart = found.difference, [nats for score in snapshot.arms["B"].scores for nats in score.kl_nats]
    return Cost(
        arm,
        one.kl_nats,
        one.top1_agreement,
        one.perplexity_ratio,
        "" if is_random(snapshot) else cost_of(one),
        mean_interval(apart),
        finer_arm(snapshot) == "B",
        run.elapsed_s,
    )


def _trial(run: Run, arm: str, number: int, node: str) -> Trial:
    series, summary = run.arms["A"], run.summary("A")
    memory, ttft_s = summary.peak_memory_bytes or 0, summary.ttft_s or 0.0
    doubtful: dict[str, str] = {row.finding.axis: row.status for row in run.ledger("A") if row.status in DOUBTFUL}
    gpu, began = run.created.machine.get("uuid", ""), start_of(series, True)
    start_s = began.total_s if began is not None and began.before != "loaded" else None
    found = Trial(
        arm,
        number,
        series.latency_s,
        ttft_s,
        memory,
        summary.kv_bytes,
        series.ids,
        doubtful,
        gpu,
        node,
        spent_s=run.elapsed_s,
        start_s=start_s,
    )
    if run.request.traffic is None:
        return found
    served = run.snapshot().batch_summaries["A"]
    first_s, token_s = served.ttft.median_s or 0.0, served.token.median_s
    times_s = [first_s] if token_s is None else [first_s, token_s]
    return msgspec.structs.replace(
        found, latency_s=times_s, ttft_s=first_s, useful_tokens_s=served.useful_tokens_s, ids=[]
    )
