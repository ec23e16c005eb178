"""Advice while it is being worked out: one step after the other, each kept in the journal."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from tokendyno.backend.ablation.advise.earlier import earlier_pairs
from tokendyno.backend.ablation.advise.result import AdviceDocument, advice_document
from tokendyno.backend.ablation.advise.space import Builder
from tokendyno.backend.ablation.advise.steps import Step, Steps
from tokendyno.backend.ablation.advise.wishes import Limits, Wish
from tokendyno.backend.ablation.journal import Confirmed, Heading, Journal, Left
from tokendyno.backend.ablation.trials import Follow, Stopped, Task, keep
from tokendyno.backend.config import MOST_PAIRS, UNTIL_S, ArmRequest, Request, Workload, reading_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.run import Run
from tokendyno.backend.units import seconds_text

START_SHARE = 0.2
"""Of the budget: what takes longer than this to its first token is not tried."""

CONFIRM_SHARE = 0.15
"""Of the budget: what the pairs of runs at the end may take."""

LEAST_BUDGET_S = 10.0


class Advice:
    """One question about a model, and what is known of its answer.

    steps   what comes next, and where everything stands
    """

    def __init__(
        self,
        bench: Bench,
        model: str,
        work: Workload,
        wish: Wish,
        limits: Limits,
        journal: Journal,
        texts: Quality,
        trial: str = "",
    ) -> None:
        """InputError where the model cannot run here at all, or nothing keeps to the limits."""
        self.model, self.wish, self.limits, self.work = model, wish, limits, replace(work, repeats=1, ignore_eos=True)
        self._bench, self._journal, self._texts, self._trial = bench, journal, texts, trial
        builder = Builder(bench, model, self.work, wish, limits)
        self.facts, self.machine = builder.facts, builder.machine
        random = model.startswith("random:")
        reads = not random and self.facts.kind == "decoder"
        self.steps = Steps(builder, journal, wish, limits, reads, earlier_pairs(builder, bench.runs))

    def perform(self, budget_s: float, follow: Follow, visitor: Visitor = LOCAL_USER) -> None:
        """Carry steps out until the answer is known, or the budget is spent. Raises Stopped where a run was cancelled,
        and InputError where something cannot be kept."""
        while (step := self.steps.next(budget_s)) is not None:
            self._carry_out(step, budget_s, follow, visitor)

    def document(self, budget_s: float) -> AdviceDocument:
        """What is known so far."""
        paths = self._bench.local_paths
        return advice_document(
            self.steps, self.model, self.work, self.wish, self.limits, budget_s, self._bench.runs, paths
        )

    def _carry_out(self, step: Step, budget_s: float, follow: Follow, visitor: Visitor) -> None:
        request = self._request(step, budget_s)
        fresh = step.kind == "confirm" or self.wish == "quick-start"
        try:
            run_id = self._bench.submit(request, visitor, fresh=fresh)
        except InputError as error:
            self._give_up(step, str(error), True, 0.0)
            return
        run = self._bench.runs.get(run_id)
        assert run is not None
        what = self._said(step)
        allowed_s = START_SHARE * budget_s if step.arm.name != self.steps.space.base.name else budget_s
        late = _TooLate(self._bench, run, visitor, allowed_s)
        follow(run, what)
        late.end()
        if run.status == "cancelled" and late.stopped:
            allowed = " ".join(seconds_text(allowed_s))
            self._give_up(step, f"its start takes more than {allowed} of the budget", False, run.elapsed_s)
        elif run.status == "failed":
            why = run.message.partition(" Logged before that")[0].partition(" Run again")[0]
            self._give_up(step, why, True, run.elapsed_s)
        elif run.status == "cancelled":
            raise Stopped
        elif step.kind == "confirm":
            self._journal.add(Confirmed(step.arm.name, run.id, run.elapsed_s))
        else:
            number = step.round if step.kind == "trial" else None
            keep(Task(step.arm.name, number, request, what), run, self._journal)

    def _give_up(self, step: Step, why: str, tried: bool, spent_s: float) -> None:
        if step.arm.name == self.steps.space.base.name:
            raise InputError(f"The model as it comes cannot be measured, so that nothing can be advised: {why}")
        self._journal.add(Left(step.arm.name, why, tried, spent_s))

    def _request(self, step: Step, budget_s: float) -> Request:
        arm, base = dict(step.arm.choices), dict(self.steps.space.base.choices)
        both = [ArmRequest("A", base), ArmRequest("B", arm)]
        if step.kind == "reading":
            return Request(self.model, both, reading_of(self._texts), None, self._texts, self._trial)
        if step.kind == "confirm":
            work, until_s = replace(self.work, repeats=MOST_PAIRS), min(UNTIL_S, CONFIRM_SHARE * budget_s)
            reading = [*self._texts.texts] if step.arm.recipe and not self.model.startswith("random:") else None
            return Request(self.model, both, work, trial=self._trial, until_s=until_s, reading=reading)
        return Request(self.model, [ArmRequest("A", arm)], self.work, trial=self._trial)

    def _said(self, step: Step) -> str:
        match step.kind:
            case "reading":
                return f"quality: {step.arm.title}"
            case "confirm":
                return f"once more, in fresh workers beside the model as it comes: {step.arm.title}"
            case _ if step.round:
                return f"comparing, round {step.round + 1}: {step.arm.title}"
            case _:
                return f"arm {len(self.steps.standing().values) + 1}: {step.arm.title}"


class _TooLate:
    """Stops a run that has no token after some seconds. `stopped`: it has."""

    def __init__(self, bench: Bench, run: Run, visitor: Visitor, after_s: float) -> None:
        self._bench, self._run, self._visitor, self.stopped = bench, run, visitor, False
        self._timer = threading.Timer(after_s, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        if not self._run.ended and not any(arm.latency_s for arm in self._run.arms.values()):
            self.stopped = self._bench.cancel(self._run.id, self._visitor)

    def end(self) -> None:
        """The run has ended."""
        self._timer.cancel()


def heading_of_advice(
    model: str,
    work: Workload,
    wish: Wish,
    limits: Limits,
    own: Sequence[QualityText] = (),
    owner: str = "",
    budget_s: float = 0.0,
) -> Heading:
    """By which a journal knows its question again. `own`: texts in place of those of tokendyno."""
    read = [("text", one.text) for one in own]
    changes = [("for", wish), *limits.settings(), *read]
    return Heading(model, {}, changes, ["advise"], replace(work, repeats=1), owner=owner, budget_s=budget_s)
