"""The columns that a browser holds of a run: replies overlap, and nothing counts twice."""

import pytest

from tests.browser.chart_page import ChartPage, columns, only, reply
from tests.support.runs import arm_records, created


def test_overlapping_replies_count_nothing_twice(js: ChartPage) -> None:
    records = [created(), *arm_records("A", 64), *arm_records("B", 40)]
    run = reply(records)
    later = [reply(records, cursors) for cursors in ([[30, 1, 4], [39, 0, 0]], [[5, 0, 0], [40, 2, 1]])]
    assert js.lines([run, *later]) == js.lines([run])
    head = run["head"]
    gap = js.lines([later[0]], head=head)  # token 30 before tokens 0 to 29: not taken
    assert all(not line.x for line in only(gap, chart="latency", arm="A", curve=""))


def test_text_is_cut_at_the_cursor_in_code_points(js: ChartPage) -> None:
    take = """(first, second) => {
      const series = emptySeries(), added = [first, second].map(part => appendReply(series, part).added);
      return [series.text, added, cursorOf(series)];
    }"""
    first = columns([]) | {"cn": 3, "text": "a\U0001f98ab"}
    second = columns([]) | {"cfirst": 1, "cn": 4, "text": "\U0001f98abé"}
    assert js.call(take, first, second) == ["a\U0001f98abé", ["a\U0001f98ab", "é"], [0, 0, 4]]


@pytest.mark.parametrize(("a", "b", "at"), [("", "", -1), ("ab", "ab", -1), ("ab", "abc", -1), ("abc", "abd", 2)])
def test_the_first_difference_of_two_texts(js: ChartPage, a: str, b: str, at: int) -> None:
    assert js.call("firstDifference", a, b) == js.call("firstDifference", b, a) == at
