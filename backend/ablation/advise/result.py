"""Advice as one document (kind "advise", schema 3): the winners with their certificates, everything that was measured,
and what was not. Only what was measured is ranked."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from tokendyno.backend import hardware
from tokendyno.backend.ablation.advise.predicted import PredictedArm, predicted
from tokendyno.backend.ablation.advise.serve_line import serve_line
from tokendyno.backend.ablation.advise.space import Builder, Candidate, Pruned
from tokendyno.backend.ablation.advise.steps import EXPLORE, Standing, Steps
from tokendyno.backend.ablation.advise.wishes import TITLES, Question, Wish, token_s
from tokendyno.backend.ablation.journal import Cost, Left
from tokendyno.backend.arms.arguments import arguments_of
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

Label = Literal["wish", "same format", "transformers", "memory"]
LABELS: dict[Label, str] = {
    "wish": "Best for your wish",
    "same format": "Same number formats",
    "transformers": "By transformers alone",
    "memory": "Least memory",
}
SHOWN_FROM = 3
"""Trials from which on an interval is shown: two bound next to nothing."""

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
    quality: Cost | None
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
    budget_s: float
    spent_s: float
    complete: bool
    decided: bool
    headline: str
    rivals: list[str]
    winners: list[Winner]
    measured: list[MeasuredArm]
    pruned: list[Pruned]
    not_tried: list[Pruned]
    predicted: list[PredictedArm] = []


def predicted_document(builder: Builder, asked: Question, gpu: str, runs: RunLog) -> AdviceDocument:
    """For a GPU that is not here: nothing is measured."""
    found = AdviceDocument(
        "advise",
        3,
        builder.facts.model,
        builder.facts.label,
        builder.machine.describe(),
        hardware.versions(),
        asked.work,
        asked.wish,
        dict(asked.limits.settings()),
        0.0,
        0.0,
        True,
        False,
        "",
        [],
        [],
        [],
        builder.space.ruled_out(),
        [],
        predicted(builder, asked.limits, gpu, runs),
    )
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


def advice_document(steps: Steps, asked: Question, budget_s: float, runs: RunLog, paths: bool) -> AdviceDocument:
    """Of the steps so far. `paths`: whether scripts may name folders of this machine."""
    found = _Findings(steps, asked, runs, paths, budget_s)
    winners = found.winners()
    complete = steps.next(budget_s) is None
    builder = steps.builder
    document = AdviceDocument(
        "advise",
        3,
        asked.model,
        builder.facts.label,
        builder.machine.describe(),
        hardware.versions(),
        asked.work,
        asked.wish,
        dict(asked.limits.settings()),
        budget_s,
        steps.spent_s,
        complete,
        found.now.decided,
        "",
        [steps.space.arms[name].title for name in found.now.rivals[1:]],
        winners,
        found.measured,
        [*steps.space.ruled_out(), *found.hopeless()],
        found.not_tried(complete),
    )
    return msgspec.structs.replace(document, headline=headline(document, found.no_better()))


class _Findings:
    """What the journal holds, arm by arm."""

    def __init__(self, steps: Steps, asked: Question, runs: RunLog, paths: bool, budget_s: float) -> None:
        self.steps, self.space, self.now = steps, steps.space, steps.standing()
        self._asked, self._runs, self._paths, self._budget_s = asked, runs, paths, budget_s
        arms = {name: self._measured(self.space.arms[name], self.now) for name in self.now.values}
        self._arms = {name: msgspec.structs.replace(arm, pareto=_unbeaten(arm, arms)) for name, arm in arms.items()}

    @property
    def measured(self) -> list[MeasuredArm]:
        """The fastest first."""
        return sorted(self._arms.values(), key=lambda arm: arm.latency_mean_s or math.inf)

    def _measured(self, one: Candidate, now: Standing) -> MeasuredArm:
        trials = self.steps.trials(one.name)
        times = estimate([found for trial in trials if (found := token_s(trial)) is not None])
        first = estimate([trial.ttft_s for trial in trials])
        rate = estimate([trial.useful_tokens_s for trial in trials if trial.useful_tokens_s])
        starts = [trial.start_s for trial in trials if trial.start_s is not None]
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
        """The arm that is best for the wish, then the best of each other kind that is another arm."""
        able = [name for name in self.now.values if name not in self.now.barred and not self.steps.unread(name)]
        able.sort(key=lambda name: sum(self.now.values[name]) / len(self.now.values[name]))
        if self.now.leader is None:
            return []
        best: dict[Label, str] = {"wish": self._confirmed() or self.now.leader}
        if self.no_better():
            best["wish"] = self.space.base.name
        same = [name for name in able if not self.space.arms[name].recipe]
        plain = [name for name in able if not arguments_of(self._checked(name)).own and not self._loop(name)]
        least = sorted(able, key=lambda name: self._arms[name].peak_memory_bytes)
        for label, names in (("same format", same), ("transformers", plain), ("memory", least)):
            if names and names[0] not in best.values():
                best[label] = names[0]  # type: ignore[index]
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

    def _loop(self, name: str) -> bool:
        """Whether something of tokendyno generates in place of transformers."""
        return arguments_of(self._checked(name)).called.startswith("in place of")

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
            pairs = found.pairs if found else 0
            certificate.append(f"Measured again in fresh workers, beside the model as it comes: {pairs} pairs of runs.")
        elif name != base:
            behind = self.steps.ratio(base, name)
            ratio = behind
            certificate.append(f"Trials while advice was sought: {one.trials}; in effect as planned.")
        certificate.append(self._quality(name, one))
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
        if arm.quality is None:
            return "Quality: unknown; nothing was read."
        kl = f"KL divergence {three(arm.quality.kl_nats)} nats"
        where = (
            "" if self.steps.reads else f" of the same number formats on {recipes().model}: these weights are random"
        )
        return (
            f"Quality{where}: {kl}, the same likeliest token in {100 * arm.quality.top1_agreement:.1f}% of positions."
        )

    # --- what was not measured ----------------------------------------------------------------------

    def _left(self) -> Iterator[tuple[Candidate, str]]:
        """Arms without a trial that count, and why nothing is to be hoped of them; "" where that is not known."""
        best_s = self.steps.best_s(self.now)
        for name, one in self.space.arms.items():
            if name not in self.now.values and name not in self.steps.journal.left:
                yield one, self.steps.hopeless(one, best_s)

    def hopeless(self) -> list[Pruned]:
        """What measurements of other arms rule out."""
        return _grouped({one.title: why for one, why in self._left() if why})

    def not_tried(self, complete: bool) -> list[Pruned]:
        """What might have been measured, and what was given up."""
        rest = "No gain is expected of them by what was measured." if complete else "Not tried so far."
        if complete and self.steps.spent_s >= EXPLORE * self._budget_s:
            rest = "The budget ended before them."
        found = {self.space.arms[name].title: f"{_sentence(left.why)}" for name, left in self._given_up().items()}
        return _grouped(found | {one.title: rest for one, why in self._left() if not why})

    def _given_up(self) -> Mapping[str, Left]:
        return {name: one for name, one in self.steps.journal.left.items() if name in self.space.arms}


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _grouped(whys: Mapping[str, str]) -> list[Pruned]:
    """Arms by reason, the largest group first."""
    groups: dict[str, list[str]] = {}
    for title, why in whys.items():
        groups.setdefault(why, []).append(title)
    return sorted((Pruned(why, len(arms), arms[:3]) for why, arms in groups.items()), key=lambda one: -one.count)


def _unbeaten(arm: MeasuredArm, arms: Mapping[str, MeasuredArm]) -> bool:
    """Whether no arm that may win takes less time and not more memory, or the other way round."""
    if arm.barred or arm.latency_mean_s is None:
        return False
    here = (arm.latency_mean_s, arm.peak_memory_bytes)
    able = (one for one in arms.values() if not one.barred and one.latency_mean_s is not None)
    others = [(one.latency_mean_s or math.inf, one.peak_memory_bytes) for one in able]
    return not any(time_s <= here[0] and size <= here[1] and (time_s, size) != here for time_s, size in others)


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
    parts = [arm.title if arm.choices else "leave it as it comes", f"{_time(arm)} a token", _size(arm)]
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
    return (
        f"Nothing that was measured keeps to the limits. Fastest: {near.title}, {_time(near)} a token in {_size(near)}"
        f"{_but(near)}. Least memory: {least.title}, {_time(least)} a token in {_size(least)}{_but(least)}. Raise the "
        "limit that they break."
    )


def _time(arm: MeasuredArm) -> str:
    if arm.tokens_per_s is not None:
        return f"{three(arm.tokens_per_s)} useful tokens/s, {' '.join(seconds_text(arm.latency_mean_s or 0.0))}"
    return interval_text(seconds_text, arm.latency_mean_s or 0.0, arm.latency_low_s, arm.latency_high_s)


def _size(arm: MeasuredArm) -> str:
    return " ".join(bytes_text(arm.peak_memory_bytes))


def _but(arm: MeasuredArm) -> str:
    return f" ({arm.barred})" if arm.barred else ""
