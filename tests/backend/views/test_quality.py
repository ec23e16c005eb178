"""What a change costs, in words: each tolerance at its edge."""

import msgspec
import pytest

from tests.backend.runs.test_quality import A, B, run_of
from tests.backend.views.test_verdict import FROM_37, faster_b
from tokendyno.backend.runs.quality import Gate, ReadingDifference
from tokendyno.backend.views.quality import (
    Cost,
    GateText,
    cost_of,
    cost_text,
    gate_document,
    gate_text,
    quality_sentence,
)
from tokendyno.backend.views.verdict import worded


def difference(kl: float, agreement: float, ratio: float = 1.0, most: float = 0.5) -> ReadingDifference:
    return ReadingDifference(ratio, ratio, ratio, kl, most, agreement, None if agreement == 1 else 7)


@pytest.mark.parametrize(
    ("read", "cost"),
    [
        (difference(0.0, 1.0, most=0.0), "none"),
        (difference(0.0, 1.0, most=1e-9), "rounding"),
        (difference(0.001, 0.99), "rounding"),
        (difference(0.0011, 0.99), "small"),
        (difference(0.001, 0.98), "small"),
        (difference(0.05, 0.9, ratio=1.05), "small"),
        (difference(0.051, 0.9), "large"),
        (difference(0.04, 0.9, ratio=1.06), "large"),
    ],
)
def test_the_cost_by_its_tolerances(read: ReadingDifference, cost: Cost) -> None:
    assert cost_of(read) == cost


def test_the_sentence_has_the_figures() -> None:
    sentence = quality_sentence(run_of(A=A, B=B).snapshot())
    assert sentence.startswith("B has a large quality cost: over 6 positions the KL divergence from A is 0.100 nats")
    assert "83.3%" in sentence and "1.40\u00d7" in sentence


def test_equal_arms_are_said_to_be_equal() -> None:
    same = [A[0], A[1]]
    with_kl = [type(score)(score.ids, score.nll_nats, score.top, [0.0] * len(score.ids)) for score in same]
    assert "bit for bit" in quality_sentence(run_of(A=A, B=with_kl).snapshot())


def test_one_arm_has_a_perplexity() -> None:
    assert quality_sentence(run_of(A=A).snapshot()).startswith("A predicts 6 tokens with a perplexity of 7.39")


@pytest.mark.parametrize("model", ["random:gpt2", "Random:gpt2"])
def test_random_weights_are_not_judged(model: str) -> None:
    run = run_of(model=model, A=A, B=B)
    sentence = quality_sentence(run.snapshot())
    assert sentence.startswith("The KL divergence of B from A is 0.100 nats over 6 positions. The weights are random")
    assert "costs" not in sentence


# --- the gate --------------------------------------------------------------------------------------

ROUNDING, SMALL, LARGE = difference(0.0004, 0.995), difference(0.03, 0.95), difference(0.2, 0.8, ratio=1.3)
SAME = difference(0.0, 1.0, most=0.0)


def said(read: ReadingDifference | None, swapped: bool = False, random: bool = False) -> tuple[str, str]:
    """The verdict of an arm that is 2.6 times as fast and writes another text, and the line below it."""
    text = gate_text(Gate("read" if read else "unread", "r", 768, read, swapped, random))
    return worded(faster_b(2.6, 2.4, 2.8), None, None, FROM_37, quality=text).sentence, text.line


GAIN = "B ran 2.6× as fast as A (2.4 to 2.8)"


def test_the_cost_stands_with_the_gain() -> None:
    sentence, line = said(None)
    assert sentence == f"{GAIN} and wrote another text from token 37 on."
    assert line == "Quality not read: the command tokendyno quality reads it"
    assert said(SAME)[0] == f"{GAIN} and predicted the same, bit for bit."
    assert said(ROUNDING)[0] == f"{GAIN} and predicted the same but for rounding."
    assert said(SMALL)[0] == (
        f"{GAIN} and had the same most likely token in 95% of 768 places, a small cost in quality."
    )
    assert said(LARGE)[0] == (
        f"{GAIN} and had the same most likely token in 80% of 768 places, a large cost in quality, over the tolerance."
    )


def test_on_whose_text_it_was_read_is_said() -> None:
    text = gate_text(Gate("read", "r", 192, SMALL, own=True)).part
    assert "in 95% of 192 places, on your text, a small cost" in text


def test_the_line_below_has_the_figures_and_where_that_cost_ends() -> None:
    assert said(SMALL)[1] == (
        "Quality over 768 positions: 0.030 nats, 95.0% agreement, perplexity B / A 1.00 (small: up to 0.05 nats and "
        "1.05\u00d7 perplexity)"
    )
    assert "rounding: up to 0.001 nats and from 99% agreement" in said(ROUNDING)[1]


def test_a_reference_is_not_charged_with_the_others_perplexity() -> None:
    worse_b = difference(0.03, 0.95, ratio=1.2)  # B's is 1.2 times A's
    assert "large cost" in said(worse_b)[0]
    assert "small cost" in said(worse_b, swapped=True)[0], "B was the reference, and A is 1.2 times worse"
    assert "perplexity A / B" in said(worse_b, swapped=True)[1]


def test_finer_weights_cost_nothing() -> None:
    for finer, says in (("B", "with higher precision"), ("A", "a small cost in quality")):
        assert gate_text(Gate("read", "r", 768, SMALL, finer=finer)).part.endswith(says)


@pytest.mark.parametrize(
    ("gate", "text"),
    [
        (Gate("unread"), ""),
        (Gate("read", "r", 768, SAME), "bit for bit"),
        (Gate("read", "r", 768, ROUNDING), "rounding alone"),
        (Gate("read", "r", 768, LARGE), "large cost"),
        (Gate("read", "r", 768, LARGE, finer="A"), "large cost"),
        (Gate("read", "r", 768, LARGE, finer="B"), "higher precision"),
        (Gate("read", "r", 768, LARGE, random=True), ""),
        (Gate("read", "r", 768, difference(0.03, 0.95, ratio=1.2)), "large cost"),
        (Gate("read", "r", 768, difference(0.03, 0.95, ratio=1.2), swapped=True), "small cost"),
    ],
)
def test_beside_a_figure_the_cost_is_that_of_b_as_in_the_sentence(gate: Gate, text: str) -> None:
    assert cost_text(gate) == text


def test_a_gain_of_random_weights_is_not_judged() -> None:
    sentence, line = said(LARGE, random=True)
    assert "cost" not in sentence and "in 80% of 768 places" in sentence and "perplexity" not in line
    assert gate_text(Gate("random")).line == "Random weights: quality means nothing here"


@pytest.mark.parametrize("gate", [None, Gate("settled")])
def test_what_is_settled_is_not_mentioned(gate: Gate | None) -> None:
    assert gate_text(gate) == GateText()


def test_the_document_has_the_figures_of_the_reading() -> None:
    assert gate_document(None) is None
    shown = gate_document(Gate("unread"))
    assert shown is not None and msgspec.to_builtins(shown)["kl_nats"] is None
    shown = gate_document(Gate("read", "r", 768, SMALL, swapped=True))
    assert shown is not None and (shown.reference, shown.cost, shown.run) == ("B", "small", "r")
    gates = [
        Gate("read", "r", 768, LARGE),
        Gate("read", "r", 768, LARGE, finer="B"),
        Gate("read", "r", 768, LARGE, random=True),
        Gate("read", "r", 768, SMALL),
    ]
    assert [document.counts for gate in gates if (document := gate_document(gate))] == [False, True, None, True]
