"""A run as a document, from records alone: no worker is started."""

import json
from typing import Any

import msgspec

from tests.support.runs import encoder, ended, passes
from tests.support.small_runs import annotated, begun, fill, repeated
from tokendyno.backend.runs.records import Ended
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.document import document


def whole(run: Run) -> dict[str, Any]:
    found = document(run)
    loaded: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(found), allow_nan=False))
    return loaded


def test_a_run_that_never_began_is_a_document_too() -> None:
    run = begun("A")
    run.append(Ended(0.5, "failed", "It broke."))
    (arm,) = whole(run)["arms"]
    assert (arm["ttft_s"], arm["latency_s"], arm["text"], arm["effective"]) == (None, [], "", {})
    assert whole(run)["message"] == "It broke."


def test_the_document_keeps_what_the_model_wrote() -> None:
    run = begun("A")
    fill(run, "A", "\x1b]0;owned\x07\x1b[2J\x9b1mcat\nend")
    assert "\x1b" in whole(run)["arms"][0]["text"]


def test_annotations_and_what_was_compiled_are_in_it() -> None:
    run = annotated()
    (arm,) = whole(run)["arms"]
    assert arm["annotations"][0] == {"kind": "window", "token": 1, "t_s": 0.2, "seconds": 0.0, "text": "window filled"}
    assert len(arm["annotations"]) == 7
    found = arm["compile"]
    assert (found["cold_s"], found["graphs"], found["graph_s"]) == (4.0, 2, [8.0, 2.0])
    assert found["recompiles"] == [{"guard": "x <= 127", "seconds": 2.0}]
    assert (found["graph_breaks"], found["cudagraph_skips"]) == ({"a break": 2}, {"cpu device": 1})
    assert (found["cache_hits"], found["cold_before_s"], found["saved_s"]) == (2, 31.0, 27.0)


def test_repeats_interference_and_the_comparison_are_in_it() -> None:
    run = repeated()
    found = whole(run)
    compared = found["comparison"]
    assert (found["unit"], compared["verdict"], compared["pairs"]) == ("token", "no_difference", 2)
    assert found["comparison"]["low"] == found["comparison"]["high"] == 1.0
    for arm in found["arms"]:
        assert [len(run["latency_s"]) for run in arm["repeats"]] == [3, 2]
        assert [run["extra"] for run in arm["repeats"]] == [{}, {"energy_j": 4.0}]
        assert "another program used the GPU" in arm["interference"][0]
        assert arm["launch_bound"] is None


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
