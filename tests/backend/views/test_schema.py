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
from tokendyno.backend.runs.records import Created, Predicted, PrefillBound, decode_record
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


def plain(found: Document) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(found), allow_nan=False))
    return loaded


def test_the_stored_document_is_read_and_written_again_without_a_loss() -> None:
    assert plain(msgspec.json.decode(TEXT, type=Document)) == STORED


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
        assert plain(msgspec.convert(changed, Document)) != changed
    except msgspec.ValidationError as error:
        assert "unheard_of" in str(error)


def test_the_bound_of_a_prefill_is_there_where_it_is_known() -> None:
    run = Run(created())
    for record in [*arm_records("A", 4), *arm_records("B", 4), ended()]:
        if isinstance(record, Predicted) and record.arm == "A":
            record = msgspec.structs.replace(record, prefill=PrefillBound(0.001, "compute", "1 Tflop"))
        run.append(record)
    one, other = plain(document(run))["arms"]
    assert one["roofline"]["prefill"] == {
        "seconds": 0.001,
        "share": pytest.approx(0.001 / one["ttft_s"]),
        "limited_by": "compute",
        "work": "1 Tflop",
    }
    assert "prefill" not in other["roofline"]


def test_the_stored_run_gives_the_stored_document() -> None:
    """Every figure; only the packages installed here and the sentences on interference may differ."""
    first, *rest = (decode_record(line) for line in HISTORY.read_bytes().splitlines())
    assert isinstance(first, Created)
    run = Run(first)
    for record in rest:
        run.append(record)
    found = plain(document(run))
    for arm, stored in zip(found["arms"], STORED["arms"], strict=True):
        assert len(arm["interference"]) == len(stored["interference"])
        arm["interference"] = stored["interference"]
    assert found | {"versions": {}} == STORED | {"versions": {}}
    assert list(found) == list(STORED) and list(found["arms"][0]) == list(STORED["arms"][0])


def test_an_encoders_run_has_the_same_keys() -> None:
    run = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        run.append(record)
    (arm,) = plain(document(run))["arms"]
    assert [*arm, "prompt_pass"] == list(STORED["arms"][0])
    assert keys(arm["summary"]) == keys(STORED["arms"][0]["summary"])
    assert keys(arm["annotations"]) == {"kind": None, "token": None, "t_s": None, "seconds": None, "text": None}
