"""Quality on the Compare page: a reading by its link, the comparison that names its cost, and the button."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser import stored_runs
from tests.browser.driver import LIVE, Driver
from tokendyno.backend.runs.store import Store

Open = Callable[..., Driver]


@pytest.mark.slow
def test_a_reading_has_its_table_and_the_comparison_of_its_arms_names_the_cost(open_page: Open) -> None:
    user = open_page("?run=reading", 1440, 900)
    user.wait_over("reading")
    assert user.text(".td-sentence").startswith("B has a small quality cost: over 6 positions")
    rows = user.page.locator(".td-quality tbody tr").all_inner_texts()
    assert [row.split("\t")[0] for row in rows] == ["A story for children", "Your prompt", "All texts"]
    assert rows[0].split("\t")[1:] == ["4", "7.39", "7.96", "1.08", "0.0300", "0.0500", "75.0%", "3"]
    assert not user.page.locator(".td-texts").is_visible(), "they wrote nothing that was asked for"
    assert user.value("prompt") != "Once upon a time.", "a text is no prompt"
    user.page.set_viewport_size({"width": 390, "height": 844})
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    user.page.set_viewport_size({"width": 1440, "height": 900})
    user.page.click(".td-compared")
    user.wait("document.querySelector('.td-live')?.dataset.over === 'gated'")
    assert "at a small quality cost of 0.030 nats" in user.text(".td-sentence")
    assert user.page.locator(".td-gate a").get_attribute("href") == "?run=reading"
    box = user.page.locator(".td-plot").bounding_box()
    assert box["y"] + box["height"] <= 900


@pytest.mark.slow
def test_a_verdict_that_is_shown_learns_of_a_reading_that_comes_later(open_page: Open, history: Path) -> None:
    user = open_page("?run=unread")
    user.wait_over("unread")
    assert user.text(".td-gate") == "Quality not measured: press Quality"
    store = Store(history)
    for record in stored_runs.reading("read-later", "CD"):
        store.add("read-later", record)
    store.close()
    user.page.evaluate("window.dispatchEvent(new Event('tokendyno-measured'))")
    user.wait("document.querySelector('.td-gate a')")
    assert "at a small quality cost of 0.030 nats" in user.text(".td-sentence")


@pytest.mark.full
def test_quality_reads_the_texts_and_the_prompt_with_what_arm_a_wrote(open_page: Open) -> None:
    user = open_page()
    user.choose("preset-b", "static")
    user.type("prompt", "Once upon a time, there was a dog.")
    user.type("max-new-tokens", "40")
    run_id = user.run()
    user.wait_over(run_id)
    user.wait("!document.querySelector('#quality').disabled")
    user.page.click("#quality")
    user.wait(f"{LIVE}.querySelector('.td-permalink').textContent !== {('?run=' + run_id)!r}")
    user.wait_over(user.shown(), 180)
    rows = user.page.locator(".td-quality tbody tr").all_inner_texts()
    assert len(rows) == 6 and rows[4].startswith("Your prompt")
    assert user.page.locator(".td-compared").get_attribute("href") == f"?run={run_id}"
    assert user.value("prompt") == "Once upon a time, there was a dog."
