"""The History page in a real browser: from a search to arms side by side and back, by address and by keyboard; names,
deletion and its undoing; markup in runs stays text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.access import obstacles
from tests.browser.driver import Driver

pytestmark = pytest.mark.slow

Open = Callable[..., Driver]
ROW = ".td-runs tr[data-run={}]"
RUNS = "[...document.querySelectorAll('.td-runs tbody tr')].map(row => row.dataset.run)"
DRAWN = "document.querySelector('#history .td-plot').data.filter(t => t.meta?.arm && t.x.length).map(t => t.meta)"
BESIDE = "document.querySelector('.td-side table') && document.querySelector('#history .td-plot').data?.length > 5"


def shown(page: Any) -> list[str]:
    found: list[str] = page.evaluate(RUNS)
    return found


def wait(page: Any, condition: str) -> None:
    page.wait_for_function(f"() => Boolean({condition})", timeout=60_000)


def search(page: Any, words: str, expected: list[str]) -> None:
    page.locator(".td-search [name=q]").fill(words)
    wait(page, f"{RUNS}.join() === {','.join(expected)!r}")


def test_from_a_search_to_arms_side_by_side_and_back(open_page: Open) -> None:
    user = open_page("?view=history", 1440, 900)
    page = user.page
    page.wait_for_selector(ROW.format("two"))
    assert {"two", "same", "evil", "batch", "broken"} <= set(shown(page))
    assert "run=" not in page.url
    page.locator(ROW.format("broken"), has_text="killed (SIGKILL)").wait_for()
    search(page, "nowhere", [])
    assert "Leave a filter out" in user.text("#history .td-empty-run")
    search(page, "two", ["two"])
    full = page.locator(ROW.format("two")).get_by_role("button", name="B KV cache full (no sliding window): pin")
    full.press("Enter")
    search(page, "marked", ["marked"])
    page.locator(f"{ROW.format('marked')} .td-pin").first.press("Space")
    page.get_by_role("button", name="Side by side").press("Enter")
    wait(page, BESIDE)
    assert "view=history" in page.url and "q=marked" in page.url and "pins=two.B%2Cmarked.A" in page.url
    assert "new tokens (50; 64)" in user.text(".td-said li")
    drawn = page.evaluate(DRAWN)
    lines = {(line["arm"], line["chart"]) for line in drawn}
    assert {("1", "latency"), ("2", "latency"), ("1", "kv"), ("2", "kv")} <= lines
    assert page.evaluate("document.activeElement.className") == "td-back"
    wait(page, "document.querySelector('#history .td-pareto .main-svg')")
    assert page.locator("#history .td-pareto li").count() == 2
    assert obstacles(page) == []
    page.go_back()
    wait(page, "document.querySelector('.td-search').offsetParent")
    assert page.locator(".td-search [name=q]").input_value() == "marked" and shown(page) == ["marked"]
    page.go_forward()
    wait(page, BESIDE)
    page.reload()
    wait(page, BESIDE)
    page.get_by_role("tab", name="Compare").click()
    wait(page, "location.search.includes('view=compare')")
    page.go_back()
    wait(page, "document.querySelector('.td-side table')?.offsetParent")


def test_a_run_is_saved_as_a_file_and_taken_in_again(open_page: Open, tmp_path: Path) -> None:
    user = open_page("?view=history&q=two", 1440, 900)
    page = user.page
    row = page.locator(ROW.format("two"))
    row.wait_for()
    for width in (1440, 1024, 768):
        page.set_viewport_size({"width": width, "height": 900})
        assert obstacles(page) == [], width
        broken = "[...document.querySelectorAll('.td-save-as a')].filter(a => a.offsetHeight > 30).length"
        assert page.evaluate(broken) == 0, f"the names of files stand on one line at {width}"
    with page.expect_download() as saved:
        row.get_by_role("link", name="File of").click()
    file = tmp_path / "two.dyno"
    saved.value.save_as(file)
    page.locator(".td-import-file").set_input_files(file)
    wait(page, f"{RUNS}.length === 1 && {RUNS}[0] !== 'two'")
    assert "imported" in page.locator(".td-runs tbody tr").inner_text()
    file.write_bytes(file.read_bytes()[:-30])
    page.locator(".td-import-file").set_input_files(file)
    wait(page, "document.querySelector('#history .td-failure').textContent.includes('damaged')")
    page.locator(".td-runs .td-delete").click()
    wait(page, f"{RUNS}.length === 0")


def test_a_run_is_named_deleted_and_had_back(open_page: Open) -> None:
    user = open_page("?view=history&q=traced&__theme=dark", 390, 844)
    page = user.page
    row = page.locator(ROW.format("traced"))
    row.wait_for()
    name = "<b>first</b> ${alert(1)}"
    row.locator(".td-edit-run").press("Enter")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    wait(page, f"document.querySelector('.td-name a')?.textContent === {name!r}")
    assert page.evaluate("document.activeElement.className") == "td-edit-run"
    assert obstacles(page) == []
    row.locator(".td-delete").press("Enter")
    wait(page, "!document.querySelector('.td-runs tbody tr')")
    assert page.evaluate("document.activeElement.textContent") == "Undo"
    page.keyboard.press("Enter")
    wait(page, "document.activeElement.closest('tr')?.dataset.run === 'traced'")
    page.locator(".td-edit-run").press("Enter")
    page.keyboard.press("Delete")
    page.keyboard.press("Enter")
    wait(page, "document.querySelector('.td-name a')?.textContent.startsWith('Pocket, 6')")
