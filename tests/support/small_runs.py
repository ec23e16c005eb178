"""Small runs of two arms with every kind of record, for tests of the document and of the table."""

from typing import Any

from tests.support.machines import CPU
from tokendyno.backend.config import ArmRequest, Request, Workload
from tokendyno.backend.evidence import Finding, Verdict
from tokendyno.backend.hardware import versions
from tokendyno.backend.messages import (
    Annotation,
    Compiled,
    CompiledGraph,
    Event,
    Finished,
    Loaded,
    Progress,
    Samples,
    Started,
    Tokens,
)
from tokendyno.backend.predict.kv import KvPoint
from tokendyno.backend.runs.records import ArmEvent, ArmPlanned, Created, Ended, Predicted
from tokendyno.backend.runs.run import Run

CHOICES = {"dtype": "auto", "attention": "sdpa", "cache": "dynamic", "compile": "off"}
PLANNED = {**CHOICES, "dtype": "bfloat16", "attention": "eager"}
SINKS = Verdict("fallback", "attention", "It has sinks.", {"attention": "eager"}, "a source", "eager")


def begun(arms: str = "AB", machine: Any = CPU, model: str = "pocket") -> Run:
    """A run of which only the first record is there."""
    request = Request(model, [ArmRequest(name) for name in arms], Workload(prompt="x", max_new_tokens=3))
    planned = [ArmPlanned(name, CHOICES, PLANNED, [SINKS], {"total": 5}) for name in arms]
    return Run(
        Created(
            "c0ffee",
            1000.0,
            request,
            planned,
            "Pocket, 5M",
            "a note",
            machine.describe(),
            machine.device,
            versions=versions(),
        )
    )


def fill(run: Run, arm: str, text: str = "a cat") -> None:
    """One whole repeat of an arm."""
    for event in (
        Progress("load", "begin", 0.0),
        Progress("load", "end", 1.5, 1.0),
        Loaded(10, 5, False),
        Started(4, 1, 3, ["a remark"]),
        Tokens(0, [0.1, 0.2], [0.1, 0.1], [10, 11], [20, 21], [7, 8], [1, 2], text[:2]),
        Samples([0.05], [9]),
        Tokens(2, [0.35], [0.15], [12], [22], [8], [3], text[2:]),
        Finished("length", text, 0.1, 0.35, 9, "RSS", "a clock", [
            Finding("attention", "eager", "no fused"), Finding("cache", "dynamic", "4 layers"),
            Finding("compile", "default", "1 graph")], {}),
    ):  # fmt: skip
        run.append(ArmEvent(arm, 0, 2.0, event))
    run.append(Predicted(arm, [KvPoint(4, 10, 20), KvPoint(6, 12, 22)]))


def annotated() -> Run:
    """One arm that compiled, with seven annotations."""
    run = begun("A")
    graphs = [CompiledGraph(8.0), CompiledGraph(2.0, "x <= 127")]
    marks = [
        Annotation("window", 1, 0.2, 0.0, "window filled"),
        *(Annotation("gc", 2, 0.3, 0.004, "collected") for _ in range(6)),
    ]
    events: list[Event] = [
        Started(4, 1, 3, []),
        Tokens(0, [0.1, 0.2, 0.3], [0.1] * 3, [0] * 3, [0] * 3, [0] * 3, [1, 2, 3], "cat"),
        *marks,
        Finished("length", "cat", 0.1, 0.35, 9, "RSS", "a clock", [], {},
                 Compiled(4.0, graphs, {"a break": 2}, {"cpu device": 1}, 0, 2, 0, 500, 0, 31.0)),
    ]  # fmt: skip
    for event in events:
        run.append(ArmEvent("A", 0, 2.0, event))
    return run


def repeated() -> Run:
    """Two arms of two repeats each, with interference in the first."""
    run = begun()
    for name in "AB":
        fill(run, name)
        run.append(ArmEvent(name, 0, 2.0, Annotation("foreign", 1, 0.1, 0.2, "another program used the GPU")))
        run.append(ArmEvent(name, 1, 3.0, Tokens(0, [0.1, 0.2], [0.1, 0.1], [1] * 2, [1] * 2, [1] * 2, [1] * 2, "x")))
        run.append(
            ArmEvent(name, 1, 3.0, Finished("length", "x", 0.1, 0.2, 9, "RSS", "a clock", [], {"energy_j": 4.0}))
        )
    run.append(Ended(4.0, "done"))
    return run
