"""The JSON document keeps its keys and values: a document of tokendyno 0.1.0 decodes strictly and is written again.

`stored_document.json` is what `compare --json` wrote for the run in `tests/backend/runs/stored_history.jsonl`;
its times over two runs are those of `estimate`, which came later.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.runs import arm_records, created, encoder, ended, passes
from tests.support.small_runs import annotated, begun, fill, repeated
from tokendyno.backend.runs.records import Created, Ended, Predicted, PrefillBound, decode_record
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.document import document
from tokendyno.backend.views.schema import Document

TEXT = (Path(__file__).parent / "stored_document.json").read_bytes()
STORED: dict[str, Any] = json.loads(TEXT)
HISTORY = Path(__file__).parents[1] / "runs" / "stored_history.jsonl"
MAPS = {
    "machine",
    "versions",
    "requested",
    "planned",
    "effective",
    "extra",
    "phases_s",
    "memory_predicted_bytes",
    "graph_breaks",
    "cudagraph_skips",
    "stages_s",
    "peak_bytes",
}
"""Keys whose value is a map: what it holds depends on the run."""


def keys(value: Any) -> Any:
    """The keys of a document in order, without its values; of a list those of its first element."""
    match value:
        case dict():
            return {key: {} if key in MAPS else keys(item) for key, item in value.items()}
        case [first, *_]:
            return keys(first)
        case _:
            return None


def as_json(document: Document) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(document), allow_nan=False))
    return decoded


def test_the_stored_document_is_read_and_written_again_without_a_loss() -> None:
    assert as_json(msgspec.json.decode(TEXT, type=Document)) == STORED


@pytest.mark.parametrize(
    "where", [(), ("workload",), ("arms", 0), ("arms", 0, "summary"), ("arms", 1, "compile"), ("comparison",)]
)
def test_an_unknown_key_is_noticed(where: tuple[Any, ...]) -> None:
    """In a struct it is an error; where unknown keys are ignored, it is lost on the way back."""
    changed = json.loads(TEXT)
    part = changed
    for step in where:
        part = part[step]
    part["unheard_of"] = 1
    try:
        assert as_json(msgspec.convert(changed, Document)) != changed
    except msgspec.ValidationError as error:
        assert "unheard_of" in str(error)


def test_the_bound_of_a_prefill_is_there_where_it_is_known() -> None:
    run = Run(created())
    for record in [*arm_records("A", 4), *arm_records("B", 4), ended()]:
        if isinstance(record, Predicted) and record.arm == "A":
            record = msgspec.structs.replace(record, prefill=PrefillBound(0.001, "compute", "1 Tflop"))
        run.append(record)
    a, b = as_json(document(run))["arms"]
    assert a["roofline"]["prefill"] == {
        "seconds": 0.001,
        "share": pytest.approx(0.001 / a["ttft_s"]),
        "limited_by": "compute",
        "work": "1 Tflop",
    }
    assert "prefill" not in b["roofline"]


def test_the_stored_run_gives_the_stored_document() -> None:
    """Every figure; only the packages installed here and the sentences on interference may differ."""
    first, *rest = (decode_record(line) for line in HISTORY.read_bytes().splitlines())
    assert isinstance(first, Created)
    run = Run(first)
    for record in rest:
        run.append(record)
    sent = as_json(document(run))
    for arm, stored in zip(sent["arms"], STORED["arms"], strict=True):
        assert len(arm["interference"]) == len(stored["interference"])
        arm["interference"] = stored["interference"]
    assert sent | {"versions": {}} == STORED | {"versions": {}}
    assert list(sent) == list(STORED) and list(sent["arms"][0]) == list(STORED["arms"][0])


def test_an_encoders_run_has_the_same_keys() -> None:
    run = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        run.append(record)
    (arm,) = as_json(document(run))["arms"]
    assert [*arm, "prompt_pass"] == list(STORED["arms"][0])
    assert keys(arm["summary"]) == keys(STORED["arms"][0]["summary"])
    assert keys(arm["annotations"]) == {"kind": None, "token": None, "t_s": None, "seconds": None, "text": None}


# --- runs of every kind ----------------------------------------------------------------------------


def test_a_run_that_never_began_is_a_document_too() -> None:
    run = begun("A")
    run.append(Ended(0.5, "failed", "It broke."))
    sent = as_json(document(run))
    (arm,) = sent["arms"]
    assert (arm["ttft_s"], arm["latency_s"], arm["text"], arm["effective"]) == (None, [], "", {})
    assert sent["message"] == "It broke."


def test_the_document_keeps_what_the_model_wrote() -> None:
    run = begun("A")
    fill(run, "A", "\x1b]0;owned\x07\x1b[2J\x9b1mcat\nend")
    assert "\x1b" in as_json(document(run))["arms"][0]["text"]


def test_annotations_and_what_was_compiled_are_in_it() -> None:
    run = annotated()
    (arm,) = as_json(document(run))["arms"]
    assert arm["annotations"][0] == {"kind": "window", "token": 1, "t_s": 0.2, "seconds": 0.0, "text": "window filled"}
    assert len(arm["annotations"]) == 7
    report = arm["compile"]
    assert (report["cold_s"], report["graphs"], report["graph_s"]) == (4.0, 2, [8.0, 2.0])
    assert report["recompiles"] == [{"guard": "x <= 127", "seconds": 2.0}]
    assert (report["graph_breaks"], report["cudagraph_skips"]) == ({"a break": 2}, {"cpu device": 1})
    assert (report["cache_hits"], report["cold_before_s"], report["saved_s"]) == (2, 31.0, 27.0)


def test_repeats_interference_and_the_comparison_are_in_it() -> None:
    run = repeated()
    sent = as_json(document(run))
    compared = sent["comparison"]
    assert (sent["unit"], compared["verdict"], compared["pairs"]) == ("token", "no_difference", 2)
    assert sent["comparison"]["low"] == sent["comparison"]["high"] == 1.0
    for arm in sent["arms"]:
        assert [len(run["latency_s"]) for run in arm["repeats"]] == [3, 2]
        assert [run["extra"] for run in arm["repeats"]] == [{}, {"energy_j": 4.0}]
        assert "another program used the GPU" in arm["interference"][0]
        assert arm["launch_bound"] is None


def test_an_encoders_run_has_passes_and_no_tokens() -> None:
    run = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        run.append(record)
    sent = as_json(document(run))
    (arm,) = sent["arms"]
    assert (sent["unit"], sent["comparison"]) == ("forward", None)
    assert (arm["ttft_s"], arm["token_ids"], arm["text"]) == (None, [], "")
    assert len(arm["latency_s"]) == 20
    assert (arm["summary"]["ttft_s"], arm["summary"]["kv_bytes"]) == (None, None)
    assert arm["summary"]["latency_mean_s"] == 0.01, "the first pass is one of them"
