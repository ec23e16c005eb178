"""Carries an ablation out: every arm once a round, in an order that favours none, and what each costs in quality."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from tokendyno.backend.ablation.bootstrap import mean_interval
from tokendyno.backend.ablation.journal import Cost, Journal, Trial
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.ablation.sweep import Point
from tokendyno.backend.config import ArmRequest, Request, reading_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import Verdict
from tokendyno.backend.executors.trial_process import Done
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.models import is_random
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.quality import Quality
from tokendyno.backend.runs.quality import finer_arm, whole_reading
from tokendyno.backend.runs.records import Created
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.quality import cost_of
from tokendyno.backend.views.start import start_of

DOUBTFUL = ("partial", "no_effect", "fallback", "failed")
"""Statuses of a row that is not as it was planned."""

T = TypeVar("T")

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
        arms = dict[tuple[str, str, str], str]()
        for arm, verdicts in self.verdicts.items():
            for verdict in verdicts:
                arms.setdefault((verdict.level, verdict.axis, verdict.reason), arm)
        return arms


def admit(bench: Bench, model: str, points: Sequence[Point]) -> Admitted:
    """Check every arm before any is run, each once."""
    admitted = Admitted()
    for name, point in {point.name: point for point in points}.items():
        checked = bench.check(Request(model, [ArmRequest("A", point.choices)], point.workload, point.traffic))["A"]
        admitted.planned[name], admitted.verdicts[name] = dict(checked.planned), list(checked.verdicts)
        if checked.blocked:
            admitted.refused[name] = " ".join(verdict.reason for verdict in checked.blocked)
    return admitted


@dataclass(frozen=True, slots=True)
class Task:
    """What the journal lacks: a trial of an arm, or, without a round, a reading of texts against the base. `what`: for
    the user."""

    arm: str
    round: int | None
    request: Request
    what: str


def trial_tasks(model: str, points: Sequence[Point], rounds: int, journal: Journal, course: str = "") -> list[Task]:
    """Every arm once a round. `points`: what can run, the base first; `course`: the id that each run names."""
    tasks = []
    for number in range(rounds):
        for point in order(points, number):
            if (point.name, number) not in journal.trials:
                arms = [ArmRequest("A", point.choices)]
                request = Request(model, arms, point.workload, point.traffic, trial=course)
                tasks.append(Task(point.name, number, request, f"round {number + 1} of {rounds}: {point.title}"))
    return tasks


def reading_tasks(
    model: str, points: Sequence[Point], quality: Quality, journal: Journal, course: str = ""
) -> list[Task]:
    """A comparison of every arm but the first with the first, on given texts."""
    tasks, (base, *rest) = [], {point.arm: point.choices for point in points}.values()
    for choices in rest:
        if (arm := arm_text(choices)) not in journal.costs:
            arms = [ArmRequest("A", base), ArmRequest("B", choices)]
            request = Request(model, arms, reading_of(quality), None, quality, course)
            tasks.append(Task(arm, None, request, f"quality: {titles_text(choices)}"))
    return tasks


def perform(
    bench: Bench, tasks: Sequence[Task], journal: Journal, follow: Follow, visitor: Visitor = LOCAL_USER
) -> None:
    """Run tasks one after the other. Raises Stopped where a run was cancelled, and TrialFailed where one failed."""
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
    """Put what a run came to into the journal. `node`: where it ran, "" for here; `spent_s`: what is charged for it;
    None: how long it took. Raises Stopped and TrialFailed."""
    if run.status == "cancelled":
        raise Stopped
    if run.status != "done":
        raise TrialFailed(f"{task.what}: {run.message}", run.bad_input)
    line = _cost(run, task.arm) if task.round is None else _trial(run, task.arm, task.round, node)
    journal.add(line if spent_s is None else msgspec.structs.replace(line, spent_s=spent_s))


def order(points: Sequence[T], number: int) -> list[T]:
    """The order of a round: every other one takes the one before it backwards, so that drift favours no arm, and each
    such pair of rounds begins with another arm."""
    first = number // 2 % len(points)
    turned = [*points[first:], *points[:first]]
    return turned[::-1] if number % 2 else turned


def _cost(run: Run, arm: str) -> Cost:
    snapshot = run.snapshot()
    reading = whole_reading(snapshot)
    assert reading is not None and reading.difference is not None
    difference, kl_nats = reading.difference, [nats for score in snapshot.arms["B"].scores for nats in score.kl_nats]
    return Cost(
        arm,
        difference.kl_nats,
        difference.top1_agreement,
        difference.perplexity_ratio,
        "" if is_random(snapshot.request.model) else cost_of(difference),
        mean_interval(kl_nats),
        finer_arm(snapshot) == "B",
        run.elapsed_s,
    )


def _trial(run: Run, arm: str, number: int, node: str) -> Trial:
    now = run.snapshot()
    series, summary = now.arms["A"], now.summaries["A"]
    start = start_of(series, True)
    trial = Trial(
        arm,
        number,
        series.latency_s,
        summary.ttft_s or 0.0,
        summary.peak_memory_bytes or 0,
        summary.kv_bytes,
        series.ids,
        {row.finding.axis: row.status for row in now.ledgers["A"] if row.status in DOUBTFUL},
        run.created.machine.get("uuid", ""),
        node,
        spent_s=run.elapsed_s,
        start_s=start.own_s if start is not None and start.before != "loaded" else None,
    )
    if run.request.traffic is None:
        return trial
    served = now.batch_summaries["A"]
    ttft_s, token_s = served.ttft.median_s or 0.0, served.token.median_s
    latency_s = [ttft_s] if token_s is None else [ttft_s, token_s]
    return msgspec.structs.replace(
        trial, latency_s=latency_s, ttft_s=ttft_s, useful_tokens_s=served.useful_tokens_s, ids=[]
    )
