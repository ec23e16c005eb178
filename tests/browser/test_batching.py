"""The Batching page in a real browser: many requests from the choice of traffic to the texts."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]
BATCH = "document.querySelector('.td-batch')"


def open_batching(user: Driver) -> Any:
    user.page.get_by_role("tab", name="Batching").click()
    user.page.wait_for_selector("#batch-run")
    until(user, "document.querySelector('#verdicts-batch-b .td-memory')")
    return user.page


def until(user: Driver, condition: str, seconds: float = 60) -> None:
    user.page.wait_for_function(f"() => Boolean({condition})", timeout=1000 * seconds, polling=50)


def fill(user: Driver, control: str, text: str) -> None:
    box = user.page.locator(f"#{control}").locator("input, textarea").first
    box.fill(text)
    box.press("Tab")


def few_requests(user: Driver, requests: int = 5) -> None:
    """Short ones, two at once."""
    fill(user, "batch-requests", str(requests))
    fill(user, "batch-concurrent", "2")
    said = "document.querySelector('#traffic-summary .td-line-text').textContent"
    until(user, f"{said}.startsWith('{requests} requests')")


def press_run(user: Driver) -> str:
    before = user.page.locator("#batch-live .td-permalink").text_content()
    user.page.click("#batch-run")
    link = f"{BATCH}.querySelector('.td-permalink').textContent"
    until(user, f"{link} !== {before!r} && {BATCH}.dataset.status")
    return str(user.page.evaluate(link)).removeprefix("?run=")


def over(user: Driver, run_id: str, seconds: float = 150) -> None:
    until(user, f"{BATCH}?.dataset.over === {run_id!r}", seconds)


def text(user: Driver, selector: str) -> str:
    return str(user.page.locator(f"#batch-live {selector}").first.inner_text())


def ink(user: Driver, strip: int) -> int:
    """Pixels that are drawn on a canvas."""
    found: int = user.page.evaluate(
        """strip => {
          const canvas = document.querySelectorAll('#batch-live canvas')[strip];
          const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
          return data.reduce((sum, value, i) => sum + (i % 4 === 3 && value > 0), 0);
        }""",
        strip,
    )
    return found


@pytest.mark.slow
def test_traffic_runs_through_two_arms_and_comes_back_after_a_reload(open_page: Open) -> None:
    user = open_page(width=1440, height=900)
    page = open_batching(user)
    assert "Press Run" in text(user, ".td-empty-run") and not page.locator("#batch-live canvas").count()
    few_requests(user)
    page.click("#batch-more-button")
    fill(user, "batch-seconds", "0.5")
    fill(user, "batch-price", "2.5")
    until(user, "document.querySelector('#traffic-summary .td-line-text').textContent.includes('at most 9 or 0.5 s')")
    page.click("#batch-more-button")
    run_id = press_run(user)
    assert page.locator("#batch-run").is_disabled() and page.locator("#batch-stop").is_enabled()
    until(user, f"{BATCH}.batch.batches[0]?.steps.end.length > 3")
    page.locator("#batch-live .td-run-part.now", has_text="serves").wait_for()
    assert text(user, ".td-run-rule") == "rule: until decided, at most 9 pairs or 0.5 s"
    until(user, "/^([AB] serves|pair .*|\\d+ s) - tokendyno$/.test(document.title)")
    over(user, run_id)
    assert text(user, ".td-status") == "Done" and text(user, ".td-run-bar").startswith("Done in")
    until(user, "!document.querySelector('#batch-run').disabled")
    assert "static batching" in text(user, ".td-said") and re.fullmatch(
        r"[\d.,]+[%×]", text(user, ".td-answer .td-number")
    )
    figures = page.locator("#batch-live .td-answer .td-one-title").all_inner_texts()
    assert figures[:2] == ["Useful tokens", "Goodput"] and figures[-1] == "Same tokens"
    assert "ecided after" in text(user, ".td-sure") and page.locator("#batch-live .td-next").is_visible()
    assert text(user, ".td-cost").endswith("at 2.5 an hour.") and page.locator("#batch-live .td-pair").count() >= 2
    assert "of its slots at useful work" in text(user, ".td-why")
    assert re.search(r"A and B differ in .*Batching", text(user, ".td-digest"))
    assert min(ink(user, strip) for strip in (0, 1, 3, 4, 5)) > 500, "slots and requests of both arms, pages of B"
    assert page.locator("#batch-live canvas").nth(2).is_hidden(), "static batches have no pages"

    # by keyboard and by table: the same request, its reason and both texts
    page.locator("#batch-live canvas[tabindex]").first.focus()
    for _ in range(4):
        page.keyboard.press("ArrowDown")
    words = text(user, ".td-words")
    assert "Request 5: waited " in words and "for the static batch before it" in words, words
    assert "for the cap on requests in work" in page.locator("#batch-live .td-words").nth(1).inner_text()
    assert all(len(one) > 20 for one in page.locator("#batch-live .td-body").all_inner_texts())
    page.locator(".td-requests summary").click()
    cells = page.locator("#batch-live .td-ledger tbody tr:not(.td-quiet)").first.locator("td").all()
    tops = [cell.bounding_box()["y"] for cell in cells]
    assert len(cells) == 6 and max(tops) - min(tops) < 2, "what was requested, planned and effective stand side by side"
    row = page.locator(".td-request-rows tbody tr").nth(2).inner_text()
    assert "done" in row
    page.locator(".td-pick").nth(2).click()
    assert page.locator("#batch-live .td-request-number").input_value() == "3"

    stale = "document.querySelector('#batch-stale .td-line-text').textContent"
    fill(user, "batch-concurrent", "3")
    until(user, f"{stale}.startsWith('You changed the traffic since this run')")

    user.open(f"?run={run_id}")
    over(user, run_id)
    assert page.locator("#batch-run").is_visible() and page.locator("#batch-requests input").input_value() == "5"
    assert page.locator("#batch-price input").input_value() == "2.5" and user.page.evaluate(stale) == ""
    page.get_by_role("tab", name="Compare").click()
    page.wait_for_selector("#live .td-empty-run")
    assert page.locator("#live .td-permalink").text_content() == "", "Compare shows no run of many requests"


@pytest.mark.slow
def test_requests_that_were_a_list_are_not_shown_again_and_the_page_goes_on_saying_so(open_page: Open) -> None:
    user = open_page("?run=batch")
    over(user, "batch")
    until(user, "document.querySelector('#traffic-summary .td-line-text').textContent.includes('requests,')")
    assert "given as a list, which is not shown again" in user.text("#traffic-summary .td-line-text")
