"""A story on the whole screen, by keys alone: its figure and its chart, the race, and its neighbours."""

from collections.abc import Callable

import pytest

from tests.browser.access import obstacles
from tests.browser.driver import Driver
from tokendyno.backend.stories import stories

Open = Callable[..., Driver]
pytestmark = pytest.mark.full
SLIDE = "document.querySelector('#story-live .td-slide')"
PANEL = "document.querySelector('#story-live .td-live')"
VISIBLE = f"[...{SLIDE}.querySelectorAll('*')].filter(one => one.checkVisibility())"
SMALLEST_PX = f"""() => Math.min(...{VISIBLE}
  .filter(one => [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
  .map(one => parseFloat(getComputedStyle(one).fontSize)))"""
OUTSIDE = f"""() => {VISIBLE}.filter(one => one.matches('p, h2, svg, button, section')).filter(one => {{
  const {{ left, right, top, bottom }} = one.getBoundingClientRect();
  return left < 0 || top < 0 || right > innerWidth || bottom > innerHeight;
}}).map(one => one.outerHTML.slice(0, 80))"""


def test_a_story_is_presented_played_and_left_by_keys(open_page: Open) -> None:
    told, after = [one for one in stories() if one.recording in ("sliding-window", "half-bytes")]
    user = open_page(f"?view=stories&story={told.name}", 1280, 720, reduced_motion="reduce")
    keys, slide = user.page.keyboard, user.page.locator("#story-live .td-slide")
    user.wait(f"{PANEL} && {PANEL}.dataset.over === 'recorded-{told.recording}'")
    keys.press("p")
    user.wait(f"{SLIDE}.open && {SLIDE}.querySelector('.scatterlayer path')")
    assert slide.locator(".td-slide-title").inner_text() == told.title
    assert [slide.locator(f".td-slide-{part}").inner_text() for part in ("figure", "tail")] == [
        user.page.locator(f".td-story-number {part}").inner_text() for part in ("b", "span")
    ], "one number of a story, on its page and on its slide"
    assert user.page.evaluate(SMALLEST_PX) >= 18 and user.page.evaluate(OUTSIDE) == []
    assert obstacles(user.page) == []

    keys.press("PageDown")  # a story of one arm, with its own chart
    user.wait(f"{SLIDE}.querySelector('.td-slide-tail').textContent.includes('beside a dense model')")
    assert user.page.evaluate(OUTSIDE) == []
    keys.press("PageDown")
    user.wait(f"{PANEL}.dataset.over === 'recorded-{after.recording}'")
    user.wait(f"{SLIDE}.querySelector('.td-slide-figure').textContent.endsWith('\u00d7')")
    assert slide.locator(".td-slide-title").inner_text() == after.title and f"story={after.name}" in user.page.url
    assert "roofline bound" in user.text("#story-live .td-slide-chart")
    assert "6.20 ms, mean of 5 runs" in (user.page.locator("#story-live .td-slide-chart").text_content() or "")

    # without motion the race begins at its end, and plays when it is asked for once more
    keys.press("Space")
    texts = slide.locator(".td-slide-text")
    whole = texts.all_text_contents()
    assert len(whole) == 2 and all(whole) and user.page.evaluate(SMALLEST_PX) >= 18
    keys.press("Space")
    user.wait(f"{SLIDE}.querySelector('.td-slide-play').textContent.includes('Pause')")
    keys.press("Space")
    played = texts.all_text_contents()
    assert len(played[0]) < len(whole[0]) and played[0] == whole[0][: len(played[0])]
    keys.press("ArrowRight")
    assert len(texts.first.text_content() or "") >= len(played[0])
    keys.press("Escape")
    user.wait(f"!{SLIDE}.open && !document.fullscreenElement")


def test_no_text_of_a_slide_is_cut_however_long_the_name_of_its_memory(open_page: Open) -> None:
    user = open_page("?view=stories&story=four-bit", 1280, 720)
    user.wait(f"{PANEL} && {PANEL}.dataset.over === 'recorded-four-bit'")
    user.page.keyboard.press("p")
    user.wait(f"{SLIDE}.open && {SLIDE}.querySelector('.ytitle').textContent.endsWith(', GiB')")
    assert obstacles(user.page) == []


def test_p_in_a_field_is_a_letter(open_page: Open) -> None:
    user = open_page("?run=two")
    user.page.locator("#prompt textarea").press("p")
    assert user.value("prompt").count("p") == "Once upon a time".count("p") + 1
    assert user.page.locator(".td-slide[open]").count() == 0
    user.page.locator("#live .td-present").click()
    assert user.text("#live .td-slide-figure") and user.page.locator("#live .td-slide[open]").count() == 1
    user.page.keyboard.press("p")
    assert user.page.locator(".td-slide[open]").count() == 0
