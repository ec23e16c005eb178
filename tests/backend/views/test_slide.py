"""The one figure of a slide, by chart."""

from tests.support.runs import arm_records, created, ended
from tokendyno.backend.runs.run import Run
from tokendyno.backend.views.live import head_of


def test_what_differs_has_a_figure_in_a_sentence_and_what_does_not_has_none() -> None:
    run = Run(created())
    for record in [*arm_records("A", 64), *arm_records("B", 64), ended()]:
        run.append(record)
    figures = head_of(run.snapshot(), 0.0).figures
    assert set(figures) == {"latency", "kv"}
    said = figures["kv"]
    assert (said.lead, said.tail.split(" than ")[0]) == ("Baseline takes", "less KV cache")
    assert said.figure.endswith("%") and 0 < int(said.figure[:-1]) < 100


def test_of_a_single_arm_the_time_of_a_token_is_shown() -> None:
    run = Run(created(arms="A"))
    for record in [*arm_records("A", 20), ended()]:
        run.append(record)
    assert set(head_of(run.snapshot(), 0.0).figures) == {"latency"}
