"""A story plays at once, another can be chosen, and "Run it here" runs it on Compare, or says why not."""

from collections.abc import Callable

import pytest

from tests.browser.access import obstacles
from tests.browser.driver import Driver
from tokendyno.backend.arms.parse import parse_arm
from tokendyno.backend.stories import stories

Open = Callable[..., Driver]
PANEL = "document.querySelector('#story-live .td-live')"


@pytest.mark.slow
def test_a_story_plays_and_its_arms_can_be_run_here(open_page: Open) -> None:
    first, last = stories()[0], stories()[-1]
    user = open_page(f"?view=stories&story={first.name}", 1440, 900)
    page = user.page
    user.wait(f"{PANEL} && {PANEL}.dataset.over === 'recorded-{first.recording}'")
    assert user.text(".td-story-text h2") == first.title
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
    page.locator("#story").get_by_role("button", name=last.title).click()
    user.wait(f"{PANEL}.dataset.over === 'recorded-{last.recording}'")
    assert "story=" + last.name in page.url and "run=" not in page.url
    page.locator("#story .td-take").click()
    page.locator("#run").wait_for(state="visible")
    user.wait(f"document.querySelector('#prompt textarea').value === {last.here.prompt!r}")
    assert page.locator("#max-new-tokens input").input_value() == str(last.here.max_new_tokens)
    choices = dict(parse_arm(last.here.model, last.here.b).choices)
    user.wait(f"document.querySelectorAll('#verdicts-b .td-chip').length === {len(choices)}")
    assert f"Dtype {choices['dtype']}" in user.chips("b")
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
