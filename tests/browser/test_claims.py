"""The Claims page in a real browser: rows as computed, one verdict at a time, detail with its chart, the address."""

from collections.abc import Callable

import pytest

from tests.browser.access import obstacles
from tests.browser.driver import Driver
from tokendyno.backend.claims.declared import shipped_claims
from tokendyno.backend.claims.results import read_results
from tokendyno.backend.claims.view import claims_document

ROWS = (
    """() => [...document.querySelectorAll('.td-claim-row')].map(row => [...row.cells].map(cell => cell.textContent))"""
)


@pytest.mark.slow
def test_rows_detail_filter_and_address(open_page: Callable[..., Driver]) -> None:
    claims = shipped_claims()
    document = claims_document(claims, read_results(claims.tests))
    page = open_page("?view=fit", 1440, 900).page
    page.wait_for_selector(".td-fit-chart")  # by now the page hears of clicks
    others = "#live, #story-live, #batch-live, #history, #claims"
    assert page.locator(others).count() == 0, "rooms start when they are opened"
    page.get_by_role("tab", name="Claims").click()
    page.locator(".td-claim-open[data-name=flash-same-output]").click()
    page.wait_for_selector(".td-claim-more .td-claim-chart .main-svg", timeout=30_000)
    shown = [[one.title, one.claimed or "–", one.measured or "–", one.word + one.remark] for one in document.claims]
    assert page.evaluate(ROWS) == shown
    (opened,) = page.query_selector_all(".td-claim-more")
    (one,) = [claim for claim in document.claims if claim.name == "flash-same-output"]
    figures = [figure for machine in one.machines for figure in machine.figures]
    assert one.said in opened.text_content() and all(figure.measured in opened.text_content() for figure in figures)
    assert len(opened.query_selector_all(".td-claim-chart")) == sum(figure.value is not None for figure in figures)
    ticks = page.eval_on_selector_all(".td-claim-chart .xtick text", "all => all.map(one => one.textContent)")
    assert "0.00005 nats" in ticks, "small numbers plainly, not 20\u00b5"
    for width in (1440, 768, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert obstacles(page) == [], width
    page.locator(".td-claim-open[data-name=kv-half]").click()
    page.locator(".td-claim-curve summary").click()
    page.wait_for_selector(".td-claim-curve .main-svg")
    assert page.locator(".td-claim-curve th", has_text="Prompt tokens").is_visible() and obstacles(page) == []
    page.get_by_role("button", name="partly confirmed", exact=False).first.click()
    assert all(row[-1].startswith("partly confirmed") for row in page.evaluate(ROWS))
    page.locator(".td-claim-open").first.click()
    assert page.locator(".td-claim-open").first.get_attribute("aria-expanded") == "true"
    first = page.locator(".td-claim-open").first.get_attribute("data-name")
    assert f"name={first}" in page.url and page.evaluate("document.activeElement.dataset.name") == first
    page.set_viewport_size({"width": 1440, "height": 900})  # tabs that need no menu
    page.reload()
    page.wait_for_selector(f".td-claim-open[data-name={first}][aria-expanded=true]")
    for room in ("Fit", "Claims"):
        page.get_by_role("tab", name=room).click()
        page.wait_for_function(f"location.search.includes('view={room.lower()}')")
    assert f"name={first}" in page.url, "what a link opened is still named after a look at another page"
