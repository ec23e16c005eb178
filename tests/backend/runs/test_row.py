"""What a run is searched by."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from tests.backend.runs.test_quality import A, run_of
from tests.support.batches import batch_created
from tests.support.runs import created
from tokendyno.backend.runs.row import arm_titles, choices_text, machine_text, row_of, work_text

H200 = "NVIDIA H200, 140.4 GiB"


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ({"gpu0": H200, "cpu": "Xeon", "cores": "16"}, "NVIDIA H200"),
        ({"gpu0": H200, "gpu1": H200, "cpu": "Xeon"}, "2 x NVIDIA H200"),
        ({"gpu0": H200, "gpu1": "NVIDIA T4, 15 GiB", "gpu10": H200}, "2 x NVIDIA H200, NVIDIA T4"),
        ({"gpu0": H200, "cpu": "Xeon", "cores": "16", "device": "cpu"}, "Xeon, 16 cores"),
        ({"gpu": "none: no driver", "cpu": "Xeon", "cores": "16"}, "Xeon, 16 cores"),
        ({"gpus": "none", "cpu": "Xeon"}, "Xeon"),
        ({}, ""),
    ],
)
def test_a_machine_is_named_by_its_device(machine: dict[str, str], text: str) -> None:
    assert machine_text(machine) == text


def test_a_row_tells_what_kind_of_run_it_was() -> None:
    assert (row_of(created("1", "A")).kind, row_of(batch_created()).kind) == ("run", "batch")


@pytest.mark.parametrize(
    ("sizes", "trial", "text"),
    [
        ({}, "", "24 new tokens"),
        ({}, "5f2a", "batch 1, 24 new tokens"),
        ({"batch_size": 16}, "5f2a", "batch 16, 24 new tokens"),
        ({"batch_size": 2, "repeats": 2}, "", "batch 2, 24 new tokens, 2 repeats"),
        ({"prompt_tokens": 2_048, "repeats": 5}, "", "prompt of 2,048 tokens, 24 new tokens, 5 repeats"),
    ],
)
def test_a_row_tells_what_the_model_had_to_do(sizes: dict[str, Any], trial: str, text: str) -> None:
    first = created("1", "A")
    work = replace(first.request.workload, max_new_tokens=24, **sizes)
    request = msgspec.structs.replace(first.request, workload=work, trial=trial)
    first = msgspec.structs.replace(first, request=request)
    assert work_text(first) == row_of(first).work == text
    assert text in row_of(first).words, "and is found by it"


def test_pairs_until_they_decide_are_no_number_of_repeats() -> None:
    first = created("1", "AB")
    request = msgspec.structs.replace(first.request, workload=replace(first.request.workload, repeats=9), until_s=60.0)
    assert "repeats" not in work_text(msgspec.structs.replace(first, request=request))


def test_a_row_tells_how_many_requests_there_were() -> None:
    first = batch_created()
    assert first.request.traffic is not None
    assert row_of(first).work == f"{len(first.request.traffic.requests)} requests"


def test_an_arm_is_named_by_its_choices_or_as_the_defaults() -> None:
    assert choices_text({"cache": "static", "loop": "own"}) == "cache=static, loop=own"
    assert choices_text({}) == "defaults"


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("cache=unwindowed, loop=own", "KV cache full (no sliding window) + Decode loop custom"),
        ("defaults", "defaults"),
        ("gone=x, cache=gone", "gone x + KV cache gone"),
        ("<b>", "<b>"),
    ],
)
def test_an_arm_is_called_on_the_page_as_its_controls_are(text: str, titles: str) -> None:
    assert arm_titles(text) == titles


def test_a_run_is_found_by_the_titles_too() -> None:
    assert "kv cache full (no sliding window)" in row_of(created("1", "AB")).words


@pytest.mark.parametrize(("texts", "said"), [(1, "1 text"), (2, "2 texts")])
def test_a_row_tells_how_many_texts_there_were(texts: int, said: str) -> None:
    first = run_of(A=A).created
    quality = first.request.quality
    assert quality is not None
    fewer = msgspec.structs.replace(quality, texts=quality.texts[:texts])
    first = msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, quality=fewer))
    assert (row_of(first).kind, row_of(first).work) == ("quality", said)


def test_a_run_is_found_by_where_it_came_from_unless_it_was_here() -> None:
    here, elsewhere = created("1", "A"), msgspec.structs.replace(created("1", "A"), origin="imported")
    assert (row_of(here).origin, row_of(elsewhere).origin) == ("", "imported")
    assert "imported" in row_of(elsewhere).words and "here" not in row_of(here).words.split()


@pytest.mark.parametrize("part", ["prompt", "system"])
def test_600_characters_of_a_prompt_are_searched(part: str) -> None:
    """The JSON of a run has all of it; the index would be larger than the runs."""
    first = created("1", "A")
    work = replace(first.request.workload, chat=part == "system", **{part: "x" * 599 + "yz"})  # type: ignore[arg-type]
    words = row_of(msgspec.structs.replace(first, request=msgspec.structs.replace(first.request, workload=work))).words
    assert "x" * 599 + "y" in words and "yz" not in words
