"""What axes declare about themselves, as users and other parts rely on it."""

import re

from tokendyno.backend.optimizations import all_axes, axis_names, axis_title, choice_title, titles_text
from tokendyno.backend.paths import IMPORTED_FROM

TABLE = IMPORTED_FROM / "docs" / "axes.md"


def test_axes_come_in_the_order_of_the_table_for_users() -> None:
    """A load is edited before the generation, and a ledger reads in the order in which things happen."""
    rows = re.findall(r"^\| `([a-z_]+)` \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE)
    assert list(axis_names()) == rows


def test_the_table_for_users_has_the_choices_of_every_axis_in_their_order() -> None:
    text = TABLE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)` \| ([^|]*) \|", text, re.MULTILINE)
    written = {name: re.findall(r"`([^`]+)`", choices) for name, choices in rows}
    assert written == {axis.name: [choice.name for choice in axis.choices] for axis in all_axes()}


def test_no_two_choices_lose_equally_much() -> None:
    """Else the order of remedies would follow from the names of axes."""
    losses = [choice.loss for axis in all_axes() for choice in axis.choices if choice.loss is not None]
    assert len(set(losses)) == len(losses)
    assert all(0 < loss < 60 for loss in losses), "its tens say what is lost, and 50 is the most: 4 bits"


def test_no_run_on_several_gpus_is_claimed_but_for_what_was_run_between_processes() -> None:
    """Plain and static caches, all quantizations but torchao's int4."""
    choices = [(axis.name, choice) for axis in all_axes() for choice in axis.choices]
    untried = {(axis, choice.name) for axis, choice in choices if not choice.tried_on_several_gpus}
    caches = (
        "unwindowed",
        "static-fp8",
        "offloaded",
        "offloaded_static",
        "quantized-fp8",
        "quantized-hqq4",
        "quantized-quanto4",
    )
    assert untried == {("cache", name) for name in caches} | {("quantization", "torchao-int4")}


def test_what_an_axis_says_of_itself_is_what_the_page_and_the_ledger_go_by() -> None:
    """The other axes are folded on the page, and make up no rows of the fit table."""
    leading = {"attention", "cache", "compile", "cuda_graphs", "experts", "quantization"}
    assert {axis.name for axis in all_axes() if axis.leading} == leading
    assert {axis.name for axis in all_axes() if axis.in_fit_table} == {"cache", "quantization"}


def test_choices_are_told_by_the_titles_of_the_page_and_by_their_names_once_they_are_gone() -> None:
    assert titles_text({"cache": "static", "dtype": "float16"}) == "KV cache static + Dtype float16"
    assert titles_text({}) == "defaults"
    assert (choice_title("loop", "own"), choice_title("loop", "gone")) == ("custom", "gone")
    assert (axis_title("loop"), axis_title("gone")) == ("Decode loop", "gone")
