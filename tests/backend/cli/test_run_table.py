"""A run as text for a terminal, from records alone: no worker is started."""

from backend.cli.run_table import table
from backend.runs.records import Ended
from backend.runs.run import Run
from tests.support.machines import H200
from tests.support.runs import encoder, ended, passes
from tests.support.small_runs import annotated, begun, fill, repeated


def test_the_table_has_both_arms_the_ledger_and_one_text_when_they_agree() -> None:
    run = begun()
    fill(run, "A")
    fill(run, "B")
    shown = table(run)
    assert shown.splitlines()[0] == "Pocket, 5M on a CPU"
    for part in ("arm A", "arm B", "a note", "Time to first token", "100 ms", "sdpa -> eager -> eager", "FALLBACK",
                 "It has sinks.", "NOT IN EFFECT", "Both arms generated the same text:\na cat"):  # fmt: skip
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
    assert "generated the same text" not in shown


def test_a_models_text_cannot_steer_the_terminal() -> None:
    run = begun("A")
    fill(run, "A", "\x1b]0;owned\x07\x1b[2J\x9b1mcat\nend")
    shown = table(run)
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)
    assert "cat\nend" in shown


def test_a_run_that_never_began_has_no_figures() -> None:
    run = begun("A")
    run.append(Ended(0.5, "failed", "It broke."))
    assert "n/a" in table(run)


def test_the_first_annotations_are_in_it() -> None:
    shown = table(annotated())
    assert "Arm A, token 1: window filled\n" in shown and "Arm A, token 2: collected (4.00 ms)" in shown
    assert "Arm A: 2 more annotations" in shown


def test_interference_and_the_comparison_are_in_it() -> None:
    shown = table(repeated())
    assert "No difference found: B runs at 1.00 to 1.00 times A's speed" in shown
    assert "Arm A: Possible interference: another program used the GPU" in shown


def test_an_encoder_has_passes_and_no_text() -> None:
    run = Run(encoder())
    for record in [*passes("A", 20), ended()]:
        run.append(record)
    shown = table(run)
    assert "Forward pass latency, median" in shown and "Text of arm" not in shown and "first token" not in shown
