"""What can be looked for, and what is refused in a sentence."""

import time

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.history.search import read_search, read_zone

DAY_S = 86_400.0


def test_a_search_is_read_as_it_was_typed() -> None:
    fields = {"q": "  Static  CACHE ", "model": "Llama", "axis": "cache = static", "machine": "H200"}
    search = read_search(fields | {"since": "2026-11-01", "until": "2026-11-01"}, zone_s=3_600.0)
    assert (search.words, search.model, search.choice, search.machine) == (
        ("static", "cache"),
        "Llama",
        "cache=static",
        "H200",
    )
    assert search.since_s is not None and search.until_s == search.since_s + DAY_S  # the day itself is included
    assert search.since_s == 1_793_487_600.0  # midnight where clocks are an hour ahead of UTC


def test_an_age_is_counted_back_from_now() -> None:
    since_s = read_search({"since": "2w"}).since_s
    assert since_s is not None and abs(time.time() - 14 * DAY_S - since_s) < 5


@pytest.mark.parametrize(
    ("fields", "page", "part"),
    [
        ({"axis": "cashe"}, 0, "Did you mean 'cache'?"),
        ({"axis": "cache=statik"}, 0, "Did you mean 'static'?"),
        ({"since": "yesterday"}, 0, "Write a date such as 2026-11-30"),
        ({"until": "2026-02-30"}, 0, "Write a date"),
        ({"since": "9999-12-31", "until": "2020-01-01"}, 0, "Write a date"),
        ({"since": "2026-11-02", "until": "2026-11-01"}, 0, "Swap them"),
        ({"q": "x" * 201}, 0, "Shorten it"),
        ({}, -1, "no page"),
        ({}, 10**30, "no page"),
    ],
)
def test_what_cannot_be_looked_for_is_said(fields: dict[str, str], page: int, part: str) -> None:
    with pytest.raises(InputError) as raised:
        read_search(fields, page)
    assert part in str(raised.value)


@pytest.mark.parametrize("minutes", [None, "60", True, float("nan"), float("inf"), 1e9])
def test_a_time_zone_that_is_none_is_refused(minutes: object) -> None:
    with pytest.raises(InputError):
        read_zone(minutes)
