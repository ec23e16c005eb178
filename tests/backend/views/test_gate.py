"""What a gain costs in quality, in the verdict."""

import msgspec
import pytest

from tests.backend.views.test_quality import difference
from tests.backend.views.test_verdict import FROM_37, faster_b, found
from tests.backend.views.test_verdict import SAME as SAME_TEXT
from tokendyno.backend.runs.gate import Gate
from tokendyno.backend.runs.quality import ReadingDifference
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.runs.texts import TextComparison
from tokendyno.backend.views.gate import GateText, gate_document, gate_text
from tokendyno.backend.views.verdict import Bytes, worded

ROUNDING, SMALL, LARGE = difference(0.0004, 0.995), difference(0.03, 0.95), difference(0.2, 0.8, ratio=1.3)
SAME = difference(0.0, 1.0, most=0.0)


def said(
    read: ReadingDifference | None, a_wins: bool = False, swapped: bool = False, random: bool = False
) -> tuple[str, str]:
    """The verdict of an arm that is 2.6 times faster and writes another text, and the line below it."""
    gate = Gate("read" if read else "unread", "r", 768, read, swapped, random)
    text = gate_text(gate, "A" if a_wins else "B", "press Quality")
    compared = found(1 / 2.6, 1 / 2.8, 1 / 2.4, "a_faster") if a_wins else faster_b(2.6, 2.4, 2.8)
    return worded(compared, None, None, FROM_37, quality=text).sentence, text.line


def test_the_cost_stands_with_the_gain() -> None:
    gain = "B generates 2.6x faster (2.4 to 2.8)"
    assert said(None) == (f"{gain} and writes another text from token 37 on.", "Quality not measured: press Quality")
    assert said(SAME)[0] == f"{gain} and predicts the same, bit for bit."
    assert said(ROUNDING)[0] == f"{gain} and is numerically the same (0.00040 nats)."
    assert said(SMALL)[0] == f"{gain} at a small quality cost of 0.030 nats."


MISSED = "No win: B has a large quality cost of 0.20 nats, over the tolerance"


@pytest.mark.parametrize(
    ("compared", "less_memory", "texts", "says"),
    [
        (faster_b(2.6, 2.4, 2.8), False, FROM_37, "; at that price it generates 2.6x faster (2.4 to 2.8)."),
        (
            faster_b(2.6, 2.4, 2.8),
            True,
            FROM_37,
            "; at that price it generates 2.6x faster (2.4 to 2.8) and takes 34% less memory.",
        ),
        (
            faster_b(2.6, 2.4, 2.8),
            True,
            SAME_TEXT,
            "; at that price it generates 2.6x faster (2.4 to 2.8), takes 34% less memory, and writes the same text.",
        ),
        (
            found(1.15),
            True,
            FROM_37,
            "; at that price it took 13% less time per token in one pair of runs and takes 34% less memory.",
        ),
        (
            found(1.0, 0.9, 1.1, "no_difference"),
            True,
            FROM_37,
            "; at that price it takes 34% less memory; no difference in speed was found (0.90 to 1.10 times A's).",
        ),
        (
            found(1.0, 0.9, 1.1, "no_difference"),
            False,
            FROM_37,
            "; no difference in speed was found (0.90 to 1.10 times A's).",
        ),
        (None, True, FROM_37, "; at that price it takes 34% less memory."),
        (None, False, None, "."),
    ],
)
def test_over_the_tolerance_nothing_is_won_and_less_memory_is_what_the_loss_paid_for(
    compared: Comparison | None, less_memory: bool, texts: TextComparison | None, says: str
) -> None:
    quality = gate_text(Gate("read", "r", 768, LARGE), "B", "")
    memory = Bytes(100, 66, 0.01) if less_memory else None
    told = worded(compared, memory, None, texts, quality=quality)
    assert told.sentence == MISSED + says
    assert told.basis == worded(compared, memory, None, texts).basis, "what it is based on stays"


def test_over_the_tolerance_a_faster_reference_is_named_as_no_win() -> None:
    assert said(LARGE, a_wins=True)[0] == (
        "No win: A has a large quality cost (they predict 0.20 nats apart), over the tolerance; at that price it "
        "generates 2.6x faster (2.4 to 2.8)."
    )


def test_the_line_below_has_the_figures_and_where_that_cost_ends() -> None:
    assert said(SMALL)[1] == (
        "Quality over 768 positions: 0.030 nats, 95.0% agreement, perplexity B / A 1.00 (small: up to 0.05 nats and "
        "1.05x perplexity)"
    )
    assert "rounding: up to 0.001 nats and from 99% agreement" in said(ROUNDING)[1]


def test_a_faster_reference_is_not_charged_with_the_others_perplexity() -> None:
    worse_b = difference(0.03, 0.95, ratio=1.2)  # B's is 1.2 times A's
    assert (
        said(worse_b, a_wins=True)[0]
        == "A generates 2.6x faster (2.4 to 2.8) at a small quality cost (they predict 0.030 nats apart)."
    )
    assert "large quality cost" in said(worse_b)[0]
    assert "small quality cost (they" in said(worse_b, swapped=True)[0], "B was the reference, and A is 1.2 times worse"
    assert "perplexity A / B" in said(worse_b, swapped=True)[1]


def test_finer_weights_cost_nothing() -> None:
    for subject, finer, says in (
        ("B", "B", "predicts differently by 0.030 nats, with more precise weights"),
        ("B", "A", "has a small quality cost of 0.030 nats"),
    ):
        assert gate_text(Gate("read", "r", 768, SMALL, finer=finer), subject, "").part == says


def test_random_weights_are_not_judged() -> None:
    sentence, line = said(LARGE, random=True)
    assert "cost" not in sentence and "predicts differently by 0.20 nats" in sentence and "perplexity" not in line
    assert gate_text(Gate("random"), "B", "").line == "Random weights: quality means nothing here"


@pytest.mark.parametrize("gate", [None, Gate("settled")])
def test_what_is_settled_is_not_mentioned(gate: Gate | None) -> None:
    assert gate_text(gate, "B", "press Quality") == GateText()


def test_no_winner_and_one_pair_name_the_cost_too() -> None:
    text = gate_text(Gate("read", "r", 768, SMALL), "B", "")
    none = worded(found(1.0, 0.9, 1.1, "no_difference"), None, None, FROM_37, quality=text).sentence
    assert none == (
        "No difference in speed found: B runs at 0.90 to 1.10 times A's; it has a small quality cost of 0.030 nats."
    )
    one = worded(found(1.15), None, None, FROM_37, quality=text).sentence
    assert one == "One pair of runs: B took 13% less time per token at a small quality cost of 0.030 nats."


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
    assert [one.counts for gate in gates if (one := gate_document(gate))] == [False, True, None, True]
