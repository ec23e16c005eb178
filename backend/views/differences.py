"""The figures of two arms against each other, for the tiles: a short text, and which is better beyond noise."""

from collections.abc import Mapping

import msgspec

from tokendyno.backend.runs.batch_summary import BatchSummary
from tokendyno.backend.runs.snapshot import Snapshot
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.views.verdict import SAME_BYTES, bytes_of, less_or_more, memory_noise

Interval = tuple[float, float]


class Difference(msgspec.Struct, frozen=True):
    """The better arm against the other in one figure; B against A where neither is better beyond noise: `better` ""."""

    text: str
    better: str = ""


def differences(run: Snapshot) -> Mapping[str, Difference]:
    """By the key of the tile, once both arms have ended a run. Of one prompt only once all is over: before, they are
    not at the same token. Times per token and rates differ by the ratio of the verdict. Of equal arms neither is
    better in anything."""
    if len(run.arms) != 2 or not all(arm.completed(0) for arm in run.arms.values()):
        return {}
    if run.request.traffic is not None:
        return _of_requests(*run.batch_summaries.values(), run.comparison())
    if not run.ended:
        return {}
    a, b = (run.summary(name) for name in run.arms)
    compared, equal = run.comparison(), run.equal_arms
    outcome, ratio = (compared.outcome, compared.ratio) if compared else ("unknown", None)
    faster = {"a_faster": "A", "b_faster": "B"}.get(outcome, "")
    noise = equal or outcome in ("no_difference", "undecided")
    sooner = "" if equal else _apart(a.ttft_interval_s, b.ttft_interval_s)
    known = a.ttft_interval_s is not None and b.ttft_interval_s is not None
    found = {
        "ttft": _of(a.ttft_s, b.ttft_s, sooner, equal or (known and not sooner)),
        "latency": _of(ratio, 1.0, faster, noise),
        "rate": _of(1.0, ratio, faster, noise),
        "share": _of(a.roofline_share, b.roofline_share, "", noise),
        "memory": _bytes(a.peak_memory_bytes, b.peak_memory_bytes, memory_noise(run), equal),
        "kv": _bytes(a.kv_bytes, b.kv_bytes, SAME_BYTES, equal),
    }
    return {key: difference for key, difference in found.items() if difference is not None}


def _of(a: float | None, b: float | None, better: str, noise: bool) -> Difference | None:
    if not a or not b:
        return None
    text = less_or_more(a / b - 1 if better == "A" else b / a - 1)
    if not text:
        return Difference("B the same")
    return Difference(f"{_than(better or 'B', text)}{', within noise' if noise else ''}", better)


def _bytes(a: int | None, b: int | None, noise: float, equal: bool) -> Difference | None:
    pair = bytes_of([a, b], noise)
    if pair is None:
        return None
    change = pair.change("B")
    if not change:
        return Difference("B the same")
    better = "B" if change < 0 else "A"
    text = _than(better, less_or_more(pair.change(better)))
    return Difference(f"{text}, within noise") if equal else Difference(text, better)


def _than(arm: str, text: str) -> str:
    """ "B 16% less", "B 11\u00d7 that of A"."""
    return f"{arm} {text} that of {'A' if arm == 'B' else 'B'}" if text.endswith("\u00d7") else f"{arm} {text}"


def _apart(a: Interval | None, b: Interval | None) -> str:
    """Which arm takes less time: "" if the intervals of both overlap, or are not known."""
    if a is None or b is None:
        return ""
    return "B" if b[1] < a[0] else "A" if a[1] < b[0] else ""


def _of_requests(a: BatchSummary, b: BatchSummary, compared: Comparison | None) -> Mapping[str, Difference]:
    """B against A, by the key of the tile. Figures of one run tell no noise, so only the ratio is called better."""
    ahead = {"a_faster": "A", "b_faster": "B"}.get(compared.outcome, "") if compared else ""
    pairs = {
        "useful": (1.0, compared.ratio if compared else None),
        "ttft": (a.ttft.median_s, b.ttft.median_s),
        "token": (a.token.median_s, b.token.median_s),
        "request": (a.request.median_s, b.request.median_s),
        "goodput": (a.goodput_s, b.goodput_s),
        "busy": (a.busy_share, b.busy_share),
    }
    found = {}
    for key, (one, other) in pairs.items():
        if one and other is not None:
            text = less_or_more(other / one - 1)
            better = "B" if key == "busy" and text and other > one else ahead if key == "useful" else ""
            found[key] = Difference(f"B {text}" if text else "B the same", better)
    return found
