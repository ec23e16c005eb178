"""What a test measured, run by run: the numbers from which every figure of a claim follows."""

import math
from collections.abc import Sequence

import msgspec

from tokendyno.backend.claims.declared import Metric
from tokendyno.backend.runs.arm_series import ArmSeries
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.statistics import mean

Samples = dict[str, dict[Metric, list[float]]]
"""Arm -> metric -> a number for each run, or one number where it is the same in all. An arm lacks what it has not."""

BLOCK = 16
"""Positions."""

BAD = ("failed", "fallback", "no_effect")
"""Statuses of a choice that was not in effect."""


class Doubt(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A choice that an arm asked for, and its ledger does not show as verified."""

    arm: str
    axis: str
    status: str
    reason: str

    @property
    def void(self) -> bool:
        """Whether the test says nothing, because the choice was not in effect."""
        return self.status in BAD


def samples(run: Snapshot) -> Samples:
    """The samples of every arm; times in seconds, sizes in bytes.

    token_s           mean time of a token after the first, of each run
    ttft_s            time to first token, of each run
    cold_s            compile phase
    load_s            loading the model
    weight_bytes      weights as loaded
    kv_bytes          KV cache after the last token
    peak_bytes        most that the allocator handed out (on a CPU: of the process), of each run
    temporary_bytes   that, without weights and KV cache; none where layers are spread over several devices
    process_bytes     most memory of the process, the driver's included, of each run
    useful_tokens_s   of many requests: tokens asked for, a second, of each run
    top1_agreement, kl_nats, perplexity_ratio  against arm A, of each block of positions of given texts
    """
    return {name: {**_of_arm(arm), **_of_texts(run, name)} for name, arm in run.arms.items()}


def joined(runs: Sequence[Samples]) -> Samples:
    """The samples of several runs of the same arms, one after the other."""
    return {
        arm: {metric: [value for run in runs for value in run[arm].get(metric, ())] for metric in metrics}
        for arm, metrics in runs[0].items()
    }


def doubts(run: Snapshot) -> list[Doubt]:
    """Choices that were asked for and are not verified."""
    in_doubt = []
    for arm in run.request.arms:
        for row in run.ledgers[arm.name]:
            if row.finding.axis in arm.choices and row.status in (*BAD, "partial"):
                in_doubt.append(Doubt(arm.name, row.finding.axis, row.status, row.reason or row.finding.proof))
    return in_doubt


def _of_arm(arm: ArmSeries) -> dict[Metric, list[float]]:
    ends = [arm.finishes[n] for n in sorted(arm.finishes) if arm.completed(n)]
    runs = [finish.latencies_s for n, finish in arm.measured().items() if arm.completed(n) and finish.latencies_s]
    kv = [float(full + sliding) for full, sliding in zip(arm.kv_full[-1:], arm.kv_sliding[-1:], strict=True)]
    weights = [float(arm.loaded.weight_bytes)] if arm.loaded else []
    peaks = [float(finish.counts.memory.allocator_peak_bytes or finish.peak_memory_bytes) for finish in ends]
    compiled = arm.finished.compiled if arm.finished else None
    loading = arm.phases.get("load")
    spread = any(part.of == "device" for finish in ends for part in finish.ranks)  # a peak is that of one device
    useful = [n / finish.wall_s for finish in ends if (n := finish.counts.requests.useful_tokens) and finish.wall_s]
    by_metric: dict[Metric, list[float]] = {
        "token_s": [step for run in runs if (step := mean(run[1:])) is not None],
        "ttft_s": [run[0] for run in runs],
        "cold_s": [compiled.cold_s] if compiled else [],
        "load_s": [loading.seconds] if loading and arm.loaded and not arm.loaded.reused else [],
        "weight_bytes": weights,
        "kv_bytes": kv,
        "peak_bytes": peaks,
        "temporary_bytes": [peak - weights[0] - sum(kv) for peak in peaks] if weights and not spread else [],
        "process_bytes": [float(finish.peak_memory_bytes) for finish in ends],
        "useful_tokens_s": useful,
    }
    return {metric: values for metric, values in by_metric.items() if values}


def _of_texts(run: Snapshot, name: str) -> dict[Metric, list[float]]:
    """Of arm B, a number for each block of positions: neighbours depend on each other, blocks hardly do."""
    arms = list(run.arms.values())
    if len(arms) != 2 or name != arms[1].name:
        return {}
    by_metric: dict[Metric, list[float]] = {"top1_agreement": [], "kl_nats": [], "perplexity_ratio": []}
    for a, b in zip(arms[0].scores, arms[1].scores, strict=False):
        for begin in range(0, len(b.nll_nats) - BLOCK + 1, BLOCK):
            block = slice(begin, begin + BLOCK)
            more = [there - here for here, there in zip(a.nll_nats[block], b.nll_nats[block], strict=True)]
            same = [here == there for here, there in zip(a.top[block], b.top[block], strict=True)]
            by_metric["perplexity_ratio"].append(math.exp(math.fsum(more) / BLOCK))
            by_metric["top1_agreement"].append(sum(same) / BLOCK)
            by_metric["kl_nats"].append(math.fsum(b.kl_nats[block]) / BLOCK)
    return {metric: values for metric, values in by_metric.items() if values}
