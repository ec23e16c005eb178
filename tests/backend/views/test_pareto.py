"""Which arms no other one beats."""

from tokendyno.backend.views.pareto import Cost, pareto


def front(*costs: Cost, quality: str = "KL divergence") -> list[str]:
    chart = pareto(costs, quality)
    assert chart is not None
    return [point.label for point in chart.points if point.front]


def test_what_another_one_beats_in_something_and_nothing_beats_it_in_is_not_on_the_front() -> None:
    fast, small, worse, same = Cost("fast", 1.0, 9), Cost("small", 5.0, 1), Cost("worse", 5.0, 2), Cost("same", 1.0, 9)
    assert front(fast, small, worse) == ["fast", "small"]
    assert front(fast, same, worse) == ["fast", "same", "worse"], "equal ones do not beat each other"
    slow = Cost("slow", 2.0, (380 << 20) - 4096)
    assert front(Cost("fast", 1.0, 380 << 20), slow) == ["fast"], "nobody sees 4 KiB of 380 MiB"


def test_quality_counts_only_where_it_is_known_of_all() -> None:
    exact, lossy = Cost("exact", 2.0, 2 << 20, 0.0), Cost("lossy", 1.0, 1 << 20, 0.5)
    assert front(exact, lossy) == ["exact", "lossy"]
    unread = Cost("unread", 3.0, 3 << 20)
    chart = pareto([exact, lossy, unread], "KL divergence")
    assert chart is not None and chart.quality == "" and [point.front for point in chart.points] == [False, True, False]
    assert chart.points[1].text == "1.00 s, 1.00 MiB, KL divergence 0.500"


def test_points_of_other_sizes_do_not_compete_and_what_is_unknown_is_left_out() -> None:
    one, many = Cost("one", 1.0, 1, alike="batch 1"), Cost("many", 9.0, 9, alike="batch 8")
    assert front(one, many) == ["one", "many"]
    assert pareto([one, Cost("refused", None, 5)], "") is None
