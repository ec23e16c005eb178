"""A run at one moment: its folded state and the figures computed from it."""

from dataclasses import dataclass

from backend.config import Request
from backend.evidence import Evidence
from backend.optimizations import all_axes
from backend.runs.arm_series import ArmSeries
from backend.runs.batch_summary import BatchSummary, differing, summarize_batch
from backend.runs.records import ArmPlanned, Created, Status, Unit
from backend.runs.summary import Comparison, Summary, compare, summarize
from backend.runs.texts import TextComparison, compare_texts
from backend.runs.witness import doubt


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A copy of a run's state, which later records leave alone: read it from any thread.

    repeat  index of the repeat that is under way, or was the last
    """

    created: Created
    status: Status
    message: str
    repeat: int
    arms: dict[str, ArmSeries]

    @property
    def request(self) -> Request:
        """The run as the user asked for it."""
        return self.created.request

    @property
    def unit(self) -> Unit:
        """What is timed: tokens or forward passes."""
        return self.created.unit

    @property
    def ended(self) -> bool:
        """Whether no further record will follow."""
        return self.status not in ("queued", "running")

    @property
    def memory_label(self) -> str:
        """What the memory series measures on this run's device."""
        for arm in self.arms.values():
            if arm.finished is not None:
                return arm.finished.memory_label
        return "VRAM of the worker" if self.created.device == "cuda" else "resident memory of the worker"

    def planned(self, name: str) -> ArmPlanned:
        """What the rules made of an arm."""
        return next(arm for arm in self.created.arms if arm.name == name)

    def summary(self, name: str) -> Summary:
        """The figures of one arm so far."""
        arm = self.arms[name]
        kv = (arm.kv_sliding[-1], arm.kv_full[-1]) if arm.kv_full and self.unit == "token" else None
        memory = arm.sample_bytes + arm.memory_bytes
        if arm.finished is not None:
            memory.append(arm.finished.peak_memory_bytes)
        return summarize(
            list(arm.measured().values()), self.request.workload.batch_size, len(arm.t_s), memory, kv,
            arm.predicted_kv_bytes() if kv is not None else None, self.unit == "token", arm.roofline_s(self.unit),
        )  # fmt: skip

    def batch_summary(self, name: str) -> BatchSummary:
        """The figures of one arm of many requests so far."""
        assert self.request.traffic is not None
        return summarize_batch(self.arms[name].batch, self.request.traffic)

    def same_tokens(self) -> int | None:
        """How many requests got the same tokens from both arms; None where no request was served by both."""
        if len(self.arms) != 2:
            return None
        a, b = self.arms.values()
        found = differing(a.batch, b.batch)
        return None if found is None else sum(at is None for at in found.values())

    def comparison(self) -> Comparison | None:
        """Arm A against arm B, over the repeats that both completed; None for a single arm."""
        if len(self.arms) != 2:
            return None
        a, b = ({n: run for n, run in arm.measured().items() if arm.completed(n)} for arm in self.arms.values())
        both = [n for n in a if n in b]
        return compare([a[n] for n in both], [b[n] for n in both], prefill=self.unit == "token")

    def texts(self) -> TextComparison | None:
        """The greedy texts of two arms that were generated to their end; None where there is nothing to compare."""
        arms = list(self.arms.values())
        if self.request.traffic is not None:
            return None
        greedy = self.unit == "token" and self.request.workload.temperature == 0
        if len(arms) != 2 or not greedy or not all(arm.finished and arm.completed(0) for arm in arms):
            return None
        planned = [self.planned(name).planned for name in self.arms]
        return compare_texts([arm.ids for arm in arms], planned, next((a.probed for a in arms if a.probed), None))

    def ledger(self, name: str) -> list[Evidence]:
        """The evidence of one arm: for every axis with a finding, what was requested, planned and found."""
        arm, planned = self.arms[name], self.planned(name)
        if arm.finished is None:
            return []
        fallbacks = {v.axis: v.reason for v in planned.verdicts if v.level == "fallback"}
        doubts = self._doubts(name)
        axes = {axis.name: axis for axis in all_axes()}
        return [
            Evidence(
                planned.requested[f.axis], planned.planned[f.axis], f,
                off=axes[f.axis].off if f.axis in axes else "",
                fell_back=fallbacks.get(f.axis, ""),
                doubt=doubts.get(axes[f.axis].witness, "") if f.axis in axes else "",
            )
            for f in arm.finished.findings
            if f.axis in planned.requested
        ]  # fmt: skip

    def _doubts(self, name: str) -> dict[str, str]:
        """What the memory of a finished arm says against its claims, by what was measured."""
        arm = self.arms[name]
        weights = arm.loaded.weight_bytes if arm.loaded else None
        summary = self.summary(name)
        kv = doubt("kv", summary.kv_predicted_bytes, summary.kv_bytes)
        if arm.batch.pages is not None and self.request.traffic is not None and self.request.traffic.exact:
            kv = doubt("kv", arm.predicted_memory.get("kv"), arm.batch.pages.cache_bytes)
        return {
            "weights": doubt("weights", arm.predicted_memory.get("weights"), weights),
            "kv": kv,
        }
