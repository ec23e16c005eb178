"""Runs that are in the history before the app starts, for tests that open a permalink."""

import time

import msgspec

from tests.support.batches import batch_arm, batch_created, paged_events, static_events
from tests.support.runs import arm_records, created, encoder, ended, passes
from tokendyno.backend import hardware
from tokendyno.backend.config import ArmRequest, Request, reading_of
from tokendyno.backend.counts import StepTime
from tokendyno.backend.evidence import Finding, Verdict
from tokendyno.backend.messages import Annotation, Event, Failed, Finished, Loaded, Progress, Scored, Started
from tokendyno.backend.quality import Quality, QualityText
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created, Predicted, Record, StepReads, WaitKeys

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)>",
    "${alert(4)} {{constructor.constructor('alert(5)')()}} `${alert(6)}`",
    "[x](javascript:alert(7)) ![y](http://127.0.0.1:9/pixel.png)",
    "</textarea><iframe srcdoc='<script>parent.alert(8)</script>'>",
    '" onmouseover="alert(9)',
    "<a href='javascript:alert(10)'>x</a>",
]
EVIL = " ".join(HOSTILE)


def evil() -> list[Record]:
    """A run in which every text that comes from a model, a name or an error is markup."""
    plain = created("evil")
    verdicts = [Verdict("fallback", "cache", EVIL, {"cache": "static"}, EVIL, "static")]
    arms = [ArmPlanned(a.name, {"cache": EVIL}, {"cache": "dynamic"}, verdicts) for a in plain.arms]
    asked = [ArmRequest(arm.name, {}) for arm in plain.arms]
    request = Request(EVIL, asked, plain.request.workload)
    first = Created("evil", plain.created - 9000, request, arms, EVIL, EVIL, {EVIL: EVIL}, "cpu")
    records: list[Record] = [first]
    for name in ("A", "B"):
        records += arm_records(name, 5, f"{name} {EVIL}", done=False)
        events: list[Event] = [
            Started(10, 1, 64, [EVIL]),
            Progress("run", "step", 0.5, 0.5, EVIL),
            Loaded(1, 1, False),
            Finished("length", f"{name} {EVIL}", 0.1, 1.0, 2**29, EVIL, EVIL, [Finding("cache", EVIL, EVIL)], {}),
            Failed("run", EVIL, EVIL, EVIL),
        ]
        records += [ArmEvent(name, 0, 1.0, event) for event in events]
    return [*records, ended("failed", EVIL)]


def annotations() -> list[Record]:
    """One of every kind; the text of one is markup."""
    guard = "compiled again, because this failed: kwargs['past_key_values'].layers[0].cumulative_length_int <= 127"
    found = [
        ("A", Annotation("window", 21, 0.3, 0.0, "window filled: from here on the sliding layers hold 31 tokens")),
        ("A", Annotation("recompile", 22, 0.3, 2.9, guard)),
        ("A", Annotation("gc", 40, 0.4, 0.131, "Python collected garbage (generation 2)")),
        ("A", Annotation("foreign", 0, 0.1, 0.5, "on the prefill")),
        ("B", Annotation("cache", 12, 0.2, 0.0, "the GPU allocator took more memory from the device, for this token")),
        ("B", Annotation("graph_skip", 30, 0.4, 0.0, EVIL)),
        ("B", Annotation("throttle", 35, 0.4, 0.2, "clocks lowered: power cap")),
        ("B", Annotation("compile", 40, 0.4, 0.2, "a CUDA graph was recorded")),
    ]
    return [ArmEvent(arm, 0, 1.0, mark) for arm, mark in found]


STEP = StepTime(3, 0.012, False, {"attention": 0.003, "products": 0.004, "other": 0.002, "host": 0.003}, {EVIL: 0.001})


def traced() -> list[Record]:
    """Arm A has a traced step, arm B says why it has none."""
    found: list[Record] = [created("traced")]
    for name, step, why in (("A", STEP, ""), ("B", None, "the run has a single token")):
        for record in arm_records(name, 20):
            match record:
                case Predicted():
                    record = msgspec.structs.replace(record, reads=StepReads(2**23, 2**15, 1e10, "a test"))
                case ArmEvent(event=Finished() as end):
                    end = msgspec.structs.replace(end, step=step, no_step=why)
                    record = msgspec.structs.replace(record, event=end)
            found.append(record)
    return [*found, ended()]


def reading(run_id: str = "reading", keys: str = "AB") -> list[Record]:
    """The arms of `gated` on two texts. `keys`: a letter as the key of each plan."""
    quality = Quality([QualityText("story", "Once upon a time."), QualityText("notes", "Once upon a time")])
    first = keyed(run_id, keys)
    request = msgspec.structs.replace(first.request, workload=reading_of(quality), quality=quality)
    scores = {
        "A": [Scored([1, 2, 3, 4], [1.0, 2.0, 3.0, 2.0], [1, 2, 9, 9]), Scored([5, 6], [0.5, 0.7], [5, 6])],
        "B": [
            Scored([1, 2, 3, 4], [1.1, 2.0, 3.1, 2.1], [1, 2, 9, 8], [0.01, 0.02, 0.05, 0.04]),
            Scored([5, 6], [0.5, 0.7], [5, 6], [0.03, 0.03]),
        ],
    }
    found: list[Record] = [msgspec.structs.replace(first, request=request)]
    for name in "AB":
        found += [ArmEvent(name, 0, 0.1, one) for one in scores[name]]
        found += arm_records(name, 40)
    return [*found, ended()]


def unbegun() -> list[Record]:
    """Both arms in float32, in which a CPU keeps its workers: bfloat16 leaves kernels behind for each length."""
    first = created("unbegun")
    arms = [msgspec.structs.replace(arm, choices={"dtype": "float32", **arm.choices}) for arm in first.request.arms]
    request = msgspec.structs.replace(first.request, arms=arms)
    failed = ended("failed", "No worker could be started. Press Run to try again.")
    return [msgspec.structs.replace(first, request=request), failed]


def keyed(run_id: str, keys: str = "AB") -> Created:
    """Arms of which it is known by which plans they ran: a letter as the key of each."""
    first = created(run_id)
    plans = zip(first.arms, keys, strict=True)
    arms = [msgspec.structs.replace(arm, waits=WaitKeys(plan=key)) for arm, key in plans]
    return msgspec.structs.replace(first, arms=arms)


def started() -> list[Record]:
    """Of somebody else, on this machine: the defaults, and what compiles for 12 s more."""
    first, machine = created("started", owner="another"), hardware.detect().describe()
    asked = ({"dtype": "auto"}, {"dtype": "auto", "compile": "default"})
    arms = [msgspec.structs.replace(arm, requested=one) for arm, one in zip(first.arms, asked, strict=True)]
    found: list[Record] = [msgspec.structs.replace(first, arms=arms, machine=machine, versions=hardware.versions())]
    for name, warmup_s in (("A", 1.0), ("B", 13.0)):
        for progress in (
            Progress("load", "end", 0.5),
            Progress("warmup", "end", warmup_s),
            Progress("run", "end", 1.0),
        ):
            found.append(ArmEvent(name, 0, 1.0, progress))
    return [*found, ended()]


AN_HOUR_AGO = time.time() - 3_600
"""Not the newest, which a page opens by itself, nor so old that it would be deleted."""

RUNS: dict[str, list[Record]] = {
    "reading": reading(),
    "unread": [keyed("unread", "CD"), *arm_records("A", 64), *arm_records("B", 50), ended()],
    "gated": [keyed("gated"), *arm_records("A", 64), *arm_records("B", 50), ended()],
    "batch": [
        batch_created("batch", at_s=AN_HOUR_AGO), *batch_arm("A", static_events()), *batch_arm("B", paged_events()),
        ended(),
    ],
    "same": [created("same"), *arm_records("A", 5, "one text"), *arm_records("B", 5, "one text"), ended()],
    "one": [created("one", ["A"]), *arm_records("A", 20), ended()],
    "broken": [
        created("broken"), *arm_records("A", 9, done=False),
        ended("failed", "The worker of arm A was killed (SIGKILL). Press Run to try again."),
    ],
    "evil": evil(),
    "passes": [
        encoder(arms="AB", repeats=2),
        *(r for n in range(2) for arm, pass_s in (("A", 0.02), ("B", 0.01)) for r in passes(arm, 20, n, pass_s)),
        ended(),
    ],
    "marked": [
        created("marked"), *arm_records("A", 64), *arm_records("B", 50), *annotations(), ended(),
    ],
    "traced": traced(),
    "unbegun": unbegun(),
    "two": [created("two"), *arm_records("A", 64), *arm_records("B", 50), ended()],
}  # fmt: skip
