"""A run as text for a terminal, from records alone: no worker is started."""

import pytest
from rich.cells import cell_len
from rich.text import Text

from tests.support.command_line import text_of
from tests.support.machines import H200
from tests.support.runs import encoder, ended, passes
from tests.support.small_runs import annotated, begun, fill, repeated
from tokendyno.backend.cli.run_table import MAX_TEXT, run_blocks
from tokendyno.backend.runs.records import Ended
from tokendyno.backend.runs.run import Run


def test_the_table_has_both_arms_the_ledger_and_one_text_when_they_agree() -> None:
    run = begun()
    fill(run, "A")
    fill(run, "B")
    shown = text_of(run_blocks(run))
    assert shown.splitlines()[0] == "Pocket, 5M on a CPU"
    for part in (
        "A note.",
        "Time to first token",
        "100 ms",
        "sdpa -> eager",
        "FALLBACK",
        "Arm B: a remark",
        "It has sinks.",
        "NOT IN EFFECT",
        "Both arms generated the same text:\na cat",
    ):
        assert part in shown
    assert shown.count("a cat") == 1


def test_the_table_has_two_texts_when_they_differ_and_names_a_gpu() -> None:
    run = begun(machine=H200)
    fill(run, "A")
    fill(run, "B", "a dog")
    shown = text_of(run_blocks(run))
    assert shown.splitlines()[0].startswith("Pocket, 5M on NVIDIA H200, 140.0 GiB")
    assert "Text of arm A:\na cat" in shown
    assert "Text of arm B:\na dog" in shown
    assert "generated the same text" not in shown


@pytest.mark.parametrize(
    ("length", "shown", "note"),
    [(MAX_TEXT, MAX_TEXT, ""), (MAX_TEXT + 1500, MAX_TEXT, "(1,500 more characters; --all shows them)")],
)
def test_of_a_long_text_the_beginning_is_shown_and_all_of_it_on_demand(length: int, shown: int, note: str) -> None:
    run = begun("A")
    fill(run, "A", length * "\u00e6")
    assert text_of(run_blocks(run)).count("\u00e6") == shown and note in text_of(run_blocks(run))
    assert ("more characters" in text_of(run_blocks(run))) == bool(note)
    assert text_of(run_blocks(run, everything=True)).count("\u00e6") == length


def test_a_models_text_cannot_steer_the_terminal() -> None:
    run = begun("A")
    fill(run, "A", "\x1b]0;owned\x07\x1b[2J\x9b1mcat\nend")
    shown = text_of(run_blocks(run))
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    assert "cat\nend" in shown


def test_a_run_that_never_began_has_no_figures() -> None:
    run = begun("A")
    run.append(Ended(0.5, "failed", "It broke."))
    assert "n/a" in text_of(run_blocks(run))


def test_the_first_annotations_are_in_it() -> None:
    shown = text_of(run_blocks(annotated()))
    assert "Arm A, token 1: window filled\n" in shown and "Arm A, token 2: collected (4.00 ms)" in shown
    assert "Arm A: 2 more annotations" in shown


def test_interference_and_the_comparison_are_in_it() -> None:
    shown = text_of(run_blocks(repeated()))
    assert "The arms are equal, so any difference is noise: B runs at 1.00 to 1.00 times A's speed" in shown
    assert "Arm A: Possible interference: another program used the GPU" in shown


def test_an_encoder_has_passes_and_no_text() -> None:
    run = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        run.append(record)
    shown = text_of(run_blocks(run))
    assert "Time per forward pass, mean" in shown and "Text of arm" not in shown and "first token" not in shown


def test_rows_that_differ_or_are_not_verified_come_first_and_all_on_demand() -> None:
    run = begun()
    fill(run, "A")
    fill(run, "B")
    short, whole = text_of(run_blocks(run)), text_of(run_blocks(run, everything=True))
    assert "  attention  A    sdpa -> eager" in short and "  cache " not in short
    assert "1 more row is as planned; --all shows it." in short.splitlines()
    assert "  cache " in whole and "--all" not in whole
    assert whole.index("  compile ") < whole.index("  cache "), "what is not in effect comes before what is verified"
    assert "Setup time before the run" in whole and "Setup time before the run" not in short


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    for run in (repeated(), annotated()):
        for everything in (False, True):
            lines = text_of(run_blocks(run, everything), columns, color=True).splitlines()
            assert max(cell_len(Text.from_ansi(line).plain) for line in lines) <= columns
            assert any("\x1b[" in line for line in lines)
