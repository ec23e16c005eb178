"""Quality on the Compare page: a reading by its link, the comparison that names its cost, and a text of one's own."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import stored_runs
from tests.browser.driver import Driver
from tokendyno.backend.runs.store import Store

Open = Callable[..., Driver]


@pytest.mark.slow
def test_a_reading_has_its_table_and_the_comparison_of_its_arms_names_the_cost(open_page: Open) -> None:
    user = open_page("?run=reading", 1440, 900)
    user.wait_over("reading")
    assert user.text(".td-sentence").startswith("B has a small quality cost: over 6 positions")
    rows = user.page.locator(".td-quality tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["A story for children", "notes", "All texts"]
    assert rows[0].split("\t")[1:] == ["4", "7.39", "7.96", "1.08", "0.0300", "0.0500", "75.0%", "3"]
    assert not user.page.locator(".td-texts").is_visible(), "they wrote nothing that was asked for"
    assert user.value("prompt") != "Once upon a time.", "a text is no prompt"
    user.page.set_viewport_size({"width": 390, "height": 844})
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    user.page.set_viewport_size({"width": 1440, "height": 900})
    user.page.click(".td-compared")
    user.wait("document.querySelector('.td-live')?.dataset.over === 'gated'")
    assert "the same most likely token in 83% of 6 places, a small cost in quality" in user.text(".td-sentence")
    assert "Same next token 83 % of 6 places: small cost" in user.words(".td-four")
    assert user.page.locator(".td-gate a").get_attribute("href") == "?run=reading"


@pytest.mark.full
def test_a_verdict_that_is_shown_learns_of_a_reading_that_comes_later(open_page: Open, history: Path) -> None:
    user = open_page("?run=unread")
    user.wait_over("unread")
    assert "Same next token not read" in user.words(".td-four")
    store = Store(history)
    for record in stored_runs.reading("read-later", "CD"):
        store.add("read-later", record)
    store.close()
    user.page.evaluate("window.dispatchEvent(new Event('tokendyno-measured'))")
    user.wait("document.querySelector('.td-gate a')")
    assert "the same most likely token in 83% of 6 places, a small cost in quality" in user.text(".td-sentence")
    assert "Same next token 83 % of 6 places: small cost" in user.words(".td-four")


@pytest.mark.full
def test_run_reads_a_text_of_ones_own_with_both_arms(open_page: Open) -> None:
    user = open_page()
    user.choose("axis-b-dtype", "bfloat16")
    user.type("max-new-tokens", "40")  # texts are read for at most as long as the pairs took
    user.two_pairs()
    user.page.click("#more-button")
    user.type("own-text", "Once upon a time, there was a dog. " * 12)
    user.wait_over(user.run())
    assert "places, your text:" in user.words(".td-four")
    assert user.page.locator(".td-gate a").count() == 0, "the run itself read it"
    assert not user.page.locator(".td-quality").is_visible()
