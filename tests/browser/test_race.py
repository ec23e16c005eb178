"""The race: both texts at their true speed, with a slider that moves through texts and charts."""

from collections.abc import Callable

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]
EARLY_FRAMES = """() => {
  const clock = document.querySelector('.td-clock'), plain = window.requestAnimationFrame.bind(window);
  window.told = [];
  new MutationObserver(() => told.push(clock.textContent)).observe(clock, { childList: true, subtree: true });
  window.requestAnimationFrame = task => plain(now => task(now - 50));
}"""
"""Frames that begin 50 ms before they are asked for, and what the clock of the race says meanwhile."""


@pytest.mark.full
def test_the_slider_moves_texts_and_charts_and_a_race_ends_with_the_whole_texts(open_page: Open) -> None:
    user = open_page("?run=two")
    user.wait_over("two")
    a, b = (user.page.locator(".td-body").nth(i) for i in range(2))
    whole = [a.text_content(), b.text_content()]
    slider, clock = user.page.locator(".td-scrub"), ".td-clock"
    user.wait("!document.querySelector('.td-scrub').disabled")
    slider.evaluate("s => { s.value = 0.05; s.dispatchEvent(new Event('input')); }")
    axis = "document.querySelector('.td-plot')._fullLayout.yaxis"
    user.wait(f"{axis}.showticklabels && {axis}.range[1] > 10")  # before the first token the axis is that of the run
    slider.evaluate("s => { s.value = 0.4; s.dispatchEvent(new Event('input')); }")
    assert user.text(clock) == "0.40 of 0.73 s"
    assert 0 < len(a.text_content() or "") < len(whole[0] or "") and user.page.locator(".td-moment").count() == 6
    assert user.text(".td-readout").split("\n") == [
        "A10 ms, roofline bound 5.587, token 30",
        "B10 ms, roofline bound 6.048, token 30",
    ]
    user.page.click("[data-axis=second]")
    user.wait("document.querySelectorAll('.td-place').length === 3")
    assert user.text(".td-place") == "0.40 s" and user.page.locator(".td-moment").count() == 6
    user.page.click("[data-axis=token]")
    slider.evaluate("s => { s.value = 0.65; s.dispatchEvent(new Event('input')); }")
    assert user.text(clock) == "0.65 of 0.73 s, B done" and b.text_content() == whole[1].replace("\u2260", "")
    slider.focus()
    user.page.keyboard.press("Home")
    assert (a.text_content(), b.text_content()) == ("", "")
    user.page.evaluate(EARLY_FRAMES)
    user.page.click(".td-race")
    user.wait(
        "document.querySelector('.td-clock').textContent.startsWith('0.73 of 0.73 s') && "
        "document.querySelectorAll('.td-moment').length === 0"
    )
    told = user.page.evaluate("told")
    assert told and not [text for text in told if text.startswith("-")]
    assert [a.text_content(), b.text_content()] == whole
