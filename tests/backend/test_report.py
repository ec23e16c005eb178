"""A run as a document and as a table, from records alone: no worker is started."""

import json
from typing import Any

from backend.config import Workload
from backend.messages import (
    Compiled,
    CompiledGraph,
    Event,
    Finding,
    Finished,
    Loaded,
    Mark,
    Progress,
    Samples,
    Started,
    Tokens,
)
from backend.records import ArmEvent, ArmPlanned, ArmRequest, Created, Ended, Foretold, KvPoint, Request, Verdict
from backend.report import document, predicted_series, table
from backend.rules import check
from backend.runs import Run
from tests.facts import CPU, H200, facts
from tests.ui.runs import encoder, ended, passes

CHOICES = {"dtype": "auto", "attention": "sdpa", "cache": "dynamic", "compile": "off"}
PLANNED = {**CHOICES, "dtype": "bfloat16", "attention": "eager"}
SINKS = Verdict("fallback", "attention", "It has sinks.", {"attention": "eager"}, "a source", "eager")


def begun(arms: str = "AB", machine: Any = CPU, model: str = "pocket") -> Run:
    request = Request(model, [ArmRequest(name) for name in arms], Workload(prompt="x", max_new_tokens=3))
    planned = [ArmPlanned(name, CHOICES, PLANNED, [SINKS], {"total": 5}) for name in arms]
    return Run(Created("c0ffee", 1000.0, request, planned, "Pocket, 5M", "a note", machine.describe(), machine.device))


def fill(run: Run, arm: str, text: str = "a cat") -> None:
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
    run.append(Foretold(arm, [KvPoint(4, 10, 20), KvPoint(6, 12, 22)]))


def whole(run: Run) -> dict[str, Any]:
    made = document(run, {name: {"sliding": [1, 2, 3], "full": [4, 5, 6]} for name in run.lanes})
    loaded: dict[str, Any] = json.loads(json.dumps(made, allow_nan=False))
    return loaded


def test_the_document_has_the_shape_that_was_promised() -> None:
    run = begun()
    fill(run, "A")
    fill(run, "B")
    run.append(Ended(3.0, "done"))
    found = whole(run)
    assert (found["schema"], found["model"], found["status"]) == (1, "pocket", "done")
    assert found["machine"] == CPU.describe()
    assert "python" in found["versions"]
    a, b = found["arms"]
    assert (a["name"], b["name"]) == ("A", "B")
    assert (a["requested"], a["planned"]) == (CHOICES, PLANNED)
    assert a["effective"] == {"attention": "eager", "cache": "dynamic", "compile": "default"}
    assert [(row["axis"], row["status"]) for row in a["evidence"]] == [
        ("attention", "fallback"), ("cache", "proved"), ("compile", "failed"),
    ]  # fmt: skip
    assert a["evidence"][0] == {
        "axis": "attention", "requested": "sdpa", "planned": "eager", "effective": "eager", "proof": "no fused",
        "status": "fallback", "reason": "It has sinks.",
    }  # fmt: skip
    assert a["ttft_s"] == 0.1
    assert a["latency_s"] == [0.1, 0.1, 0.15]
    assert a["kv_bytes"] == {"sliding": [10, 11, 12], "full": [20, 21, 22]}
    assert a["kv_bytes_predicted"] == {"sliding": [1, 2, 3], "full": [4, 5, 6]}
    assert a["memory_bytes"] == [7, 8, 8]
    assert (a["text"], a["token_ids"]) == ("a cat", [1, 2, 3])
    assert a["phases_s"] == {"load": 1.5}
    assert a["summary"]["tokens"] == 3
    assert a["summary"]["kv_predicted_bytes"] == 34
    assert a["verdicts"][0]["reason"] == "It has sinks."


def test_a_run_that_never_began_is_a_document_too() -> None:
    run = begun("A")
    run.append(Ended(0.5, "failed", "It broke."))
    (arm,) = whole(run)["arms"]
    assert (arm["ttft_s"], arm["latency_s"], arm["text"], arm["effective"]) == (None, [], "", {})
    assert whole(run)["message"] == "It broke."
    assert "n/a" in table(run)


def test_the_table_has_both_arms_the_ledger_and_one_text_when_they_agree() -> None:
    run = begun()
    fill(run, "A")
    fill(run, "B")
    shown = table(run)
    assert shown.splitlines()[0] == "Pocket, 5M on a CPU"
    for part in ("arm A", "arm B", "a note", "Time to first token", "100 ms", "sdpa -> eager -> eager", "FELL BACK",
                 "It has sinks.", "NOT IN EFFECT", "Both arms wrote the same text:\na cat"):  # fmt: skip
        assert part in shown
    assert shown.count("a cat") == 1


def test_the_table_has_two_texts_when_they_differ_and_names_a_gpu() -> None:
    run = begun(machine=H200)
    fill(run, "A")
    fill(run, "B", "a dog")
    shown = table(run)
    assert shown.splitlines()[0].startswith("Pocket, 5M on NVIDIA H200, 140.0 GiB")
    assert "Text of arm A:\na cat" in shown
    assert "Text of arm B:\na dog" in shown
    assert "the same text" not in shown


def test_a_models_text_cannot_steer_the_terminal() -> None:
    run = begun("A")
    fill(run, "A", "\x1b]0;owned\x07\x1b[2J\x9b1mcat\nend")
    shown = table(run)
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    assert "cat\nend" in shown
    assert "\x1b" in whole(run)["arms"][0]["text"], "the document keeps what the model wrote"


def test_predictions_have_one_entry_for_each_token_that_was_made() -> None:
    run = begun("AB")
    fill(run, "A")
    from backend.arms import make_config

    plans = {n: check(make_config("pocket", {"cache": "static"}), facts(), CPU, run.request.workload) for n in "AB"}
    series = predicted_series(run, None, plans)
    assert [len(series["A"][kind]) for kind in ("sliding", "full")] == [3, 3]
    assert len(set(series["A"]["full"])) == 1, "a static cache does not grow"
    assert series["B"] == {"sliding": [], "full": []}


def test_marks_and_what_was_compiled_are_told() -> None:
    run = begun("A")
    graphs = [CompiledGraph(8.0), CompiledGraph(2.0, "x <= 127")]
    marks = [Mark("window", 1, 0.2, 0.0, "window filled"), *(Mark("gc", 2, 0.3, 0.004, "collected") for _ in range(6))]
    events: list[Event] = [
        Started(4, 1, 3, []),
        Tokens(0, [0.1, 0.2, 0.3], [0.1] * 3, [0] * 3, [0] * 3, [0] * 3, [1, 2, 3], "cat"),
        *marks,
        Finished("length", "cat", 0.1, 0.35, 9, "RSS", "a clock", [], {},
                 Compiled(4.0, graphs, {"a break": 2}, {"cpu device": 1}, 0, 2, 0, 500, 0, 31.0)),
    ]  # fmt: skip
    for event in events:
        run.append(ArmEvent("A", 0, 2.0, event))
    (arm,) = whole(run)["arms"]
    assert arm["marks"][0] == {"kind": "window", "token": 1, "t_s": 0.2, "seconds": 0.0, "text": "window filled"}
    assert len(arm["marks"]) == 7
    found = arm["compile"]
    assert (found["cold_s"], found["graphs"], found["graph_s"]) == (4.0, 2, [8.0, 2.0])
    assert found["recompiles"] == [{"guard": "x <= 127", "seconds": 2.0}]
    assert (found["graph_breaks"], found["cudagraph_skips"]) == ({"a break": 2}, {"cpu device": 1})
    assert (found["cache_hits"], found["cold_before_s"], found["saved_s"]) == (2, 31.0, 27.0)
    shown = table(run)
    assert "Arm A, token 1: window filled\n" in shown and "Arm A, token 2: collected (4.00 ms)" in shown
    assert "Arm A: 2 more marks" in shown


def test_an_arm_that_compiled_nothing_has_no_such_part() -> None:
    run = begun("A")
    fill(run, "A")
    (arm,) = whole(run)["arms"]
    assert (arm["marks"], arm["compile"]) == ([], None)


def test_repeats_spoilers_and_the_comparison_are_in_both() -> None:
    run = begun()
    for name in "AB":
        fill(run, name)
        run.append(ArmEvent(name, 0, 2.0, Mark("foreign", 1, 0.1, 0.2, "another program used the GPU")))
        run.append(ArmEvent(name, 1, 3.0, Tokens(0, [0.1, 0.2], [0.1, 0.1], [1] * 2, [1] * 2, [1] * 2, [1] * 2, "x")))
        run.append(
            ArmEvent(name, 1, 3.0, Finished("length", "x", 0.1, 0.2, 9, "RSS", "a clock", [], {"energy_j": 4.0}))
        )
    run.append(Ended(4.0, "done"))
    found = whole(run)
    compared = found["comparison"]
    assert (found["unit"], compared["verdict"], compared["pairs"]) == ("token", "no_difference", 2)
    assert found["comparison"]["low"] == found["comparison"]["high"] == 1.0
    for arm in found["arms"]:
        assert [len(run["latency_s"]) for run in arm["repeats"]] == [3, 2]
        assert [run["extra"] for run in arm["repeats"]] == [{}, {"energy_j": 4.0}]
        assert "another program used the GPU" in arm["spoilers"][0]
        assert arm["launch_bound"] is None
    shown = table(run)
    assert "No difference found: time per token A/B is 1.000" in shown
    assert "Arm A: May be spoiled: another program used the GPU" in shown


def test_an_encoders_run_has_passes_and_no_tokens() -> None:
    run = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        run.append(record)
    found = whole(run)
    (arm,) = found["arms"]
    assert (found["unit"], found["comparison"]) == ("forward", None)
    assert (arm["ttft_s"], arm["token_ids"], arm["text"]) == (None, [], "")
    assert len(arm["latency_s"]) == 20
    assert (arm["summary"]["ttft_s"], arm["summary"]["kv_bytes"]) == (None, None)
    assert arm["summary"]["latency_mean_s"] == 0.01, "the first pass is one of them"
    shown = table(run)
    assert "Forward pass latency, median" in shown and "Text of arm" not in shown and "first token" not in shown
