"""The Fit page in a real browser: results, refusals, and back to Compare."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]
ROWS = "document.querySelectorAll('#fit-table tbody tr')"


def open_fit(user: Driver) -> Any:
    user.page.get_by_role("tab", name="Fit").click()
    said(user, "fit-best", "")
    return user.page


def said(user: Driver, line: str, part: str) -> str:
    """Wait until a line is not empty and contains `part`."""
    text = f"document.querySelector('#{line} .td-line-text')?.textContent ?? ''"
    user.page.wait_for_function(f"() => ({text}).length && ({text}).includes({part!r})", timeout=30_000)
    found: str = user.page.evaluate(text)
    return found


def fill(user: Driver, control: str, text: str) -> None:
    box = user.page.locator(f"#{control} input").first
    box.fill(text)
    box.press("Enter")


def test_a_model_and_a_gpu_give_a_table(open_page: Open) -> None:
    user = open_page()
    page = open_fit(user)
    assert "Pocket" in said(user, "fit-heading", "free")
    fill(user, "fit-gpu", "RTX-4090")
    said(user, "fit-heading", "RTX-4090")
    fill(user, "fit-model", "gpt-oss-20b")
    said(user, "fit-heading", "gpt-oss 20B on RTX-4090")
    said(user, "fit-best", "longest context")
    page.wait_for_function(f"() => [...{ROWS}].some(row => row.textContent.includes('no, by'))", timeout=30_000)
    assert page.get_by_text("Longest context").count() >= 1
    user.shot("fit-1366")


@pytest.mark.slow
def test_a_number_of_gpus_is_taken_and_an_impossible_one_refused(open_page: Open) -> None:
    user = open_page()
    open_fit(user)
    fill(user, "fit-model", "Llama-3-8B")
    fill(user, "fit-gpu", "RTX-4090")
    fill(user, "fit-gpus", "2")
    said(user, "fit-heading", "Llama 3 8B on 2 x RTX-4090")
    said(user, "fit-notes", "DistributedConfig(tp_size=2)")
    fill(user, "fit-gpus", "3")
    said(user, "fit-message", "Take one of 1, 2, 4, 8")


@pytest.mark.slow
def test_markup_stays_text_and_an_unknown_gpu_keeps_what_was_typed(open_page: Open) -> None:
    user = open_page()
    page = open_fit(user)
    evil = "<img src=x onerror=alert(1)>"
    fill(user, "fit-gpu", evil)
    assert evil in said(user, "fit-message", "no GPU")
    assert page.locator("#fit-table").count() == 0 or not page.locator("#fit-table").is_visible()
    assert page.locator("#fit-gpu input").input_value() == evil
    assert page.locator("#fit-message img").count() == 0
    fill(user, "fit-gpu", "24GiB")
    said(user, "fit-heading", "a GPU of 24GiB")
    assert page.evaluate("document.querySelector('#fit-message .td-line-text').textContent") == ""


@pytest.mark.slow
def test_the_panel_of_a_run_is_there_again_when_one_comes_back(open_page: Open) -> None:
    user = open_page("?run=two")
    user.wait_over("two")
    open_fit(user)
    user.page.get_by_role("tab", name="Compare").click()
    user.page.wait_for_function(
        "() => document.querySelector('.td-plot .main-svg')?.getBoundingClientRect().width > 300"
    )
    assert user.shown() == "two"
    assert user.page.locator("#run").is_visible()


@pytest.mark.slow
def test_on_a_phone_only_the_table_scrolls_sideways(open_page: Open) -> None:
    user = open_page("?__theme=dark", 390, 844)
    page = open_fit(user)
    said(user, "fit-heading", "free")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    user.shot("fit-phone-390", full=True)
