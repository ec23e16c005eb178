"""A story plays at once, another can be chosen, and "Run it here" runs it on Compare, or says why not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.access import obstacles
from tests.browser.driver import Driver
from tests.support.served import served
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.optimizations import axis_title, choice_title
from tokendyno.backend.stories import stories

Open = Callable[..., Driver]
pytestmark = pytest.mark.slow
PANEL = "document.querySelector('#story-live .td-live')"


def test_a_story_plays_and_its_arms_can_be_run_here(open_page: Open) -> None:
    first, last = stories()[0], stories()[-1]
    user = open_page(f"?view=stories&story={first.name}", 1440, 900)
    page = user.page
    user.wait(f"{PANEL} && {PANEL}.dataset.over === 'recorded-{first.recording}'")
    assert user.text(".td-story-text h2") == first.title
    assert "NVIDIA H100 80GB HBM3, host Intel" in user.text(".td-first .td-story-caption"), "beside its number"
    assert page.locator("#story [aria-current]").inner_text().startswith(first.title)
    user.wait("document.querySelector('#story-live .td-race').textContent.includes('Pause')")

    # the charts show what there was at the moment of the clock, on the axes of the whole run
    panel = page.locator("#story-live")
    panel.locator(".td-race").click()
    panel.locator(".td-scrub").evaluate("s => { s.value = s.max / 2; s.dispatchEvent(new Event('input')); }")
    clock = "document.querySelector('#story-live .td-scrub').value"
    half = page.evaluate(f"{PANEL}.live.series.map(({{t}}) => t.filter(at => at <= {clock}))")
    drawn = (
        "document.querySelector('#story-live .td-plot').data.filter(t => t.meta && t.meta.chart === 'kv' && "
        "t.meta.kind && !t.meta.curve).map(t => Math.max(0, ...t.x))"
    )
    user.wait(f"Math.max(...{drawn}) === {max(map(len, half)) - 1}")
    race = panel.locator(".td-tools").bounding_box()
    assert race["y"] + race["height"] <= 900, "texts and their race stand above the fold"

    assert obstacles(page) == []
    many = next(story for story in stories() if story.name == "batching")
    page.locator("#story").get_by_role("button", name=many.title).click()
    page.locator("#story-many .td-lane.arm-b canvas").first.wait_for()
    assert panel.is_hidden() and "run=" not in page.url and obstacles(page) == []

    page.locator("#story").get_by_role("button", name=last.title).click()
    user.wait(f"{PANEL}.dataset.over === 'recorded-{last.recording}'")
    assert "story=" + last.name in page.url and "run=" not in page.url
    assert panel.is_visible() and page.locator("#story-many").is_hidden()
    page.locator("#story .td-take").click()
    page.locator("#run").wait_for(state="visible")
    user.wait(f"document.querySelector('#prompt textarea').value === {last.here.prompt!r}")
    assert page.locator("#max-new-tokens input").input_value() == str(last.here.max_new_tokens)
    choices = parse_arm(last.here.model, last.here.b).choices
    chips = [f"{axis_title(axis)} {choice_title(axis, choice)}" for axis, choice in choices]
    for chip in chips:
        page.locator("#verdicts-b .td-chip", has_text=chip).wait_for()
    assert sorted(user.chips("b")) == sorted(chips)
    user.wait("!document.querySelector('#stop').disabled")
    user.wait("new URL(location.href).searchParams.get('run')")
    run_id = user.shown()
    page.get_by_role("tab", name="Stories").click()
    page.locator("#story .td-take").click()
    user.wait("document.querySelector('#story-message').textContent.includes('still going on')")
    page.get_by_role("tab", name="Compare").click()
    assert user.shown() == run_id
    page.locator("#stop").click()
    user.wait_over(run_id)


@pytest.mark.full
def test_where_nothing_is_run_stories_play_and_the_pages_say_so(browser: Any, tmp_path: Path) -> None:
    said = "This host only shows recordings and runs nothing. To run it yourself,"
    with served(tmp_path, "--mode", "show") as app:
        context = browser.new_context(viewport={"width": 1366, "height": 768}, reduced_motion="reduce")
        user = Driver(context.new_page(), app.url).open("?view=stories")
        page = user.page
        user.wait(f"{PANEL} && {PANEL}.dataset.over")
        race = page.locator("#story-live .td-race")
        assert "Race" in race.inner_text() and user.text(".td-story-here").startswith(said)
        page.get_by_role("button", name="Play the recording").click()
        race.filter(has_text="Pause").wait_for()
        user.wait("document.querySelector('#story-live .td-race').textContent.includes('Race')")  # to its end
        page.get_by_role("button", name="Play the recording").click()
        race.filter(has_text="Pause").wait_for()
        assert user.text("#story-message").strip() == "" and obstacles(page) == []

        for view, run, line in (("compare", "#run", "#will"), ("batching", "#batch-run", "#traffic-summary")):
            page.goto(f"{app.url}/?view={view}")
            page.locator(line, has_text=said).wait_for()
            assert page.locator(run).is_disabled()
        page.goto(f"{app.url}/?view=compare&run=recorded-{stories()[0].recording}")
        page.locator("#live .td-lead").wait_for()
        assert page.locator("#run").is_disabled() and page.locator("#live .td-next").is_hidden()
        context.close()
