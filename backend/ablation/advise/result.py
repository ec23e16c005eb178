"""Advice as one document (kind "advise", schema 3): the winners with their certificates, everything that was measured,
and what was not. Only what was measured is ranked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.advise.predicted import PredictedArm, predicted
from tokendyno.backend.ablation.advise.serve_line import serve_line
from tokendyno.backend.ablation.advise.space import Builder, Candidate, Pruned, by_reason
from tokendyno.backend.ablation.advise.steps import EXPLORE, Standing, Steps
from tokendyno.backend.ablation.advise.wishes import TITLES, Question, Wish, token_s
from tokendyno.backend.ablation.journal import Cost as Quality
from tokendyno.backend.arms.arguments import arguments_of, parts_of
from tokendyno.backend.arms.check import Checked
from tokendyno.backend.config import Workload
from tokendyno.backend.evidence import TOKENS, Evidence, Status
from tokendyno.backend.export.batch import batch_script
from tokendyno.backend.export.short import short_script
from tokendyno.backend.quality.recipes import recipes
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.statistics import Estimate, estimate
from tokendyno.backend.units import bytes_text, interval_text, seconds_text, three
from tokendyno.backend.views.ledger import ledger_rows
from tokendyno.backend.views.pareto import Cost, pareto

Label = Literal["wish", "same format", "transformers", "memory"]
LABELS: dict[Label, str] = {
    "wish": "Best for your wish",
    "same format": "Same number formats",
    "transformers": "By transformers alone",
    "memory": "Least memory",
}
SHOWN_FROM = 3
"""Trials from which on an interval is shown: two bound next to nothing."""

UNCONFIRMED = "The budget ended before the best arm could be measured again in fresh workers."

_DOUBTFUL: tuple[Status, ...] = ("partial", "no_effect", "fallback", "failed")


class MeasuredArm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arm that was measured: means over its trials, with 95% intervals where there are two.

    tokens_per_s  of many requests, useful tokens a second
    bound_s  its roofline bound; barred: why it may not win, "" if it may; pareto: no arm that may win is better in time
             and memory; quality: read with it or with the same number formats, None where it has those of the base or
             nothing was read
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
    pareto: bool


class Winner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An arm that is advised.

    ratio, low, high  how many times as fast as the model as it comes, with the interval over pairs of rounds
    run               the run that measured it again in fresh workers, "" where its trials are its figure
    gets              what transformers' calls get, in two lines; script: a short program
    serve             the command that serves it, serve_note: why it is not `transformers serve`
    certificate       proof, interval, quality, machine: a sentence each
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


class AdviceDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Advice as it is now.

    limits     what was asked for besides the wish, by name; budget_s, spent_s: seconds that it may take, and took
    complete   whether nothing is left to do; decided: whether the winner is told from every rival, else `rivals` are
               those that may be as good
    not_tried  arms that would have been possible, with the reason
    predicted  on a GPU that is not here, where nothing is measured: the arms by bound and memory
    """

    kind: Literal["advise"]
    schema: Literal[3]
    model: str
    model_label: str
    machine: dict[str, str]
    versions: dict[str, str]
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


def _document(builder: Builder, asked: Question, **found: Any) -> AdviceDocument:
    """The document with what every answer has."""
    facts, machine, limits = builder.facts, builder.machine.describe(), dict(asked.limits.settings())
    head = ("advise", 3, asked.model, facts.label, machine, hardware.versions(), asked.work, asked.wish, limits)
    return AdviceDocument(*head, **found)  # type: ignore[arg-type]


def predicted_document(builder: Builder, asked: Question, gpu: str, runs: RunLog) -> AdviceDocument:
    """For a GPU that is not here: nothing is measured."""
    pruned = builder.space.ruled_out()
    found = _document(builder, asked, pruned=pruned, predicted=predicted(builder, asked.limits, gpu, runs))
    return msgspec.structs.replace(found, headline=_expected(found, gpu))


def _expected(found: AdviceDocument, gpu: str) -> str:
    """What bounds and memory say, with the same number formats and with any."""
    if not found.predicted:
        return f"Nothing keeps to the limits on {gpu}, by bounds and predicted memory."
    same = next((one for one in found.predicted if not one.format), None)
    best = found.predicted[0]
    said = [f"in its own number formats {_prediction(same)}"] if same is not None else []
    said += [f"of all formats {_prediction(best)}{_known(best)}"] if best is not same else []
    return (
        f"Nothing was measured on {gpu}. By bounds and predicted memory, for {TITLES[found.wish]}: {'; '.join(said)}."
    )


def _known(one: PredictedArm) -> str:
    if one.kl_nats is None:
        return ", whose quality only a reading tells"
    return f", which cost {three(one.kl_nats)} nats of KL divergence on {recipes().model}"


def _prediction(one: PredictedArm) -> str:
    bound = f"at least {' '.join(seconds_text(one.bound_s))} a token, " if one.bound_s else ""
    recorded = f", {' '.join(seconds_text(one.recorded_s))} in the recording {one.run}" if one.recorded_s else ""
    return f"{one.title} ({bound}{' '.join(bytes_text(one.memory_bytes))}{recorded})"


def advice_document(
    steps: Steps, asked: Question, budget_s: float, ended: bool, runs: RunLog, texts: str, paths: bool
) -> AdviceDocument:
    """Of the steps so far. `ended`: nothing is left to do; `texts`: names of those that are read; `paths`: scripts may
    name folders of this machine."""
    found = _Findings(steps, asked, runs, texts, paths)
    pruned, not_tried = [*steps.space.ruled_out(), *found.hopeless()], found.not_tried(ended, budget_s)
    document = _document(
        steps.builder,
        asked,
        budget_s=budget_s,
        spent_s=steps.spent_s,
        complete=ended,
        decided=found.now.decided,
        rivals=[steps.space.arms[name].title for name in found.now.rivals[1:]],
        measured=found.measured,
        pruned=pruned,
        not_tried=not_tried,
    )
    best = found.now.leader if ended and steps.journal.confirmed is None else None
    last = [UNCONFIRMED] if best is not None and best != steps.space.base.name else []
    rest = [*last, f"{counts_text(document)}."]
    winners = [msgspec.structs.replace(one, certificate=[*one.certificate, *rest]) for one in found.winners()]
    document = msgspec.structs.replace(document, winners=winners)
    return msgspec.structs.replace(document, headline=headline(document, found.no_better()))


def counts_text(found: AdviceDocument) -> str:
    """How many arms there were, and what became of them."""
    pruned, left = (sum(one.count for one in groups) for groups in (found.pruned, found.not_tried))
    return f"{pruned:,} arms ruled out, {len(found.measured):,} measured, {left:,} not tried"


class _Findings:
    """What the journal holds, arm by arm."""

    def __init__(self, steps: Steps, asked: Question, runs: RunLog, texts: str, paths: bool) -> None:
        self.steps, self.space, self.now = steps, steps.space, steps.standing()
        self._asked, self._runs, self._texts, self._paths = asked, runs, texts, paths
        arms = {name: self._measured(self.space.arms[name], self.now) for name in self.now.measured}
        front = _front(arms)
        self._arms = {name: msgspec.structs.replace(arm, pareto=name in front) for name, arm in arms.items()}

    @property
    def measured(self) -> list[MeasuredArm]:
        """The fastest first."""
        return sorted(self._arms.values(), key=lambda arm: arm.latency_mean_s or math.inf)

    def _measured(self, one: Candidate, now: Standing) -> MeasuredArm:
        trials = self.steps.trials(one.name)
        times = estimate([found for trial in trials if (found := token_s(trial)) is not None])
        first = estimate([trial.ttft_s for trial in trials])
        rate = estimate([trial.useful_tokens_s for trial in trials if trial.useful_tokens_s])
        fresh = self._asked.wish == "quick-start"  # else a worker may have started ahead
        starts = [trial.start_s for trial in trials if fresh and trial.start_s is not None]
        return MeasuredArm(
            dict(one.choices),
            one.title,
            len(trials),
            times.value if times else None,
            times.low if times and len(trials) >= SHOWN_FROM else None,
            times.high if times and len(trials) >= SHOWN_FROM else None,
            first.value if first else None,
            min(starts, default=None),
            rate.value if rate else None,
            max(trial.peak_memory_bytes for trial in trials),
            one.bound_s,
            self.steps.cost_of(one.name),
            now.barred.get(one.name, ""),
            False,
        )

    # --- winners ----------------------------------------------------------------------------------

    def winners(self) -> list[Winner]:
        """The arm that is best for the wish, then the best of each other kind that this one is not of."""
        able = [name for name in self.now.able if not self.steps.unread(name)]
        if self.now.leader is None:
            return []
        best: dict[Label, str] = {"wish": self._confirmed() or self.now.leader}
        if self.no_better():
            best["wish"] = self.space.base.name
        same = [name for name in able if not self.space.arms[name].recipe]
        plain = [name for name in able if _by_transformers(self._checked(name))]
        least = sorted(able, key=lambda name: self._arms[name].peak_memory_bytes)[:1]
        kinds: list[tuple[Label, list[str]]] = [("same format", same), ("transformers", plain), ("memory", least)]
        for label, names in kinds:
            if names and best["wish"] not in names and names[0] not in best.values():
                best[label] = names[0]
        return [self._winner(label, name) for label, name in best.items()]

    def _confirmed(self) -> str:
        """The arm of the last measurement, as far as its run is known."""
        last = self.steps.journal.confirmed
        return last.arm if last is not None and last.arm in self._arms else ""

    def no_better(self) -> str:
        """The arm that led, where its last measurement does not show it faster than the model as it comes though time
        is what was wished for; "" where it does."""
        last = self.steps.journal.confirmed
        run = self._runs.get(last.run) if last is not None and self._asked.wish in ("latency", "throughput") else None
        found = run.comparison() if run is not None else None
        if last is None or found is None or found.outcome == "b_faster":
            return ""
        bounds = f" ({three(found.low)} to {three(found.high)})" if found.low and found.high else ""
        return f"{self.space.arms[last.arm].title} was {three(found.ratio)}\u00d7 as fast{bounds}"

    def _checked(self, name: str) -> Checked:
        return self.steps.builder.checked(self.space.arms[name].choices)

    def _winner(self, label: Label, name: str) -> Winner:
        one, checked = self._arms[name], self._checked(name)
        base = self.space.base.name
        last = self.steps.journal.confirmed
        run = self._runs.get(last.run) if last is not None and last.arm == name else None
        ratio: Estimate | None = None
        certificate: list[str] = []
        if run is not None:
            snapshot = run.snapshot()
            found = snapshot.comparison()
            ratio = Estimate(found.ratio, found.low, found.high) if found else None
            summary = snapshot.summary("B")
            one = msgspec.structs.replace(
                one,
                latency_mean_s=summary.latency_mean_s,
                latency_low_s=summary.latency_interval_s[0] if summary.latency_interval_s else None,
                latency_high_s=summary.latency_interval_s[1] if summary.latency_interval_s else None,
                ttft_s=summary.ttft_s,
                peak_memory_bytes=summary.peak_memory_bytes or one.peak_memory_bytes,
            )
            certificate.append(_proof(run.ledger("B"), {*one.choices, TOKENS}))
            pairs, bounds = (found.pairs, _bounds(ratio)) if found else (0, "")
            certificate.append(
                f"Measured again in fresh workers beside the model as it comes, in {pairs} pairs of runs{bounds}."
            )
        elif name != base:
            ratio = self.steps.ratio(base, name)
            certificate.append(f"In effect as planned in {one.trials} trials while advice was sought{_bounds(ratio)}.")
        certificate += [self._quality(name, one), self._where()]
        serve, note = serve_line(self.steps.builder.facts, checked)
        return Winner(
            label,
            one,
            ratio.value if ratio else None,
            ratio.low if ratio else None,
            ratio.high if ratio else None,
            run.id if run else "",
            arguments_of(checked).lines(),
            self._script(checked),
            serve,
            note,
            certificate,
        )

    def _script(self, checked: Checked) -> str:
        facts, asked = self.steps.builder.facts, self._asked
        if asked.traffic is not None:
            return batch_script(checked, facts, asked.work, asked.traffic, self._paths)
        return short_script(checked, facts, asked.work, self._paths)

    def _quality(self, name: str, arm: MeasuredArm) -> str:
        if not self.space.arms[name].recipe:
            return "Quality: the number formats of the model as it comes."
        allowed = " Any quality was allowed." if self._asked.limits.any_quality else ""
        if arm.quality is None:
            return f"Quality: unknown, since nothing was read.{allowed}"
        on = self._texts if self.steps.reads else f"{recipes().model}, since these weights are random"
        agreed = f"the same likeliest token in {100 * arm.quality.top1_agreement:.1f}% of positions"
        return f"Quality: KL divergence {three(arm.quality.kl_nats)} nats, {agreed}, on {on}.{allowed}"

    def _where(self) -> str:
        found = hardware.versions()
        versions = ", ".join(f"{name} {found[name]}" for name in ("torch", "transformers") if name in found)
        return f"On {self.steps.builder.machine.name} with {versions}."

    # --- what was not measured ----------------------------------------------------------------------

    def _left(self) -> Iterator[tuple[Candidate, str]]:
        """Arms without a trial that count, and why nothing is to be hoped of them; "" where that is not known."""
        best_s = self.steps.best_s(self.now)
        for name, one in self.space.arms.items():
            if name not in self.now.measured and name not in self.steps.journal.left:
                yield one, self.steps.hopeless(one, best_s)

    def hopeless(self) -> list[Pruned]:
        """What measurements of other arms rule out."""
        return _grouped({one.title: why for one, why in self._left() if why})

    def not_tried(self, ended: bool, budget_s: float) -> list[Pruned]:
        """What might have been measured, and what was given up."""
        rest = "No gain is expected of them by what was measured." if ended else "Not tried so far."
        if ended and self.steps.spent_s >= EXPLORE * budget_s:
            rest = "The budget ended before them."
        elif ended and self.steps.runs >= EXPLORE * self.steps.most_runs:
            rest = "Others promised more, and a third of the arms at most is tried."
        given_up = (
            (self.space.arms[name], left) for name, left in self.steps.journal.left.items() if name in self.space.arms
        )
        found = {arm.title: _sentence(left.why) for arm, left in given_up}
        return _grouped(found | {one.title: rest for one, why in self._left() if not why})


def _by_transformers(checked: Checked) -> bool:
    """Whether nothing of tokendyno takes part."""
    return not arguments_of(checked).own and not parts_of(checked).loop


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _grouped(whys: Mapping[str, str]) -> list[Pruned]:
    groups: dict[str, list[str]] = {}
    for title, why in whys.items():
        groups.setdefault(why, []).append(title)
    return by_reason(groups)


def _front(arms: Mapping[str, MeasuredArm]) -> set[str]:
    """Of the arms that may win those that no other beats in time and memory."""
    able = [Cost(name, arm.latency_mean_s, arm.peak_memory_bytes) for name, arm in arms.items() if not arm.barred]
    chart = pareto(able, "")
    return {one.label for one in able} if chart is None else {one.label for one in chart.points if one.front}


def _proof(evidence: Sequence[Evidence], axes: set[str]) -> str:
    """What was in effect of these rows, in the words of the ledger; whatever was not."""
    rows = ledger_rows(evidence)
    if doubts := [f"{row.axis} ({row.reason or row.proof})" for row in rows if row.status in _DOUBTFUL]:
        return f"Not as planned: {'; '.join(doubts)}."
    shown = [f"{row.axis}: {row.proof}" for row in rows if row.status == "verified" and row.axis in axes]
    return f"In effect: {'; '.join(shown)}."


# --- in a sentence ----------------------------------------------------------------------------------


def headline(found: AdviceDocument, no_better: str = "") -> str:
    """The answer: what to use, how fast and how large it is, and how sure that is. `no_better`: of the arm that led,
    how fast it was once more beside the model as it comes."""
    if not found.winners:
        return nothing_meets(found)
    best = found.winners[0]
    arm = best.arm
    parts = [arm.title if arm.choices else "leave it as it comes", f"{time_text(arm)} a token", size_text(arm)]
    if found.wish == "quick-start" and arm.start_s is not None:
        parts.insert(1, f"first token {' '.join(seconds_text(arm.start_s))} after its process began")
    if best.ratio is not None:
        bounds = f" ({three(best.low)} to {three(best.high)})" if best.low is not None and best.high is not None else ""
        parts.append(f"{three(best.ratio)}\u00d7 as fast as it comes{bounds}")
    if no_better:
        return f"For {TITLES[found.wish]}: {', '.join(parts)}. Nothing is measurably better: {no_better}."
    sure = f" Not told from {' or '.join(found.rivals[:2])}." if found.rivals and not found.decided else ""
    return f"For {TITLES[found.wish]}: {', '.join(parts)}.{sure}"


def nothing_meets(found: AdviceDocument) -> str:
    """Of a wish that nothing keeps to: the nearest arms, and what would do."""
    if not found.measured:
        return "Nothing was measured yet."
    near = min(found.measured, key=lambda arm: arm.latency_mean_s or math.inf)
    least = min(found.measured, key=lambda arm: arm.peak_memory_bytes)
    fast, small = (f"{arm.title}, {time_text(arm)} a token in {size_text(arm)}{_but(arm)}" for arm in (near, least))
    return (
        f"Nothing that was measured keeps to the limits. Fastest: {fast}. Least memory: {small}. Raise the limit that "
        "they break."
    )


def _bounds(ratio: Estimate | None) -> str:
    """How many times as fast, with its interval, behind what was measured; "" without one."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return ""
    return f": {three(ratio.value)}\u00d7 as fast ({three(ratio.low)} to {three(ratio.high)})"


def time_text(arm: MeasuredArm) -> str:
    """Time a token, with its interval; of many requests useful tokens a second before it."""
    if arm.tokens_per_s is not None:
        return f"{three(arm.tokens_per_s)} useful tokens/s, {' '.join(seconds_text(arm.latency_mean_s or 0.0))}"
    return interval_text(seconds_text, arm.latency_mean_s or 0.0, arm.latency_low_s, arm.latency_high_s)


def size_text(arm: MeasuredArm) -> str:
    """Peak memory."""
    return " ".join(bytes_text(arm.peak_memory_bytes))


def _but(arm: MeasuredArm) -> str:
    return f" ({arm.barred})" if arm.barred else ""
