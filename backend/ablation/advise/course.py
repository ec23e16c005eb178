"""Advice while it is being worked out: one step after the other, each kept in the journal."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from tokendyno.backend.ablation.advise.predicted import recorded_pairs
from tokendyno.backend.ablation.advise.result import AdviceDocument, advice_document
from tokendyno.backend.ablation.advise.space import Builder
from tokendyno.backend.ablation.advise.steps import Step, Steps
from tokendyno.backend.ablation.advise.wishes import Limits, Question, Wish
from tokendyno.backend.ablation.course import POSITIONS
from tokendyno.backend.ablation.journal import Confirmed, Heading, Journal, Left
from tokendyno.backend.ablation.places import Place, SideBySide, Unit
from tokendyno.backend.ablation.trials import Follow, Stopped, Task, TrialFailed, keep, run_of
from tokendyno.backend.config import MOST_PAIRS, UNTIL_S, ArmRequest, Request, reading_of
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.errors import InputError
from tokendyno.backend.executors.trial_process import Done, TrialTask
from tokendyno.backend.hosting.visitor import LOCAL_USER, Visitor
from tokendyno.backend.optimizations import all_axes
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.run import Run
from tokendyno.backend.traffic import Traffic
from tokendyno.backend.units import seconds_text

START_SHARE = 0.2
"""Of the budget: an arm that takes longer than this to start is given up."""

LEAST_PAIRS_S = 1.0
"""Least time for the pairs of runs at the end, however little of the budget is left."""


class Advice:
    """One question about a model, and what is known of its answer. `steps`: what comes next, and where everything
    stands."""

    def __init__(
        self,
        bench: Bench,
        question: Question,
        journal: Journal,
        texts: Quality,
        trial: str = "",
    ) -> None:
        """InputError where the model cannot run here at all, or nothing keeps to the limits."""
        self.question = msgspec.structs.replace(question, work=replace(question.work, repeats=1, ignore_eos=True))
        self._bench, self._journal, self._texts, self._trial = bench, journal, texts, trial
        self._lock, self._running = threading.RLock(), False  # a page looks while its thread goes on
        builder = Builder(bench, self.question)
        reads = not builder.facts.random and builder.facts.kind == "decoder"
        self.steps = Steps(builder, journal, question.wish, question.limits, reads, recorded_pairs(builder, bench.runs))

    def perform(self, budget_s: float, follow: Follow, visitor: Visitor = LOCAL_USER) -> None:
        """Carry steps out until the answer is known, or the budget is spent. Raises Stopped where a run was cancelled,
        and InputError where something cannot be kept."""
        with self._marked_running():
            while units := self._units(budget_s):
                self._carry_out(units[0][0], budget_s, follow, visitor)

    def perform_in(self, places: Sequence[Place], job: TrialTask, budget_s: float, say: Callable[[str], None]) -> None:
        """The same in several places at once; an arm that starts too slowly is not stopped there. `job`: what all tasks
        have in common."""
        self.steps.places, last_s = len(places), dict[str, float]()

        def finished(step: Step, done: Done, place: Place) -> None:
            run = run_of(self._bench, done)
            say(f"{self._label(step)}: {run.status} ({place.name}, {done.node})")
            before_s, last_s[place.name] = last_s.get(place.name, begin_s), time.monotonic()
            self._record(step, run, (last_s[place.name] - before_s) / len(places), done.node)

        course = SideBySide[Step](places, job, finished, say)
        with self._marked_running():
            while units := self._units(budget_s):
                begin_s = time.monotonic()
                last_s.clear()
                trials = [
                    [(step, request) for step in unit if (request := self._admitted(step, budget_s)) is not None]
                    for unit in units
                ]
                course.perform([Unit(unit) for unit in trials if unit])

    @contextlib.contextmanager
    def _marked_running(self) -> Iterator[None]:
        self._running = True
        try:
            yield
        finally:
            self._running = False

    def _units(self, budget_s: float) -> list[list[Step]]:
        with self._lock:
            return self.steps.units(budget_s)

    def ended(self, budget_s: float) -> bool:
        return not self._running and not self._units(budget_s)

    def document(self, budget_s: float) -> AdviceDocument:
        paths, ended = self._bench.local_paths, self.ended(budget_s)
        names = ", ".join(dict.fromkeys(text.name.partition(", part ")[0] for text in self._texts.texts))
        with self._lock:
            return advice_document(self.steps, self.question, budget_s, ended, self._bench.runs, names, paths)

    def _admitted(self, step: Step, budget_s: float) -> Request | None:
        """The request of a step; None where it cannot be run: its arm is given up then."""
        request = self._request(step, budget_s)
        if step.kind == "reading" and self.steps.durations.reading_s > budget_s - self.steps.spent_s:
            self._give_up(step, "reading its quality takes more than is left of the budget", False, 0.0)
            return None
        try:
            self._bench.admitted(request)
        except InputError as error:
            self._give_up(step, str(error), True, 0.0)
            return None
        return request

    def _carry_out(self, step: Step, budget_s: float, follow: Follow, visitor: Visitor) -> None:
        if (request := self._admitted(step, budget_s)) is None:
            return
        fresh = step.kind == "confirm" or self.question.wish == "quick-start"
        run = self._bench.runs.get(self._bench.submit(request, visitor, fresh=fresh))
        assert run is not None
        allowed_s = budget_s - self.steps.spent_s if step.kind == "reading" else budget_s
        if step.kind == "trial" and step.arm.name != self.steps.space.base.name:
            allowed_s = START_SHARE * budget_s
        too_late = threading.Event()

        def stop() -> None:
            """Cancel the run if it is still starting."""
            starts = not run.ended and not any("run" in arm.phases for arm in run.arms.values())
            if starts and self._bench.cancel(run.id, visitor):
                too_late.set()

        timer = threading.Timer(allowed_s, stop)
        timer.daemon = True
        timer.start()
        follow(run, self._label(step))
        timer.cancel()
        timer.join()
        if run.status == "cancelled" and too_late.is_set():
            allowed, what = " ".join(seconds_text(allowed_s)), "reading" if step.kind == "reading" else "start"
            self._give_up(step, f"its {what} takes more than {allowed} of the budget", False, run.elapsed_s)
        else:
            self._record(step, run, run.elapsed_s)

    def _record(self, step: Step, run: Run, spent_s: float, node: str = "") -> None:
        if run.status == "failed":
            why = run.message.partition(" Logged before that")[0].partition(" Run again")[0]
            self._give_up(step, why, True, spent_s, run.bad_input)
        elif run.status == "cancelled":
            raise Stopped
        elif step.kind == "confirm":
            with self._lock:
                self._journal.add(Confirmed(step.arm.name, run.id, spent_s))
        else:
            number = step.round if step.kind == "trial" else None
            with self._lock:
                keep(Task(step.arm.name, number, run.request, self._label(step)), run, self._journal, node, spent_s)

    def _give_up(self, step: Step, why: str, tried: bool, spent_s: float, bad_input: bool = True) -> None:
        if step.arm.name == self.steps.space.base.name:
            sentence = f"The model as it comes cannot be measured, so that nothing can be advised: {why}"
            raise InputError(sentence) if bad_input else TrialFailed(sentence, bad_input)
        with self._lock:
            self._journal.add(Left(step.arm.name, why, tried, spent_s))

    def _request(self, step: Step, budget_s: float) -> Request:
        question, arm, base = self.question, dict(step.arm.choices), dict(self.steps.space.base.choices)
        if step.kind == "reading":
            arms = [ArmRequest("A", _of_prompts(base)), ArmRequest("B", _of_prompts(arm))]
            return Request(question.model, arms, reading_of(self._texts), None, self._texts, self._trial)
        if step.kind == "confirm":
            arms = [ArmRequest("A", base), ArmRequest("B", arm)]
            work, left_s = replace(question.work, repeats=MOST_PAIRS), budget_s - self.steps.spent_s
            pairs_s = left_s - self.steps.durations.confirm_s(step.arm, self.steps.places)
            until_s = min(UNTIL_S, max(LEAST_PAIRS_S, pairs_s))  # without a reading: texts were read
            return Request(question.model, arms, work, question.traffic, trial=self._trial, until_s=until_s)
        return Request(question.model, [ArmRequest("A", arm)], question.work, question.traffic, trial=self._trial)

    def _label(self, step: Step) -> str:
        match step.kind:
            case "reading":
                return f"quality: {step.arm.title}"
            case "confirm":
                return f"once more, in fresh workers beside the model as it comes: {step.arm.title}"
            case _ if step.round:
                return f"comparing, round {step.round + 1}: {step.arm.title}"
            case _:
                return f"arm {len({name for name, _ in self._journal.trials}) + 1}: {step.arm.title}"


def _of_prompts(choices: Mapping[str, str]) -> dict[str, str]:
    """The choices that a single prompt has too."""
    many_requests = {axis.name for axis in all_axes() if axis.many_requests}
    return {axis: choice for axis, choice in choices.items() if axis not in many_requests}


def heading_of_advice(
    question: Question, own_texts: Sequence[QualityText] = (), owner: str = "", budget_s: float = 0.0
) -> Heading:
    """The heading by which a journal knows its question again. `own_texts`: texts in place of those of tokendyno."""
    settings = [("for", question.wish), *question.limits.settings(), *(("text", text.text) for text in own_texts)]
    if question.traffic is not None:
        settings.append(("requests", msgspec.json.encode(question.traffic).decode()))
    work = replace(question.work, repeats=1)
    return Heading(question.model, {}, settings, ["advise"], work, positions=POSITIONS, owner=owner, budget_s=budget_s)


def question_of(heading: Heading) -> Question:
    settings = dict(heading.changes)
    wish: Wish = msgspec.convert(settings["for"], Wish)
    traffic = msgspec.json.decode(settings["requests"], type=Traffic) if "requests" in settings else None
    return Question(heading.model, heading.workload, wish, Limits.of_settings(heading.changes), traffic)
