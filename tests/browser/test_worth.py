"""What each choice is worth, on the Compare page: an ablation by its link, and begun, stopped and gone on with."""

import itertools
from collections.abc import Callable

import pytest

from tests.browser.access import overlaps, small_targets, violations
from tests.browser.driver import Driver
from tests.support.axe import NotFetchedError, script

Open = Callable[..., Driver]


def test_an_ablation_comes_back_by_its_link_with_its_arms(open_page: Open) -> None:
    user = open_page("?worth=stored-worth", 1440, 900)
    user.page.wait_for_selector(".td-worth-group")
    assert user.chips("a") == ["Dtype bfloat16"] and user.chips("b") == ["Dtype float32", "KV cache static"]
    assert user.text(".td-worth-sentence").startswith("Stopped after 13 of 15 runs")
    assert user.page.locator(".td-worth-again").is_visible() and not user.page.locator(".td-worth-stop").is_visible()
    rows = user.page.locator(".td-worth-group").first.locator("tbody tr")
    assert rows.all_inner_texts()[1].split()[:2] == ["Dtype:", "float32"]
    boxes = [rows.nth(i).locator(".td-worth-bar").first.bounding_box() for i in range(3)]
    for before, after in itertools.pairwise(boxes):
        start = before["x"] if before is not boxes[0] else before["x"] + before["width"]
        assert after["x"] + after["width"] == pytest.approx(start, abs=3), "each begins where the one before ends"
    user.shot("worth-1440", full=True)
    user.page.set_viewport_size({"width": 390, "height": 844})
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.full
def test_two_choices_are_measured_stopped_and_gone_on_with(open_page: Open) -> None:
    user = open_page()
    said = "document.querySelector('.td-worth-sentence').textContent"
    user.page.click(".td-worth-begin")
    user.wait("document.querySelector('#message').textContent.includes('differ in one choice')")
    user.take("b", "static", "static")
    user.type("max-new-tokens", "2")
    user.page.click(".td-worth-begin")
    user.wait(f"/^Measuring: [1-9]/.test({said})", 120)
    user.page.click(".td-worth-stop")
    user.wait(f"{said}.startsWith('Stopped after')", 60)
    user.page.click(".td-worth-again")
    user.wait(f"{said}.startsWith('Measuring')", 30)
    user.page.click(".td-worth-stop")
    user.wait(f"{said}.startsWith('Stopped after')", 60)


@pytest.mark.slow
@pytest.mark.parametrize("page", ["?worth=stored-worth", "?run=reading"])
def test_both_readings_keep_nobody_out(open_page: Open, page: str) -> None:
    try:
        script()
    except NotFetchedError:
        pytest.skip("axe-core cannot be fetched")
    user = open_page(page, 1366, 900, reduced_motion="reduce")
    user.page.wait_for_selector(".td-worth-group" if "worth" in page else ".td-quality table")
    for theme in ("light", "dark"):
        user.page.evaluate(f"document.body.classList.toggle('dark', {str(theme == 'dark').lower()})")
        for what in (violations, small_targets, overlaps):
            assert what(user.page) == [], (theme, what.__name__)
