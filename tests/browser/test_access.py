"""For everyone: what axe-core finds, targets, movement, overlaps, and a run by keyboard alone."""

import os
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.access import focused, moving, obstacles, overlaps, small_targets, violations
from tests.browser.driver import Driver
from tests.support.axe import NotFetchedError, script

Open = Callable[..., Driver]
SIZES = ((390, 844), (720, 450), (768, 1024), (1280, 720), (1440, 900), (1920, 1080))
"""A phone to a large screen; the second is 1440x900 at 200% zoom."""
STATES = {
    "?view=stories": ".td-story-number, .td-race",
    "?run=two": ".td-answer.td-decided, .td-answer.open",
    "?run=marked": ".td-annotations",
    "?run=broken": "#live .td-failure:not(:empty)",
    "?run=reading": ".td-quality table",
    "?run=passes": ".td-answer.td-decided",
    "?run=evil": ".td-text",
    "?run=batch": ".td-lane canvas",
    "?view=batching&model=pocket": "#batch-run",
    "?view=fit": "#fit-best .td-line-text:not(:empty)",
    "?view=history": ".td-runs table, .td-runs li, .td-runs",
    "?view=claims": ".td-claim-row",
    "?worth=stored-worth": ".td-worth-group",
    "?sweep=stored-sweep": "#sweep .td-pareto .main-svg",
}
"""Addresses, and what is there once each is shown."""


@pytest.fixture(scope="session", autouse=True)
def axe() -> None:
    """Skipped where axe-core cannot be fetched, except in CI, where that is a failure."""
    try:
        script()
    except NotFetchedError as missing:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(missing))


COVERS = """(() => {
  const option = document.querySelector('#axis-b-attention [role=option]'), box = option.getBoundingClientRect();
  const seen = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
  let under = option;
  while (under.closest('[role=listbox]') && getComputedStyle(under).backgroundColor === 'rgba(0, 0, 0, 0)') {
    under = under.parentElement;
  }
  return option.contains(seen) && under.closest('[role=listbox]') !== null;
})()"""
"""An open list lies over the page by intent, so nothing may shine through it."""


STILL = """() => !document.getAnimations().some(
  one => one.playState === 'running' && Number.isFinite(one.effect.getComputedTiming().endTime)
)"""
"""Colours of a moment between two states are none of either, be it a style that changes or a list that fades in."""


class Look:
    """Looks at a page in each of its states and keeps what is wrong."""

    def __init__(self, page: Any, at: tuple[Callable[[Any], list[str]], ...] = ()) -> None:
        self.page, self.whats = page, at or (violations, small_targets, moving, overlaps)
        self.found: list[str] = []

    def at(self, state: str) -> None:
        self.page.wait_for_function(STILL)
        for what in self.whats:
            self.found += [f"{state}: {what.__name__}: {one}" for one in what(self.page)]


def compare_states(user: Driver, look: Look) -> None:
    """The Compare page with everything open that can be opened."""
    page = user.page
    look.at("finished")
    page.click("#more-button")
    user.show_axes("b")
    page.locator("button.label-wrap").first.click()  # the scripts
    page.locator(".cm-scroller").first.wait_for()
    page.locator(".td-details summary").first.click()
    look.at("all open")
    page.locator(".td-distribution").click()
    page.wait_for_selector(".td-spread[open]")
    look.at("distribution")
    page.keyboard.press("Escape")
    page.locator("#verdicts-b .td-add").first.click()
    page.wait_for_selector(".td-palette[open] .td-entry")
    look.at("palette")
    page.keyboard.press("Escape")
    user.type("max-new-tokens", "65")
    user.wait("document.querySelector('#stale .td-line-text').textContent")
    look.at("stale")
    user.choose("axis-b-loop", "own")
    page.locator("#verdicts-b .td-chip.blocked").first.wait_for()
    page.locator("#axis-b-attention input").click()
    page.locator("#axis-b-attention [role=option]").first.wait_for()
    look.at("a list is open")
    assert page.evaluate(COVERS), "an open list hides what is below it"
    page.keyboard.press("Escape")
    page.click("#run")
    user.wait("document.querySelector('#message .td-line-text').textContent.includes('static')")
    look.at("refused")


@pytest.mark.slow
def test_nothing_keeps_anyone_out_of_compare_with_all_open(open_page: Open) -> None:
    user = open_page("?run=two&__theme=light", 1366, 900, reduced_motion="reduce")
    look = Look(user.page)
    user.wait_over("two")
    compare_states(user, look)
    user.page.evaluate("document.body.classList.add('dark')")
    look.at("dark")
    assert look.found == []


@pytest.mark.full
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("query", "there"), STATES.items())
def test_every_state_at_every_width(open_page: Open, query: str, there: str, theme: str) -> None:
    """`TOKENDYNO_SHOTS`: a folder for the pictures."""
    page, found, said = open_page("?view=history", 1440, 900).page, [], []  # which draws no chart
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(f"{page.url.partition('?')[0]}{query}&__theme={theme}")
    page.locator(there).first.wait_for(timeout=60_000)
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_timeout(300)  # plotly.js draws anew once the page has its size
        page.wait_for_function(STILL)
        found += [f"{width}: {one}" for one in obstacles(page)]
        if shots := os.environ.get("TOKENDYNO_SHOTS"):
            page.screenshot(path=f"{shots}/{re.sub(r'[^a-z0-9]+', '-', query[1:])}-{width}-{theme}.png", full_page=True)
    assert (found, said) == ([], [])


@pytest.mark.full
def test_a_whole_run_by_keyboard_alone(open_page: Open) -> None:
    user = open_page(height=900)
    keys, page = user.page.keyboard, user.page
    reached = []

    def tab_to(name: str, most: int = 60) -> None:
        for _ in range(most):
            if focused(page) == name:
                return
            keys.press("Tab")
            reached.append(focused(page))
        raise AssertionError(f"{name} was not reached: {reached}")

    def comes_to(name: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while focused(page) != name:
            assert time.monotonic() < end, f"the focus is on {focused(page)!r}, not on {name!r}"
            page.wait_for_timeout(50)

    def fill(control: str, number: str) -> None:
        page.locator(f"#{control} input").focus()
        keys.press("Control+A")
        keys.type(number)
        keys.press("Tab")

    tab_to("Prompt preset")
    keys.press("ArrowDown")
    keys.press("Enter")
    comes_to("Prompt preset")
    page.wait_for_function(
        "() => !document.querySelector('#prompt-preset [role=option]')"
    )  # the list that was left stays shut
    fill("max-new-tokens", "100")
    page.locator("#run").wait_for()
    page.locator("#verdicts-b .td-remove[data-press=cache]").focus()  # take off what arm B begins with
    keys.press("Enter")
    page.locator("#verdicts-b .td-remove[data-press=cache]").wait_for(state="detached")
    page.wait_for_function("() => document.querySelector('#verdicts-b').contains(document.activeElement)")
    page.locator("#verdicts-b [data-press=add]").focus()
    keys.press("Enter")
    comes_to("Search optimizations and presets")
    keys.press("Escape")
    comes_to("add")
    keys.press("Enter")
    comes_to("Search optimizations and presets")
    keys.type("static cache")
    for _ in range(20):  # past bundles with a static cache, some of which compile
        keys.press("ArrowDown")
        if focused(page).startswith("KV cache: static"):
            break
    keys.press("Enter")
    page.wait_for_selector("#verdicts-b .td-remove[data-press=cache]")
    assert user.chips("b") == ["Dtype float32", "KV cache static"]
    assert page.evaluate("document.querySelector('#verdicts-b').contains(document.activeElement)")
    page.locator("#more-button").focus()
    keys.press("Shift+Tab")
    tab_to("more-button")
    keys.press("Enter")
    fill("seconds", "0.1")
    page.locator("#run").focus()
    keys.press("Enter")
    comes_to("stop")
    user.wait("document.querySelector('.td-live')?.dataset.over", 200)
    comes_to("run")
    assert user.text(".td-badge-said")
    fill("max-new-tokens", "3000")  # enough to be looked at and stopped
    page.locator("#run").focus()
    keys.press("Enter")
    comes_to("stop")
    user.wait_tokens(0, 1)
    look = Look(page, (violations, small_targets, overlaps))
    look.at("streaming")
    keys.press("Enter")
    comes_to("run")
    user.wait_status("cancelled")
    user.wait("document.querySelector('.td-live')?.dataset.over")
    look.at("stopped")
    assert look.found == []
