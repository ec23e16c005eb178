"""Words of the field are explained where they stand: on hover, on focus and by a tap."""

from collections.abc import Callable

import pytest

from tests.browser.access import small_targets
from tests.browser.driver import Driver

Open = Callable[..., Driver]
pytestmark = pytest.mark.full
SAID = "document.querySelector('#live .td-meaning:popover-open')?.textContent ?? ''"


def test_a_word_is_explained_on_hover_focus_and_tap(open_page: Open) -> None:
    user = open_page("?run=two")
    user.wait_over("two")
    words = user.page.locator("#live .td-term")
    shown = {text.split(",")[0] for text in words.all_inner_texts()}
    assert {"First token", "Time a token", "% of roofline", "KV cache", "Ledger", "Arm", "Status"} <= shown

    roofline = words.get_by_text("% of roofline")
    roofline.hover()
    user.wait(f"({SAID}).includes('roofline bound is the least time')", 20)
    described = roofline.get_attribute("aria-describedby")
    assert user.page.locator(f"#{described}").inner_text() == user.page.evaluate(SAID)
    user.page.mouse.move(0, 0)
    user.wait(f"({SAID}) === ''", 20)

    user.page.locator("#live .td-term", has_text="Ledger").focus()
    user.wait(f"({SAID}).includes('what was planned')", 20)
    user.page.keyboard.press("Escape")
    user.wait(f"({SAID}) === ''", 20)
    assert small_targets(user.page) == []
    assert user.page.evaluate("document.activeElement.textContent") == "Ledger"

    user.page.set_viewport_size({"width": 390, "height": 844})
    user.still()
    user.page.locator("#live .td-one .td-term").first.click()
    user.wait(f"({SAID}) !== ''", 20)
    box = user.page.locator("#live .td-meaning").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    user.page.locator("#live .td-number").click()
    user.wait(f"({SAID}) === ''", 20)


def test_the_palette_is_a_key_away_and_names_the_arguments_of_transformers(open_page: Open) -> None:
    user = open_page()
    user.page.locator("#live").focus()
    user.page.keyboard.press("/")
    search = user.page.locator(".td-palette input")
    search.fill("float16")
    assert user.page.locator(".td-entry-argument").first.inner_text() == "dtype=torch.float16"
    search.press("Escape")
    assert user.page.locator(".td-palette[open]").count() == 0
