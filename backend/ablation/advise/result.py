"""Advice as one document (kind "advise", schema 3): the winners with their certificates, everything that was measured,
and what was not. Only what was measured is ranked."""

import math
import shlex
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.advise.predicted import PredictedArm, predicted
from tokendyno.backend.ablation.advise.serve_line import serve_line
from tokendyno.backend.ablation.advise.space import Builder, Candidate, Pruned, by_reason
from tokendyno.backend.ablation.advise.steps import EXPLORE, Steps
from tokendyno.backend.ablation.advise.wishes import TITLES, Question, Wish, token_s
from tokendyno.backend.ablation.journal import Cost as Quality
from tokendyno.backend.ablation.journal import TrialsDocument, document_head
from tokendyno.backend.ablation.steps import arm_text
from tokendyno.backend.ablation.trials import DOUBTFUL
from tokendyno.backend.arms.arguments import arguments_of, parts_of
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Workload
from tokendyno.backend.errors import InputError
from tokendyno.backend.evidence import TOKENS, Evidence
from tokendyno.backend.export.short import short_script
from tokendyno.backend.hardware.gpu_specs import gpus
from tokendyno.backend.optimizations import titles_text
from tokendyno.backend.quality.recipes import recipes
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import Estimate, estimate
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.units import bytes_text, interval_text, plural, seconds_text, tells_nothing, three
from tokendyno.backend.views.card import confidence
from tokendyno.backend.views.comparison import lowered
from tokendyno.backend.views.ledger import ledger_rows
from tokendyno.backend.views.pareto import Cost, as_shown, pareto

Label = Literal["wish", "same format", "transformers", "memory"]
LABELS: dict[Label, str] = {
    "wish": "Best for your wish",
    "same format": "Same number formats",
    "transformers": "By transformers alone",
    "memory": "Least memory",
}
SHOWN_FROM = 3
"""Trials from which on an interval is shown: two bound next to nothing."""

UNCONFIRMED = "Advice ended before the best arm could be measured again in fresh workers."
_CLEARLY_LESS = 0.95
"""Times the time of the model as it comes: what trials show below that is said, though nothing confirmed it."""
_MUCH_LATER = 1.5
"""How many times as long a first token takes, from where on that is said of the arm that is fastest after it."""


class MeasuredArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arm that was measured: means over its trials, or what its last measurement in fresh workers shows, with 95%
    intervals where there are three.

    tokens_per_s  of many requests, useful tokens a second
    bound_s       its roofline bound
    quality       read with it or with the same number formats; None where it has those of the base, or nothing was read
    barred        why it may not win, "" if it may
    pareto        whether no arm that may win is better in both time and memory
    """

    choices: dict[str, str]
    title: str
    trials: int
    latency_mean_s: float | None
    latency_low_s: float | None
    latency_high_s: float | None
    ttft_s: float | None
    start_s: float | None
    tokens_per_s: float | None
    peak_memory_bytes: int
    bound_s: float | None
    quality: Quality | None
    barred: str
    pareto: bool = False

    @property
    def time(self) -> str:
        """Time a token, with its interval; of many requests useful tokens a second before it."""
        step_s = self.latency_mean_s or 0.0
        if self.tokens_per_s is not None:
            return f"{three(self.tokens_per_s)} useful tokens/s, {' '.join(seconds_text(step_s))}"
        return interval_text(seconds_text, step_s, self.latency_low_s, self.latency_high_s)

    @property
    def size(self) -> str:
        return " ".join(bytes_text(self.peak_memory_bytes))

    @property
    def over_bound(self) -> str:
        if not self.bound_s or not self.latency_mean_s:
            return ""
        return f"{three(self.latency_mean_s / self.bound_s)}\u00d7"


class Winner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arm that is advised.

    ratio, low, high  how many times as fast as the model as it comes, with the interval over pairs of rounds
    run               the run that measured it again in fresh workers, "" where its trials are its figure
    gets              what transformers' calls get, in two lines; script: a short program
    serve             the command that serves it, serve_note: why it is not `transformers serve`
    """

    label: Label
    arm: MeasuredArm
    ratio: float | None
    low: float | None
    high: float | None
    run: str
    gets: list[str]
    script: str
    serve: str
    serve_note: str
    certificate: list[str]

    @property
    def figures(self) -> list[tuple[str, str]]:
        arm = self.arm
        figures = [(arm.time, "a token"), (arm.size, "at the peak")]
        if arm.start_s is not None:
            figures.append((" ".join(seconds_text(arm.start_s)), "from its imports to its first token"))
        if self.ratio is not None and (bounds := _interval(self.low, self.high)):
            figures.append((f"{three(self.ratio)}\u00d7", f"as fast as it comes{bounds}"))
        return [*figures, *([(arm.over_bound, "its roofline bound")] if arm.over_bound else [])]


class AdviceDocument(TrialsDocument, frozen=True, tag="advise"):
    """Advice as it is now.

    limits     what was asked for besides the wish, by name; budget_s, spent_s: seconds that it may take, and took
    complete   whether nothing is left to do; decided: whether the winner is told from every rival, else `rivals` are
               those that may be as good
    not_tried  arms that would have been possible, with the reason
    predicted  on a GPU that is not here, where nothing is measured: the arms by bound and memory; command: what writes
               the script of the first arm that the headline names, "" for a GPU that has no name
    """

    workload: Workload
    wish: Wish
    limits: dict[str, str]
    budget_s: float = 0.0
    spent_s: float = 0.0
    complete: bool = True
    decided: bool = False
    headline: str = ""
    rivals: list[str] = []
    winners: list[Winner] = []
    measured: list[MeasuredArm] = []
    pruned: list[Pruned] = []
    not_tried: list[Pruned] = []
    predicted: list[PredictedArm] = []
    command: str = ""

    @property
    def counts(self) -> str:
        pruned, not_tried = (sum(group.count for group in groups) for groups in (self.pruned, self.not_tried))
        return f"{plural(pruned, 'arm')} ruled out, {len(self.measured):,} measured, {not_tried:,} not tried"


def _document(builder: Builder, question: Question, **fields: Any) -> AdviceDocument:
    asked = question.work, question.wish, dict(question.limits.settings())
    return AdviceDocument(*document_head(question.model, builder.facts, builder.machine), *asked, **fields)


def predicted_document(builder: Builder, question: Question, gpu: str, runs: RunLog) -> AdviceDocument:
    """The document for a GPU that is not here: bounds and memory, in the number formats of the base and in any.
    InputError for a wish of which they tell nothing."""
    if question.wish == "quick-start":
        raise InputError(
            f"What starts quickest on {gpu} cannot be predicted: bounds and memory tell nothing of a start. Ask on a "
            "machine that has one, or for latency, memory or throughput."
        )
    arms = predicted(builder, question.limits, gpu, runs)
    headline, command = f"Nothing keeps to the limits on {gpu}, by bounds and predicted memory.", ""
    if arms:
        same_format = next((arm for arm in arms if not arm.format), None)
        best = min(arms, key=lambda arm: arm.memory_bytes if question.wish == "memory" else arm.bound_s or math.inf)
        parts = [f"in {builder.space.formats}, {_prediction(same_format)}"] if same_format is not None else []
        if best is not same_format:
            quality = ", whose quality was not read"
            if best.kl_nats is not None:
                quality = f", which cost {three(best.kl_nats)} nats of KL divergence on {recipes().model}"
            parts.append(f"of all formats, {_prediction(best)}{quality}")
        sought = f"{builder.facts.label} on {gpu}, where nothing was measured. For {TITLES[question.wish]}"
        headline = f"{sought}, by bounds and predicted memory: {'; '.join(parts)}."
        if gpu in {spec.name for spec in gpus()} and len(builder.machine.gpus) == 1:
            arm = shlex.quote(arm_text((same_format or best).choices) or "baseline")
            command = f"tokendyno export --model {shlex.quote(question.model)} --gpu {gpu} --arm {arm}"
    pruned = by_reason(builder.space.pruned)
    return _document(builder, question, pruned=pruned, predicted=arms, headline=headline, command=command)


def _prediction(arm: PredictedArm) -> str:
    bound = f"at least {' '.join(seconds_text(arm.bound_s))} a token, " if arm.bound_s else ""
    recorded = f", {' '.join(seconds_text(arm.recorded_s))} in the recording {arm.run}" if arm.recorded_s else ""
    return f"{arm.title} ({bound}{' '.join(bytes_text(arm.memory_bytes))}{recorded})"


def advice_document(
    steps: Steps, question: Question, budget_s: float, ended: bool, runs: RunLog, texts: str, paths: bool
) -> AdviceDocument:
    """The document of the steps so far. `ended`: nothing is left to do; `texts`: names of those that are read;
    `paths`: scripts may name folders of this machine."""
    answer = _Answer(steps, question, runs, texts, paths)
    pruned, not_tried = answer.not_measured(ended, budget_s)
    document = _document(
        steps.builder,
        question,
        budget_s=budget_s,
        spent_s=steps.spent_s,
        complete=ended,
        decided=answer.now.decided,
        rivals=[steps.space.arms[name].title for name in answer.now.rivals[1:]],
        measured=sorted(answer.arms.values(), key=lambda arm: arm.latency_mean_s or math.inf),
        pruned=pruned,
        not_tried=not_tried,
    )
    unconfirmed = ended and steps.journal.confirmed is None and answer.now.leader not in (None, steps.space.base.name)
    rest = [
        *([UNCONFIRMED] if unconfirmed else []),
        f"{document.counts}, in {plural(steps.journal.runs, 'run')} of {steps.most_runs} at most.",
    ]
    winners = [msgspec.structs.replace(winner, certificate=[*winner.certificate, *rest]) for winner in answer.winners()]
    document = msgspec.structs.replace(document, winners=winners)
    return msgspec.structs.replace(document, headline=_headline(document, answer.no_better))


class _Answer:
    """What the journal holds, arm by arm.

    arms       those that were measured, by name
    no_better  where time is wished for and the last measurement does not show the leading arm to be faster than the
               model as it comes: how fast it was, and what may have disturbed that; else ""
    """

    def __init__(self, steps: Steps, question: Question, runs: RunLog, texts: str, paths: bool) -> None:
        self.steps, self.space, self.now = steps, steps.space, steps.standing()
        self._question, self._texts, self._paths = question, texts, paths
        self._last = steps.journal.confirmed
        self._run = runs.get(self._last.run) if self._last is not None else None
        self._columns = {self.space.base.name: "A", self._last.arm: "B"} if self._last and self._run else {}
        arms = {name: self._measured(self.space.arms[name]) for name in self.now.measured}
        costs = [Cost(name, arms[name].latency_mean_s, arms[name].peak_memory_bytes) for name in self.now.able]
        chart = pareto(costs, "")
        front = {point.label for point in chart.points if point.front} if chart is not None else {*self.now.able}
        self.arms = {name: msgspec.structs.replace(arm, pareto=name in front) for name, arm in arms.items()}
        self.no_better = ""
        if self._last is not None and self._run is not None:
            snapshot = self._run.snapshot()
            if (comparison := snapshot.comparison) is not None and _is_no_better(question.wish, comparison):
                title, interval = self.space.arms[self._last.arm].title, _interval(comparison.low, comparison.high)
                again = f"measured again beside it, {title} was {three(comparison.ratio)}\u00d7 as fast{interval}"
                self.no_better = f"{again}. {confidence(snapshot, comparison)}"
                if others := self._faster_once():
                    less = f"In earlier trials {' and '.join(others)} took less"
                    self.no_better += f" {less}, which a larger budget may confirm."

    def _faster_once(self) -> list[str]:
        """Up to two arms whose trials, which were not measured again, took less time than the model as it comes."""
        limit_s = _CLEARLY_LESS * (self.arms[self.space.base.name].latency_mean_s or 0.0)
        others = [self.arms[name] for name in self.now.able if name not in self._columns]
        faster = [arm for arm in others if arm.latency_mean_s and arm.latency_mean_s < limit_s]
        faster.sort(key=lambda arm: arm.latency_mean_s or 0.0)
        return [f"{arm.title} ({arm.time})" for arm in faster[:2]]

    def _measured(self, arm: Candidate) -> MeasuredArm:
        trials = self.steps.trials(arm.name)
        times = estimate([step_s for trial in trials if (step_s := token_s(trial)) is not None])
        first = estimate([trial.ttft_s for trial in trials])
        rate = estimate([trial.useful_tokens_s for trial in trials if trial.useful_tokens_s])
        fresh = self._question.wish == "quick-start"  # else a worker may have started ahead
        starts = [trial.start_s for trial in trials if fresh and trial.start_s is not None]
        low, high = (times.interval if times and len(trials) >= SHOWN_FROM else None) or (None, None)
        measured = MeasuredArm(
            choices=dict(arm.choices),
            title=arm.title,
            trials=len(trials),
            latency_mean_s=times.value if times else None,
            latency_low_s=low,
            latency_high_s=high,
            ttft_s=first.value if first else None,
            start_s=min(starts, default=None),
            tokens_per_s=rate.value if rate else None,
            peak_memory_bytes=max(trial.peak_memory_bytes for trial in trials),
            bound_s=arm.bound_s,
            quality=self.steps.cost_of(arm.name),
            barred=self.now.disqualified.get(arm.name, "")
            or ("its quality was not read" if self.steps.needs_reading(arm.name) else ""),
        )
        if self._run is None or (column := self._columns.get(arm.name)) is None:
            return measured
        again = self._run.snapshot().summaries[column]
        low, high = (again.latency_interval_s if again.runs >= SHOWN_FROM else None) or (None, None)
        return msgspec.structs.replace(
            measured,
            latency_mean_s=again.latency_mean_s,
            latency_low_s=low,
            latency_high_s=high,
            ttft_s=again.ttft_s,
            peak_memory_bytes=again.peak_memory_bytes or measured.peak_memory_bytes,
        )

    # --- winners ----------------------------------------------------------------------------------

    def winners(self) -> list[Winner]:
        """The arm that is best for the wish, then the best of each other kind that this one is not of."""
        if self.now.leader is None:
            return []
        confirmed = self._last.arm if self._last is not None and self._last.arm in self.arms else ""
        best: dict[Label, str] = {"wish": self.space.base.name if self.no_better else confirmed or self.now.leader}
        able = [name for name in self.now.able if not self.steps.needs_reading(name)]
        kinds: dict[Label, list[str]] = {
            "same format": [name for name in able if not self.space.arms[name].recipe],
            "transformers": [name for name in able if _by_transformers(self._checked(name))],
            "memory": sorted(able, key=self._size)[:1] if self._question.wish != "memory" else [],
        }
        for label, names in kinds.items():
            if names and best["wish"] not in names and names[0] not in best.values():
                best[label] = names[0]
        return [self._winner(label, name) for label, name in best.items()]

    def _size(self, name: str) -> tuple[float, float]:
        """Peak memory, and the time of those that show the same."""
        arm = self.arms[name]
        return as_shown(arm.peak_memory_bytes, 1024), arm.latency_mean_s or math.inf

    def _checked(self, name: str) -> Checked:
        return self.steps.builder.checked(self.space.arms[name].choices)

    def _winner(self, label: Label, name: str) -> Winner:
        measured, checked, facts = self.arms[name], self._checked(name), self.steps.builder.facts
        base = self.space.base.name
        column = self._columns.get(name)
        run = self._run if column is not None else None
        ratio: Estimate | None = None
        certificate: list[str] = []
        if run is not None and self._last is not None and column is not None:
            snapshot = run.snapshot()
            comparison = snapshot.comparison
            if comparison is not None and name != base:
                ratio = Estimate(comparison.ratio, comparison.low, comparison.high)
            certificate.append(_proof(snapshot.ledgers[column], {*measured.choices, TOKENS}))
            other = "the model as it comes" if name != base else self.space.arms[self._last.arm].title
            again = f"Measured again in fresh workers beside {other}"
            certificate.append(
                f"{again}, in {plural(comparison.pairs if comparison else 0, 'pair')} of runs{_bounds(ratio)}."
            )
        elif name != base:
            ratio = self.steps.ratio(base, name)
            if ratio and tells_nothing(measured.trials, ratio.value, ratio.low or 0, ratio.high or 0):
                ratio = Estimate(ratio.value)
            trials = f"{plural(measured.trials, 'trial')} while advice was sought"
            certificate.append(f"In effect as planned in {trials}{_bounds(ratio)}.")
        here = hardware.versions()
        versions = ", ".join(f"{package} {here[package]}" for package in ("torch", "transformers") if package in here)
        certificate += [self._quality(name, measured), f"On {self.steps.builder.machine.name} with {versions}."]
        script = short_script(checked, facts, self._question.work, self._paths)
        serve, note = serve_line(facts, checked)
        gets, run_id = arguments_of(checked).lines(), run.id if run else ""
        value, low, high = ratio or (None, None, None)
        return Winner(label, measured, value, low, high, run_id, gets, script, serve, note, certificate)

    def _quality(self, name: str, arm: MeasuredArm) -> str:
        if not self.space.arms[name].recipe:
            return f"Quality: unchanged, in {self.space.formats}."
        allowed = " Any quality was allowed." if self._question.limits.any_quality else ""
        if arm.quality is None:
            return f"Quality: unknown, since nothing was read.{allowed}"
        on = self._texts if self.steps.reads else f"{recipes().model}, since these weights are random"
        agreed = f"the same likeliest token in {100 * arm.quality.top1_agreement:.1f}% of positions"
        return f"Quality: KL divergence {three(arm.quality.kl_nats)} nats, {agreed}, on {on}.{allowed}"

    # --- what was not measured ----------------------------------------------------------------------

    def not_measured(self, ended: bool, budget_s: float) -> tuple[list[Pruned], list[Pruned]]:
        """Arms that rules, predictions or measurements of others rule out; arms that might have been measured, or were
        given up."""
        steps, not_tried = self.steps, dict[str, list[str]]()
        pruned = {why: [*arms] for why, arms in self.space.pruned.items()}
        rest = "No gain is expected of them by what was measured." if ended else "Not tried so far."
        if ended and steps.spent_s >= EXPLORE * budget_s:
            rest = "Advice ended before them. A larger budget tries more."
        elif ended and steps.journal.runs >= EXPLORE * steps.most_runs:
            rest = f"Others promised more, and advice takes {steps.most_runs} runs at most."
        best_s = steps.best_s(self.now)
        for name, arm in self.space.arms.items():
            if (left := steps.journal.left.get(name)) is not None:
                not_tried.setdefault(_sentence(left.why), []).append(arm.title)
            elif name not in self.arms:
                why = steps.ruled_out(arm, best_s)
                (pruned if why else not_tried).setdefault(_sentence(why or rest), []).append(arm.title)
        return by_reason(pruned), by_reason(not_tried)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _by_transformers(checked: Checked) -> bool:
    """Whether nothing of tokendyno takes part."""
    return not arguments_of(checked).own and not parts_of(checked).loop


def _proof(evidence: Sequence[Evidence], axes: set[str]) -> str:
    """What was in effect on these axes, in the words of the ledger; or what was not as planned."""
    rows = ledger_rows(evidence)
    if doubts := [f"{row.axis} ({row.reason or row.proof})" for row in rows if row.status in DOUBTFUL]:
        return f"Not as planned: {'; '.join(doubts)}."
    shown = [f"{row.axis}: {row.proof}" for row in rows if row.status == "verified" and row.axis in axes]
    return f"In effect: {'; '.join(shown)}."


def _is_no_better(wish: Wish, last: Comparison) -> bool:
    """Whether time is wished for, and the last measurement does not show the leading arm to be faster."""
    return wish in ("latency", "throughput") and last.outcome != "b_faster"


# --- in a sentence ----------------------------------------------------------------------------------


def advised(wish: Wish, last: Snapshot) -> str:
    """What to use, without figures. `last`: the last measurement, of the model as it comes and of the leading arm."""
    base, leader = last.request.arms
    no_better = last.comparison is not None and _is_no_better(wish, last.comparison)
    choices = (base if no_better else leader).choices
    return f"use {titles_text(choices) if choices else 'the defaults'}"


def _headline(document: AdviceDocument, no_better: str) -> str:
    """The answer: what to use, how fast and how large it is, and how sure that is."""
    if not document.winners:
        return _nothing_meets(document)
    best = document.winners[0]
    arm = best.arm
    use = f"use {arm.title}" if arm.choices else f"leave it {lowered(arm.title)}"
    parts = [f"{arm.time} a token", arm.size]
    if document.wish == "quick-start" and arm.start_s is not None:
        parts.insert(0, f"first token {' '.join(seconds_text(arm.start_s))} after its imports")
    if best.ratio is not None and (bounds := _interval(best.low, best.high)):
        parts.append(f"{three(best.ratio)}\u00d7 as fast as it comes in pairs of runs{bounds}")
    first_s, base_s = arm.ttft_s, next((one.ttft_s for one in document.measured if not one.choices), None)
    if first_s and base_s and first_s > _MUCH_LATER * base_s:
        first, base = (" ".join(seconds_text(seconds)) for seconds in (first_s, base_s))
        parts.append(f"but the first token takes {first}, not {base}")
    sure = ""
    if document.rivals and not document.decided:
        sure = f" As good, as far as was measured: {' or '.join(document.rivals[:2])}."
    if UNCONFIRMED in best.certificate:
        sure += f" {UNCONFIRMED}"
    if no_better:
        sure = (
            f" Nothing was shown to be better: {no_better} Both figures are of these pairs, others of earlier trials."
        )
    device = document.machine.get("gpu1", document.machine["cpu"]).partition(",")[0]
    measured = len(document.measured)
    untried = sum(group.count for group in document.not_tried)
    so_far = "" if document.complete else f", so far ({measured:,} of {plural(measured + untried, 'arm')})"
    asked = f"{document.model_label} on {device}{so_far}. For {TITLES[document.wish]}"
    return f"{asked}, {use}: {', '.join(parts)}.{sure}"


def _nothing_meets(document: AdviceDocument) -> str:
    """What is said where no arm keeps to the limits: the arms that come nearest, and what would help."""
    if not document.measured:
        return "Nothing was measured yet."
    fastest, smallest = (
        f"{arm.title}, {arm.time} a token in {arm.size}{f' ({arm.barred})' if arm.barred else ''}"
        for arm in (document.measured[0], min(document.measured, key=lambda arm: arm.peak_memory_bytes))
    )
    return (
        f"Nothing that was measured keeps to the limits. Fastest: {fastest}. Least memory: {smallest}. Raise the limit "
        "that they break."
    )


def _bounds(ratio: Estimate | None) -> str:
    """How many times as fast, with its interval, behind what was measured; "" without one."""
    shown = _interval(ratio.low, ratio.high) if ratio is not None else ""
    return f": {three(ratio.value)}\u00d7 as fast{shown}" if ratio is not None and shown else ""


def _interval(low: float | None, high: float | None) -> str:
    """An interval as it stands behind its figure; "" without one."""
    return f" ({three(low)} to {three(high)})" if low is not None and high is not None else ""
