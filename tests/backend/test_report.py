"""A run as a document and as a table, from records alone: no worker is started."""

import json
from typing import Any

from backend.config import Workload
from backend.messages import Finding, Finished, Loaded, Progress, Samples, Started, Tokens
from backend.records import ArmEvent, ArmPlanned, ArmRequest, Created, Ended, Foretold, KvPoint, Request, Verdict
from backend.report import document, predicted_series, table
from backend.rules import check
from backend.runs import Run
from tests.facts import CPU, H200, facts

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
