"""B's figures against A's, for the tiles."""

import msgspec
import pytest

from tests.support.runs import arm_records, created, ended, finished
from tokendyno.backend.messages import Tokens
from tokendyno.backend.runs.records import ArmEvent, Ended
from tokendyno.backend.runs.run import Run
from tokendyno.backend.runs.summary import Comparison
from tokendyno.backend.views.card import card_of
from tokendyno.backend.views.comparison import LETTERS, Difference, differences, headline
from tokendyno.backend.views.document import document
from tokendyno.backend.views.tiles import tiles
from tokendyno.backend.views.verdict import verdict_of


def measured(b_step_s: list[float], done: bool = True, equal: bool = False) -> Run:
    """A takes 0.2 s a step in each repeat; B takes these. `equal`: by the same plan."""
    first = created(repeats=len(b_step_s))
    same = [msgspec.structs.replace(arm, planned=first.arms[0].planned) for arm in first.arms]
    run = Run(msgspec.structs.replace(first, arms=same) if equal else first)
    for number, of_b_s in enumerate(b_step_s):
        for arm, step_s in (("A", 0.2 + 0.001 * number), ("B", of_b_s)):
            latencies_s = [1.0, step_s, step_s]
            kv = [100 if arm == "A" else 150] * 3
            part = Tokens(0, [1.0, 1.0 + step_s, 1.0 + 2 * step_s], latencies_s, kv, kv, [2**30] * 3, [1] * 3, "x")
            run.append(ArmEvent(arm, number, 1.0, part))
            run.append(ArmEvent(arm, number, 1.1, finished("x")))
    if done:
        run.append(Ended(9.0, "done"))
    return run


def test_a_faster_arm_is_marked_only_where_the_interval_says_so() -> None:
    decided = differences(measured([0.1, 0.101, 0.099]).snapshot())
    assert decided["latency"] == Difference("B 50% less", "B")
    assert decided["rate"] == Difference("B 2.0× that of A", "B")
    once = differences(measured([0.1]).snapshot())
    assert once["latency"] == Difference("B 50% less") and once["rate"].better == ""
    noisy = differences(measured([0.1, 0.5, 0.25]).snapshot())
    assert noisy["latency"].text.endswith("within noise") and noisy["latency"].better == ""


def test_bytes_are_compared_from_one_run_and_equal_ones_are_called_the_same() -> None:
    by_key = differences(measured([0.1]).snapshot())
    assert by_key["kv"] == Difference("A 33% less", "A") and by_key["memory"] == Difference("B the same")
    assert "share" not in by_key, "there is no roofline bound"


@pytest.mark.parametrize(("b_peak", "said"), [(800, None), (600, Difference("B 40% less", "B"))])
def test_a_text_that_ended_early_saves_no_memory_by_that(b_peak: int, said: Difference | None) -> None:
    """B keeps 200 MiB less of keys and values at its end."""
    run = Run(created())
    for arm, count, peak in (("A", 4, 1000), ("B", 2, b_peak)):
        sizes, seconds = [100 << 20] * count, [0.1 * (step + 1) for step in range(count)]
        kv = [(step * 100) << 20 for step in range(count)]
        run.append(ArmEvent(arm, 0, 1.0, Tokens(0, seconds, [0.1] * count, kv, [0] * count, sizes, [1] * count, "x")))
        end = msgspec.structs.replace(finished("x", "eos" if arm == "B" else "length"), peak_memory_bytes=peak << 20)
        run.append(ArmEvent(arm, 0, 1.1, end))
    run.append(Ended(9.0, "done"))
    assert differences(run.snapshot()).get("memory") == said
    card = card_of(run.snapshot())
    assert card is not None and ("memory" in card.reason) == bool(said)


def test_arms_at_different_tokens_are_not_compared() -> None:
    assert differences(measured([0.1], done=False).snapshot()) == {}
    stopped = Run(created())
    for record in [*arm_records("A", 9), *arm_records("B", 5, done=False), ended("cancelled")]:
        stopped.append(record)
    assert differences(stopped.snapshot()) == {}


@pytest.mark.parametrize("b_step_s", [[0.1, 0.101, 0.099], [0.1]])
def test_of_equal_arms_neither_wins_in_anything(b_step_s: list[float]) -> None:
    run = measured(b_step_s, equal=True)
    by_key, now = differences(run.snapshot()), run.snapshot()
    assert by_key["latency"].text == "B 50% less, within noise"
    assert {difference.better for difference in by_key.values()} == {""}
    sentence = verdict_of(now).sentence
    assert sentence.startswith("The arms are equal, so any difference is noise: ") and "faster" not in sentence
    compared = now.comparison
    assert compared is not None and compared.outcome in ("no_difference", "unknown")


def test_sentence_tile_and_document_have_one_figure_however_much_single_steps_and_runs_differ() -> None:
    """B is slower in the middle step and faster on the mean, and one of its runs was slow."""
    run = Run(created(repeats=3))
    for number, slow_s in enumerate((0.1, 0.9, 0.1)):
        for arm, steps_s in (("A", [0.10, 0.10, 0.60, 0.10, 0.10]), ("B", [0.12, 0.12, 0.12, 0.12, slow_s])):
            zeros = [0] * 6
            part = Tokens(0, [float(i) for i in range(6)], [1.0, *steps_s], zeros, zeros, [2**30] * 6, [1] * 6, "x")
            run.append(ArmEvent(arm, number, 1.0, part))
            run.append(ArmEvent(arm, number, 1.1, finished("x")))
    run.append(Ended(9.0, "done"))
    now = run.snapshot()
    compared, (a, b) = now.comparison, (now.summaries[name] for name in "AB")
    assert compared is not None and a.latency_mean_s and b.latency_mean_s and a.tokens_per_s and b.tokens_per_s
    assert compared.ratio == pytest.approx(a.latency_mean_s / b.latency_mean_s)
    assert compared.ratio == pytest.approx(b.tokens_per_s / a.tokens_per_s)
    shown = {tile.key: tile for tile in tiles(a, "RSS", 1)}
    assert shown["latency"].value == "200" and shown["rate"].value == "5.00"
    written = document(run)
    assert written.comparison == compared and written.arms[1].summary.latency_mean_s == b.latency_mean_s
    assert f"{1 - 1 / compared.ratio:.0%}" in differences(now)["latency"].text


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(1.02, 2.1, "1.02 to 2.10"), (1.004, 1.15, "1.004 to 1.150"), (1.2, 2.1, "1.2 to 2.1")]
)
def test_an_interval_that_excludes_1_is_not_shown_as_reaching_it(low: float, high: float, shown: str) -> None:
    assert headline(Comparison(1.11, low, high, 0.95, 4, "b_faster"), LETTERS).ends == shown
