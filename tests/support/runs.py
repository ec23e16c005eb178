"""Runs made of records, without a worker."""

import time
from collections.abc import Sequence
from typing import Literal

import msgspec

from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.evidence import Finding
from tokendyno.backend.messages import Annotation, Event, Finished, Progress, Samples, Started, Tokens
from tokendyno.backend.predict.kv import KvPoint
from tokendyno.backend.runs.records import (
    ArmEvent,
    ArmPlanned,
    Created,
    Ended,
    Predicted,
    Record,
    RooflinePoint,
    Status,
)

PROMPT, WINDOW, TOKEN_BYTES = 10, 32, 512
PREDICTED_MEMORY = {
    "weights": 2**27,
    "kv": 2**16,
    "workspace": 2**20,
    "runtime": 2**28,
    "tensors": 2**28,
    "total": 2**29,
}


def kv(arm: str, length: int) -> int:
    """Bytes of the sliding layers: arm A stops at its window, arm B does not."""
    return TOKEN_BYTES * (min(length, WINDOW - 1) if arm == "A" else length)


def roofline(arm: str, last: int) -> list[RooflinePoint]:
    """Rises from 4 ms with the cache; in arm A it stops when the window is full."""
    return [RooflinePoint(n, 0.004 + 1e-7 * kv(arm, n)) for n in (PROMPT + 1, WINDOW - 1, last)]


def created(
    run_id: str = "run1", arms: Sequence[str] = "AB", owner: str = "", at_s: float | None = None, repeats: int = 1
) -> Created:
    """The first record: dtype auto becomes bfloat16, and B runs unwindowed. `at_s` None: now."""
    asked = [ArmRequest(name, {} if name == "A" else {"cache": "unwindowed"}) for name in arms]
    planned = []
    for arm in asked:
        cache = {"cache": arm.choices.get("cache", "dynamic")}
        planned.append(ArmPlanned(arm.name, {"dtype": "auto", **cache}, {"dtype": "bfloat16", **cache}, []))
    request = Request("pocket", asked, Workload(prompt="Once upon a time", max_new_tokens=64, repeats=repeats))
    return Created(run_id, time.time() if at_s is None else at_s, request, planned, "Pocket", "", {}, "cpu", owner)


def tokens(first: int, count: int, text: str = "") -> Tokens:
    """Consecutive tokens of 0.1 s each."""
    ids = list(range(first, first + count))
    times = [0.1 * (i + 1) for i in ids]
    return Tokens(first, times, [0.1] * count, [i * 2 for i in ids], [i * 3 for i in ids], [7] * count, ids, text)


def finished(text: str, reason: Literal["length", "eos", "cancelled"] = "length") -> Finished:
    """The end of a run of 1 s, with one proof."""
    return Finished(reason, text, 0.1, 1.0, 99, "label", "clock", [Finding("dtype", "bfloat16", "checked")], {})


def arm_records(arm: str, tokens: int, text: str = "", done: bool = True) -> list[Record]:
    """One arm's records, from its prediction to its end."""
    at = range(tokens)
    last = PROMPT + 63
    corners = [KvPoint(n, kv(arm, n), TOKEN_BYTES * n) for n in (PROMPT, WINDOW - 1, last)]
    events: list[Event] = [
        Started(PROMPT, 1, 64, []),
        Progress("run", "begin", 0.0),
        Tokens(
            0,
            [0.1 + 0.01 * i for i in at],
            [0.1] + [0.01] * (tokens - 1),
            [kv(arm, PROMPT + i) for i in at],
            [TOKEN_BYTES * (PROMPT + i) for i in at],
            [2**29] * tokens,
            list(at),
            text or "word " * tokens,
        ),
        Samples([0.0, 0.5], [2**29, 2**29 + 2**20]),
    ]
    if done:
        finding = Finding("cache", "dynamic" if arm == "A" else "unwindowed", "looked at the layers")
        events.append(Finished("length", text or "word " * tokens, 0.1, 1.0, 2**29, "RSS", "clock", [finding], {}))
    predicted = Predicted(arm, corners, roofline(arm, last), "250 GB/s, a test", "1 GB to read", PREDICTED_MEMORY)
    return [predicted, *(ArmEvent(arm, 0, 0.1 * i, event) for i, event in enumerate(events))]


def ended(status: Status = "done", message: str = "") -> Ended:
    """The last record."""
    return Ended(2.0, status, message)


# --- an encoder's run -----------------------------------------------------------------------------


def encoder(run_id: str = "passes", arms: Sequence[str] = "A", repeats: int = 1) -> Created:
    """The first record of a run in which forward passes are timed."""
    plain = created(run_id, arms)
    work = Workload(prompt="Once upon a time", max_new_tokens=20, repeats=repeats)
    request = Request("random:bert-base-uncased", plain.request.arms, work)
    return msgspec.structs.replace(plain, request=request, model_label="BERT", unit="forward")


def passes(arm: str, count: int, repeat: int = 0, pass_s: float = 0.01) -> list[Record]:
    """One repeat of an arm: passes of equal length, and some interference."""
    zeros = [0] * count
    events: list[Event] = [
        Started(PROMPT, 1, 20, []),
        Progress("run", "begin", 0.0),
        Tokens(0, [pass_s * (i + 1) for i in range(count)], [pass_s] * count, zeros, zeros, [2**29] * count, zeros, ""),
        Annotation("foreign", 3, 0.02, 0.1, "other programs kept some of the 2 CPU cores busy"),
        Finished("length", "", 0.0, pass_s * count, 2**29, "RSS", "clock", [Finding("cache", "dynamic", "none")], {}),
    ]
    return [ArmEvent(arm, repeat, 0.1 * i, event) for i, event in enumerate(events)]
