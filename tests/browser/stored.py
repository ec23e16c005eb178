"""Runs that lie in the app's history before it starts: what a visitor of a permalink meets."""

from backend.messages import Event, Failed, Finding, Finished, Loaded, Progress, Started
from backend.records import ArmEvent, ArmPlanned, ArmRequest, Created, Record, Request, Verdict
from tests.ui.runs import arm_records, created, ended

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
    """A run in which every word that a model, a name or an error can bring is markup."""
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


RUNS: dict[str, list[Record]] = {
    "same": [created("same"), *arm_records("A", 5, "one text"), *arm_records("B", 5, "one text"), ended()],
    "one": [created("one", ["A"]), *arm_records("A", 20), ended()],
    "broken": [
        created("broken"), *arm_records("A", 9, done=False),
        ended("failed", "The worker of arm A was killed (SIGKILL). Press Run to try again."),
    ],
    "evil": evil(),
    "two": [created("two"), *arm_records("A", 64), *arm_records("B", 50), ended()],
}  # fmt: skip
