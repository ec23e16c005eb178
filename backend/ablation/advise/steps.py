"""What advice does next, worked out from what its journal holds: so it goes on where it was ended."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tokendyno.backend.ablation.advise.predicted import recipe_cost
from tokendyno.backend.ablation.advise.search import Observation, Pair, Posterior, Search
from tokendyno.backend.ablation.advise.space import Builder, Candidate, Space
from tokendyno.backend.ablation.advise.wishes import Limits, Wish, token_s, value_of
from tokendyno.backend.ablation.journal import Cost, Journal, Trial
from tokendyno.backend.runs.statistics import Estimate, estimate, mean
from tokendyno.backend.runs.summary import SMALL

EXPLORE, COMPARE = 0.7, 0.85
"""Shares of the budget, and of the runs, after which no new arm is tried; of the budget, after which the best ones are
not compared any longer."""

SHARE, LEAST_RUNS, CONFIRM_RUNS = 3, 20, 2
"""Advice takes a run for every three arms at most, as one run of every arm would take three times as many; 20 in small
spaces. A run is an arm in a worker: a trial is one, the last measurement two. Readings of texts are none."""

FINALISTS, MOST_ROUNDS = 4, 9
NEARLY = 1.5
"""Standard deviations of the difference within which an arm may yet be better than the one that leads."""

FIRST_TRIALS = 2
"""Of the base, before any other arm."""

GUESS_S, COMPILE_S = 10.0, 45.0
"""A trial, until there was one; one that compiles, likewise."""

READING_TRIALS, SPARE = 4, 1.1
"""How many trials reading texts takes, until it was done once; how much longer the last measurement may take than is
expected of it."""

ARMS_A_PLACE = 3
"""New arms that each of several places tries before what they showed is looked at: a process starts for each unit."""


class Step(NamedTuple):
    """A trial of an arm, a reading of its texts against the base, or the last measurement beside the base."""

    kind: Literal["trial", "reading", "confirm"]
    arm: Candidate
    round: int = 0


@dataclass(slots=True)
class Standing:
    """What is known so far.

    measured      arms that were measured, in the order of the journal
    disqualified  those of them that may not win, with the reason
    able          those that may, the best first
    rivals        arms that are compared, the leader first
    decided       whether the leader is told from every rival, or does not differ enough to matter
    """

    measured: list[str]
    disqualified: dict[str, str]
    able: list[str]
    rivals: list[str]
    decided: bool

    @property
    def leader(self) -> str | None:
        return self.rivals[0] if self.rivals else None


class _Durations:
    """How long things will take, by what took how long so far."""

    def __init__(self, journal: Journal, space: Space) -> None:
        self._journal, self._space = journal, space
        self._cheapest: tuple[tuple[int, int], dict[tuple[str, str], float], float] = (-1, -1), {}, COMPILE_S

    def confirm_s(self, arm: Candidate, places: int) -> float:
        """What the last measurement of an arm takes at least: it and the base start anew, and run in pairs."""
        known = [trial.spent_s for trial in self._journal.of(arm.name)]
        return self.last_s(max(known, default=self.trial_s(arm)), places)

    def last_s(self, trial_s: float, places: int) -> float:
        """Both arms once, and once more without their start; with several places, in one whose process starts once."""
        base = self._journal.of(self._space.base.name)
        again_s = 2 * sum(base[-1].latency_s) if base else 0.0
        return (trial_s + (trial_s if places == 1 else self._common_s())) * places + again_s

    @property
    def reading_s(self) -> float:
        known = [cost.spent_s for cost in self._journal.costs.values()]
        return max(known, default=READING_TRIALS * self._common_s())

    def trial_s(self, arm: Candidate) -> float:
        """What a trial will take: as the arm's last one; before its first, the cheapest trial with each of its choices,
        and of these the dearest."""
        journal, arms = self._journal, self._space.arms
        if (arm.name, 0) in journal.trials:
            return journal.of(arm.name)[-1].spent_s
        key = len(journal.trials), len(journal.left)
        if self._cheapest[0] != key:
            late = [(given_up.arm, given_up.spent_s) for given_up in journal.left.values() if not given_up.tried]
            spent = [*((name, trial.spent_s) for (name, _), trial in journal.trials.items()), *late]
            cheapest, compile_s = dict[tuple[str, str], float](), COMPILE_S
            for tried, spent_s in ((arms[name], spent_s) for name, spent_s in spent if name in arms):
                compile_s = 0.0 if tried.compiles else compile_s
                for choice in tried.choices.items():
                    cheapest[choice] = min(spent_s, cheapest.get(choice, spent_s))
            self._cheapest = key, cheapest, compile_s
        _, cheapest, compile_s = self._cheapest
        known_s = [cheapest.get(choice, 0.0) for choice in arm.choices.items()]
        return max([compile_s if arm.compiles else 0.0, self._common_s(), *known_s])

    def _common_s(self) -> float:
        return min((trial.spent_s for trial in self._journal.trials.values()), default=GUESS_S)


class Steps:
    """The steps of one piece of advice. `recorded`: what this kind of machine has shown before; `places`: how many
    trials go on at once, each charged its share of the time."""

    def __init__(
        self, builder: Builder, journal: Journal, wish: Wish, limits: Limits, reads: bool, recorded: Sequence[Pair] = ()
    ) -> None:
        self.builder, self.space, self.journal = builder, builder.space, journal
        self._wish, self._limits, self.reads = wish, limits, reads
        self._recorded = recorded
        for name, _ in journal.trials:
            builder.add(name)
        self._search: tuple[tuple[int, float], Search] | None = None
        self._widened = set[str]()
        self.durations, self.places = _Durations(journal, builder.space), 1

    @property
    def spent_s(self) -> float:
        """What everything in the journal took; of what went on beside other things its share."""
        return sum(result.spent_s for result in self.journal.results)

    @property
    def most_runs(self) -> int:
        """How many runs advice may take in all, however long the budget is."""
        return max(LEAST_RUNS, len(self.space.arms) // SHARE)

    # --- what is known ----------------------------------------------------------------------------

    def trials(self, name: str) -> list[Trial]:
        """The trials of an arm; none where it was given up."""
        return [] if name in self.journal.left else self.journal.of(name)

    def cost_of(self, name: str) -> Cost | None:
        """What an arm's number formats cost, read with it or with another arm of the same formats; with random weights
        on a small real model. None where there is nothing to read, or nothing was read."""
        recipe = self.space.arms[name].recipe
        if not self.reads:
            return recipe_cost(recipe)
        costs = (cost for arm, cost in self.journal.costs.items() if arm in self.space.arms)
        return next((cost for cost in costs if recipe and self.space.arms[cost.arm].recipe == recipe), None)

    def needs_reading(self, name: str) -> bool:
        """Whether texts must be read before an arm may win."""
        needed = self.reads and not self._limits.any_quality and bool(self.space.arms[name].recipe)
        return needed and self.cost_of(name) is None

    def disqualified(self, name: str) -> str:
        """Why an arm that was measured may not win; "" if it may."""
        if name in self.journal.left:
            return self.journal.left[name].why
        for trial in self.trials(name):
            if trial.doubtful:
                rows = ", ".join(f"{axis} ({status.replace('_', ' ')})" for axis, status in trial.doubtful.items())
                return f"not in effect as planned: {rows}"
            if over := self._limits.exceeded(trial):
                return over
        return self._poor_quality(self.space.arms[name])

    def _poor_quality(self, arm: Candidate) -> str:
        """Why an arm may not win by what was read; "" where it may, or must be read first."""
        cost = self.cost_of(arm.name)
        if not arm.recipe or self._limits.any_quality or (self.reads and cost is None):
            return ""
        if cost is None:
            return "its quality is unknown: the weights are random"
        allowed = self._limits.allows(cost)
        return "" if allowed else f"its quality cost is over the limit: KL {cost.kl_nats:.3g} nats"

    def _posterior(self, expected: Sequence[Observation] = ()) -> Posterior | None:
        """What all trials show, and `expected`; None without a trial."""
        arms, journal = self.space.arms, self.journal
        failed = [name for name in journal.left if name in arms]
        observations = [
            Observation(name, value, f"{trial.node} {trial.gpu}")
            for (name, _), trial in journal.trials.items()
            if name in arms and name not in failed and (value := value_of(trial, self._wish)) is not None
        ]
        return self._current_search().posterior([*observations, *expected], failed) if observations else None

    def standing(self) -> Standing:
        posterior, index = self._posterior(), self._current_search().index
        if posterior is None:
            return Standing([], {}, [], [], False)
        measured = [name for name in dict.fromkeys(name for name, _ in self.journal.trials) if self.values(name)]
        disqualified = {name: why for name in measured if (why := self.disqualified(name))}
        able = [name for name in measured if name not in disqualified]
        able.sort(key=lambda name: posterior.mean[index[name]])
        near = [name for name in able if posterior.z_score(index[name], index[able[0]]) <= NEARLY][:FINALISTS]
        against = {name: self._slower(name, near[0]) for name in near[1:]}
        rivals = [*near[:1], *(name for name, verdict in against.items() if verdict != "slower")]
        return Standing(measured, disqualified, able, rivals, bool(near) and None not in against.values())

    def values(self, name: str) -> list[float]:
        """The logarithm of what is to be least, of each trial of an arm of the space."""
        trials = self.trials(name) if name in self.space.arms else []
        return [value for trial in trials if (value := value_of(trial, self._wish)) is not None]

    def ratio(self, name: str, leader: str) -> Estimate | None:
        """What is to be least, of an arm / of the leader, over the rounds that both ran in one place."""
        ours, theirs = (
            {(trial.round, trial.node, trial.gpu): value_of(trial, self._wish) for trial in self.trials(arm)}
            for arm in (name, leader)
        )
        pairs = ((here, theirs.get(place)) for place, here in ours.items())
        return estimate([math.exp(a - b) for a, b in pairs if a is not None and b is not None])

    def _slower(self, name: str, leader: str) -> Literal["slower", "equal"] | None:
        """Whether the interval says that an arm is behind the leader, or level with it; None where it says neither."""
        ratio = self.ratio(name, leader)
        if ratio is None or ratio.low is None or ratio.high is None:
            return None
        if ratio.low > 1:
            return "slower"
        return "equal" if ratio.low >= SMALL[0] and ratio.high <= SMALL[1] else None

    # --- what comes next --------------------------------------------------------------------------

    def units(self, budget_s: float) -> list[list[Step]]:
        """What comes next, in units that may go on in as many places at once: what is compared stands in one."""
        base = self.space.base
        if self.journal.confirmed is not None:
            return []
        count, spent_s = len(self.trials(base.name)), self.spent_s
        if count < FIRST_TRIALS and (not count or spent_s + self.durations.trial_s(base) <= budget_s):
            return [[Step("trial", base, number)] for number in range(count, max(FIRST_TRIALS, self.places))]
        standing = self.standing()
        if standing.leader is not None and self.needs_reading(standing.leader):
            return self._readings(standing)
        used = max(
            spent_s / budget_s, self.journal.runs / self.most_runs
        )  # of the budget or the runs, whichever is more
        if used < EXPLORE and (units := self._trials_of_new(standing, budget_s)):
            return units
        if units := self._readings(standing):
            return units
        if not standing.decided and (units := self._rounds(standing, budget_s)):
            return units
        if standing.leader is None or standing.leader == base.name or base.name not in standing.measured:
            return []
        best = self.space.arms[standing.leader]
        return [[Step("confirm", best)]] if spent_s + self.durations.confirm_s(best, self.places) <= budget_s else []

    def _readings(self, standing: Standing) -> list[list[Step]]:
        """A reading with the best arm of each recipe that was not read."""
        unread = {self.space.arms[name].recipe: name for name in reversed(standing.rivals) if self.needs_reading(name)}
        return [[Step("reading", self.space.arms[name])] for name in [*unread.values()][::-1][: self.places]]

    def _trials_of_new(self, standing: Standing, budget_s: float) -> list[list[Step]]:
        """Arms that were not tried; for several places a few each."""
        count, pending = 1 if self.places == 1 else ARMS_A_PLACE * self.places, dict[str, float]()
        while len(pending) < count and (arm := self._new_arm(standing, budget_s, pending)) is not None:
            pending[arm.name] = self.durations.trial_s(arm)
        steps = [Step("trial", self.space.arms[name]) for name in pending]
        return [unit for place in range(self.places) if (unit := steps[place :: self.places])]

    def _new_arm(self, standing: Standing, budget_s: float, pending: Mapping[str, float]) -> Candidate | None:
        """The arm that is most worth a trial; near the leader where nothing else is. `pending`: those that are tried
        meanwhile, with their expected time: each is taken to show what is expected of it."""
        best_s, pending_s = self.best_s(standing), sum(pending.values())
        while (posterior := self._posterior()) is not None:
            search = self._current_search()
            if pending:
                expected = [Observation(name, posterior.mean[search.index[name]], name) for name in pending]
                posterior = self._posterior(expected)
                assert posterior is not None
            costs = dict[str, float]()
            for name, arm in self.space.arms.items():
                tried = name in standing.measured or name in pending or name in self.journal.left
                if tried or self.ruled_out(arm, best_s):
                    continue
                cost_s = self.durations.trial_s(arm)
                if self._fits(pending_s + cost_s, len(pending) + 1, budget_s, standing, name, cost_s):
                    costs[name] = cost_s
            a_run_s = max(budget_s - self.spent_s, 0.0) / max(
                self.most_runs - self.journal.runs, 1
            )  # where runs are scarcer
            shares = {name: max(cost_s, a_run_s) for name, cost_s in costs.items()}
            if (best := search.propose(posterior, [*standing.measured, *pending], standing.able, shares)) is not None:
                return self.space.arms[best]
            if standing.leader is None or standing.leader in self._widened:
                return None
            self._widened.add(standing.leader)
            if not self.builder.widen(self.space.arms[standing.leader]):
                return None
        return None

    def _current_search(self) -> Search:
        """The search over the arms that there are now."""
        base_s = mean([step_s for trial in self.trials(self.space.base.name) if (step_s := token_s(trial))]) or 0.0
        key = len(self.space.arms), base_s
        if self._search is None or self._search[0] != key:
            arms = self.space.search_arms(base_s, self._limits.any_quality)
            self._search = key, Search(arms, self._recorded)
        return self._search[1]

    def best_s(self, standing: Standing) -> float | None:
        """The least time per token of arms that may win, where that is what is wished for; None of many requests."""
        if self._wish not in ("latency", "throughput") or standing.leader is None:
            return None
        if any(trial.useful_tokens_s for trial in self.trials(standing.leader)):
            return None
        return math.exp(mean(self.values(standing.leader)) or 0.0)

    def ruled_out(self, arm: Candidate, best_s: float | None) -> str:
        """Why an arm needs no run by what others have shown; "" if it does."""
        if best_s is not None and arm.bound_s is not None and arm.bound_s > best_s:
            return "the roofline bound is over what another arm was measured at"
        return self._poor_quality(arm)

    def _fits(
        self, cost_s: float, runs: int, budget_s: float, standing: Standing, new: str = "", new_s: float = 0.0
    ) -> bool:
        """Whether there is room for so many more runs, which take `cost_s` together, so that enough is left to measure
        the winner again and, for a `new` arm whose trial takes `new_s`, to read its quality."""
        leads = standing.leader is not None and standing.leader != self.space.base.name
        leader_s = self.durations.confirm_s(self.space.arms[standing.leader or ""], self.places) if leads else 0.0
        winner_s = max(self.durations.last_s(new_s, self.places) if new else 0.0, leader_s)
        reserved_s = max((1 - COMPARE) * budget_s, SPARE * winner_s)
        reading_s = self.durations.reading_s if new and self.needs_reading(new) else 0.0
        within = self.journal.runs + runs + CONFIRM_RUNS <= self.most_runs
        return within and self.spent_s + cost_s + reading_s + reserved_s <= budget_s

    def _rounds(self, standing: Standing, budget_s: float) -> list[list[Step]]:
        """The next trials of the arms that are compared: in rounds, every other one backwards. A round begins where
        there is time for the whole of it, and runs in one place."""
        if len(standing.rivals) < 2:
            return []
        next_rounds = [1 + max(trial.round for trial in self.trials(name)) for name in standing.rivals]
        first = min(next_rounds) if self.places == 1 else max(next_rounds)
        units = list[list[Step]]()
        for number in range(first, min(MOST_ROUNDS, first + self.places)):
            order = standing.rivals[::-1] if number % 2 else standing.rivals
            names = [name for name in order if (name, number) not in self.journal.trials]
            unit = [Step("trial", self.space.arms[name], number) for name in names]
            steps = [step for planned in [*units, unit] for step in planned]
            if not self._fits(sum(self.durations.trial_s(step.arm) for step in steps), len(steps), budget_s, standing):
                break
            units.append(unit)
        return units
