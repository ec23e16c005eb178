"""A run at one moment: its folded state and the figures computed from it."""

from dataclasses import dataclass
from functools import cached_property

import msgspec

from tokendyno.backend.config import ArmRequest
from tokendyno.backend.evidence import TOKENS, Evidence, Finding
from tokendyno.backend.messages import Finished
from tokendyno.backend.optimizations import all_axes, unasked
from tokendyno.backend.optimizations.base import Witness
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.batch_summary import BatchSummary, differing, summarize_batch
from tokendyno.backend.runs.records import ArmPlanned, Created, OfRun, Status
from tokendyno.backend.runs.statistics import estimate
from tokendyno.backend.runs.summary import Comparison, Summary, compare_pairs, pair_ratios, summarize
from tokendyno.backend.runs.texts import TextComparison, compare_texts

TOLERANCE: dict[Witness, float] = {"weights": 0.02, "kv": 0.02}
"""Largest share by which measured bytes may differ from the prediction. Both are counted from tensors, so the two agree
to the byte where the arm is what it claims; the rest is for packed formats that pad their rows."""

_NAMES: dict[Witness, str] = {"weights": "the weights take", "kv": "the KV cache takes"}


@dataclass(frozen=True)  # without slots: what is computed from it is kept
class Snapshot(OfRun):
    """A copy of a run's state, which later records leave alone: read it from any thread. `repeat`: index of the repeat
    that is under way, or was the last."""

    created: Created
    status: Status
    message: str
    repeat: int
    arms: dict[str, ArmSeries]

    @property
    def memory_label(self) -> str:
        """What the memory series measures on this run's device."""
        for arm in self.arms.values():
            if arm.finished is not None:
                return arm.finished.memory_label
        return "VRAM of the worker" if self.created.device == "cuda" else "resident memory of the worker"

    def planned(self, name: str) -> ArmPlanned:
        return {arm.name: arm for arm in self.created.arms}[name]

    def requested(self, name: str) -> ArmRequest:
        """What the user asked of an arm. KeyError if that is not known, never StopIteration."""
        return {arm.name: arm for arm in self.request.arms}[name]

    @cached_property
    def summaries(self) -> dict[str, Summary]:
        """The figures of each arm so far, of the repeats over which arms are compared, where there are any."""
        return {name: self._summarized(arm) for name, arm in self.arms.items()}

    def _summarized(self, arm: ArmSeries) -> Summary:
        measured = arm.measured()
        complete = [n for n in measured if arm.completed(n)]
        counted = [n for n in complete if self._paired(n)] or complete or list(measured)
        kv, kv_predicted = self._kv_bytes(arm)
        memory = arm.sample_bytes + arm.memory_bytes
        if arm.finished is not None:
            memory.append(arm.finished.peak_memory_bytes)
        return summarize(
            [measured[n] for n in counted],
            self.request.workload.batch_size,
            len(arm.t_s),
            memory,
            kv,
            kv_predicted,
            self.unit == "token",
            arm.roofline_s(self.unit),
        )

    def _paired(self, repeat: int) -> bool:
        """Whether every arm completed this repeat, so that arms are compared over it."""
        return all(arm.completed(repeat) for arm in self.arms.values())

    @cached_property
    def batch_summaries(self) -> dict[str, BatchSummary]:
        """The figures of each arm of many requests so far, of its first run. Only useful tokens per second are over
        several runs: those that every arm completed, so that `comparison` is the ratio of these figures; without any,
        all that are over."""
        traffic = self.request.traffic
        assert traffic is not None
        summaries = {}
        for name, arm in self.arms.items():
            summary = summarize_batch(arm.batch, traffic, arm.started.batch_size if arm.started else 0)
            rates = self.useful_rates(name)
            rate = estimate([rate for n, rate in rates.items() if self._paired(n)] or list(rates.values()))
            summaries[name] = msgspec.structs.replace(summary, useful_tokens_s=rate.value) if rate else summary
        return summaries

    def useful_rates(self, name: str) -> dict[int, float]:
        """Useful tokens per second of each run of many requests that is over."""
        arm = self.arms[name]
        ends = {n: end for n, end in sorted(arm.finishes.items()) if arm.completed(n) and end.wall_s}
        return {n: end.counts.requests.useful_tokens / end.wall_s for n, end in ends.items()}

    @cached_property
    def differing_requests(self) -> dict[int, int | None] | None:
        """Requests that both arms served, with the first token that differs: see `differing`. None for one arm."""
        if len(self.arms) != 2:
            return None
        a, b = self.arms.values()
        return differing(a.batch, b.batch)

    def same_tokens(self) -> int | None:
        """How many requests got the same tokens from both arms; None where no request was served by both."""
        requests = self.differing_requests
        return None if requests is None else sum(token is None for token in requests.values())

    def _kv_bytes(self, arm: ArmSeries) -> tuple[tuple[int, int] | None, int | None]:
        """The KV cache after the newest token: (sliding, full) as measured, and the sum as predicted; None without."""
        if not arm.kv_full or self.unit != "token":
            return None, None
        return (arm.kv_sliding[-1], arm.kv_full[-1]), arm.predicted_kv_bytes()

    @property
    def equal_arms(self) -> bool:
        """Whether two arms have the same plan, so that whatever differs between them is noise."""
        return len(self.created.arms) == 2 and self.created.arms[0].planned == self.created.arms[1].planned

    @property
    def unasked(self) -> dict[str, tuple[str, str]]:
        """In what two arms differ although nobody chose it: axis -> choices of A and of B."""
        return unasked(*self.created.arms) if len(self.created.arms) == 2 else {}

    @cached_property
    def comparison(self) -> Comparison | None:
        """Arm A against arm B, over the repeats that both completed; None for a single arm."""
        return compare_pairs(self.pair_ratios, self.equal_arms)

    @cached_property
    def pair_ratios(self) -> list[float]:
        """Step time of A / step time of B in each pair of runs that both completed; of many requests useful tokens a
        second of B / of A."""
        if len(self.arms) != 2:
            return []
        if self.request.traffic is not None:
            of_a, of_b = (self.useful_rates(name) for name in self.arms)
            return [of_b[n] / rate for n, rate in of_a.items() if rate > 0 and of_b.get(n, 0.0) > 0]
        a, b = (arm.measured() for arm in self.arms.values())
        both = [n for n in a if n in b and self._paired(n)]
        return pair_ratios([a[n] for n in both], [b[n] for n in both], self.unit == "token")

    @cached_property
    def texts(self) -> TextComparison | None:
        """The greedy texts of two arms that were generated to their end; None where there is nothing to compare."""
        arms = list(self.arms.values())
        if self.request.traffic is not None:
            return None
        greedy = self.unit == "token" and self.request.workload.temperature == 0
        if len(arms) != 2 or not greedy or not all(arm.completed(0) for arm in arms):
            return None
        planned = [self.planned(name).planned for name in self.arms]
        return compare_texts([arm.ids for arm in arms], planned, next((a.probed for a in arms if a.probed), None))

    @cached_property
    def ledgers(self) -> dict[str, list[Evidence]]:
        """The evidence of each arm: for every axis with a finding, what was requested, planned and found."""
        return {name: self._evidence(name) for name in self.arms}

    def _evidence(self, name: str) -> list[Evidence]:
        arm, planned = self.arms[name], self.planned(name)
        if arm.finished is None:
            return []
        if not self.request.proof:
            return [
                Evidence(planned.requested[axis], choice, Finding(axis, choice, "not looked at", outcome="unchecked"))
                for axis, choice in planned.planned.items()
            ]
        fallbacks = {v.axis: v.reason for v in planned.verdicts if v.level == "fallback"}
        settled = {v.axis: v.reason for v in planned.verdicts if v.level == "note" and v.becomes}
        doubts = self._doubts(name)
        axes = {axis.name: axis for axis in all_axes()}
        return [
            Evidence(
                planned.requested[f.axis],
                planned.planned[f.axis],
                f,
                off=axes[f.axis].off if f.axis in axes else "",
                fell_back=fallbacks.get(f.axis, ""),
                settled=settled.get(f.axis, ""),
                doubt=doubts.get(axes[f.axis].witness, "") if f.axis in axes else "",
            )
            for f in arm.finished.findings
            if f.axis in planned.requested
        ] + [Evidence(f.effective, f.effective, f) for f in self._token_finding(arm.finished)]

    def _token_finding(self, finished: Finished) -> list[Finding]:
        """The row `tokens`; of records before schema 3 it is made of what they counted."""
        if findings := [f for f in finished.findings if f.axis == TOKENS]:
            return findings
        counts, traffic = finished.counts.tokens, self.request.traffic
        if self.unit != "token" or not finished.findings:
            return []
        effective = "sampled" if traffic is None and self.request.workload.temperature else "greedy"
        if not counts.checked_tokens:
            reason = finished.unchecked or "this record does not say whether the model would choose these tokens"
            return [Finding(TOKENS, effective, reason, outcome="unchecked")]
        checked, chosen = counts.checked_tokens, counts.checked_tokens - counts.strange_tokens
        proof = f"{chosen} of {checked} tokens are those that the model chooses in one pass over prompt and text"
        return [Finding(TOKENS, effective, proof, chosen, checked)]

    def _doubts(self, name: str) -> dict[str, str]:
        """By what was measured ("weights", "kv"), how the memory of a finished arm contradicts its prediction."""
        arm = self.arms[name]
        weights = arm.loaded.weight_bytes if arm.loaded else None
        measured, predicted = self._kv_bytes(arm)
        kv = doubt("kv", predicted, sum(measured) if measured else None)
        if arm.batch.pages is not None and self.request.traffic is not None and self.request.traffic.exact:
            kv = doubt("kv", arm.predicted.memory.get("kv"), arm.batch.pages.cache_bytes)
        return {"weights": doubt("weights", arm.predicted.memory.get("weights"), weights), "kv": kv}


def doubt(witness: Witness, predicted: int | None, measured: int | None) -> str:
    """A sentence where measured bytes contradict the prediction; "" within the tolerance, or where one is unknown."""
    if not predicted or measured is None:
        return ""
    error = (measured - predicted) / predicted
    if abs(error) <= TOLERANCE[witness]:
        return ""
    return (
        f"The memory contradicts this: {_NAMES[witness]} {measured:,} bytes, {error:+.1%} against the {predicted:,} "
        f"predicted for this choice (tolerance {TOLERANCE[witness]:.0%})."
    )
