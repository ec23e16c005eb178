"""How the page looks in dark and light, on a laptop and a phone, and what a screen reader finds."""

from collections.abc import Callable

import pytest

from tests.browser.access import overlaps
from tests.browser.driver import LIVE, Driver

Open = Callable[..., Driver]
pytestmark = pytest.mark.slow


OVERLAPS = """() => {
  const boxes = (what) => [...document.querySelectorAll('.td-plot ' + what)].map(e => e.getBoundingClientRect());
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const clash = one => boxes('.annotation-text').filter(other => !apart(one, other));
  return boxes('.infolayer [class^=legend] .traces .legendtext').flatMap(clash).map(box => [box.x, box.y]);
}"""


def test_one_screen_shows_choices_verdict_and_texts_and_an_edit_dims_it(open_page: Open) -> None:
    user = open_page("?run=two&__theme=light", 1440, 900)
    user.wait_over("two")
    above = 0.0
    for selector in ("#run", "#arm-a", ".td-answer", ".td-texts", ".td-tools"):
        box = user.page.locator(selector).bounding_box()
        assert above <= box["y"] and box["y"] + box["height"] <= 900, (selector, box)
        above = box["y"]
    charts, tiles = (user.page.locator(selector).bounding_box() for selector in (".td-stage", ".td-tiles"))
    assert charts["y"] < 820 and charts["y"] + charts["height"] <= tiles["y"]
    for width in (1440, 1024, 768, 390):
        user.page.set_viewport_size({"width": width, "height": 900})
        user.wait(
            "Math.abs(document.querySelector('.td-plot')._fullLayout.width - "
            "document.querySelector('.td-plot').clientWidth) < 2"
        )
        assert user.page.evaluate(OVERLAPS) == [], width
        assert user.page.evaluate("document.body.scrollWidth") <= width
    user.page.set_viewport_size({"width": 1440, "height": 900})
    grey = user.page.evaluate("getComputedStyle(document.querySelector('.td-basis')).color")
    user.type("max-new-tokens", "65")
    user.wait(
        "document.querySelector('#stale .td-line-text').textContent === "
        "'You changed the workload since this run. Press Run for new results.'"
    )
    assert float(user.page.evaluate("getComputedStyle(document.querySelector('.td-stage')).opacity")) < 1
    assert user.page.evaluate("getComputedStyle(document.querySelector('.td-number')).color") == grey
    user.type("max-new-tokens", "64")
    user.wait("getComputedStyle(document.querySelector('.td-stage')).opacity === '1'")
    assert user.page.evaluate("getComputedStyle(document.querySelector('.td-number')).color") != grey
    light = user.layout("font.color")
    user.page.evaluate("document.body.classList.add('dark')")
    user.wait(f"document.querySelector('.td-plot')._fullLayout.font.color !== {light!r}")


@pytest.mark.full
def test_nothing_moves_while_a_run_streams_or_is_lost_while_the_connection_fails(open_page: Open) -> None:
    user = open_page("?run=two", reduced_motion="reduce")  # else Run scrolls for a while, which moves all of it
    for arm in "ab":
        user.choose(f"preset-{arm}", "float32")
    user.type("max-new-tokens", "400")
    user.two_pairs()
    run_id = user.run()
    user.wait_tokens(0, 5)
    parts = (
        "document.querySelectorAll('#arms, .td-answer, .td-tiles, .td-progress, .td-texts, .td-stage, .td-annotations')"
    )
    places = f"[...{parts}].map(e => e.getBoundingClientRect().top)"
    still = pytest.approx(user.page.evaluate(places), abs=1.5)  # a line of text rounds to one pixel more or less
    user.page.route("**/component_server**", lambda route: route.abort())
    user.wait(f"{LIVE}.querySelector('.td-connection').textContent.includes('Retrying')")
    user.page.unroute("**/component_server**")
    user.wait_tokens(1, 30)
    assert user.page.evaluate(places) == still
    user.wait_over(run_id)
    assert user.page.evaluate(places) == still
    assert user.text(".td-connection") == ""
    for times in user.page.evaluate(f"{LIVE}.live.series.map(columns => columns.t)"):
        assert times == sorted(set(times)) and len(times) > 10


@pytest.mark.full
def test_on_a_phone_everything_is_stacked(open_page: Open) -> None:
    user = open_page("?run=two", 390, 844)
    user.wait_over("two")
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert user.layout("yaxis.domain[0]") > user.layout("yaxis2.domain[1]") > user.layout("yaxis3.domain[1]")
    a, b = (user.page.locator(f"#arm-{arm}").bounding_box() for arm in "ab")
    assert a["y"] + a["height"] <= b["y"] and a["width"] <= 390
    assert user.page.evaluate("document.querySelector('#masthead').scrollWidth") <= 390, "nothing sticks out"
    texts = [f".{part}.arm-{arm}" for arm in "ab" for part in ("td-phases", "td-text")]  # each below its arm's name
    shown = [user.page.locator(f"#live {one}").bounding_box()["y"] for one in (".td-answer", *texts, ".td-plot")]
    assert [b["y"], *shown] == sorted([b["y"], *shown])


def test_no_text_of_a_chart_is_cut_where_three_charts_have_the_least_room(open_page: Open) -> None:
    user = open_page("?run=recorded-half-bytes", 800, 900)
    user.wait_over("recorded-half-bytes")
    legend = user.page.locator(".td-plot .legend3text", has_text="predicted")
    legend.wait_for()
    assert overlaps(user.page) == []
    user.point(2, 24)
    legend.wait_for(state="hidden")  # values stand in its place
    user.page.mouse.move(5, 5)
    legend.wait_for()


def test_annotations_are_neutral_shapes_at_their_tokens_and_text_below(open_page: Open) -> None:
    user = open_page("?run=marked&__theme=dark", 1440, 900)
    user.wait_over("marked")
    drawn = "document.querySelector('.td-plot').data.filter(t => t.meta && t.meta.annotations)"
    user.wait(f"{drawn}.length === 2 && document.querySelector('.td-plot .scatterlayer .point')")
    a, b = user.page.evaluate(
        f"{drawn}.map(t => ({{arm: t.meta.annotations, x: [...t.x], y: [...t.y],"
        " shapes: [...t.marker.symbol], ink: t.marker.color}))"
    )
    assert (a["arm"], a["x"], b["arm"], b["x"]) == ("A", [21, 22, 40], "B", [12, 30, 35, 40])
    assert set(a["y"] + b["y"]) == {10.0}, "on the line"
    assert not any(shape.endswith("-open") for shape in a["shapes"]) and all(s.endswith("-open") for s in b["shapes"])
    assert a["ink"] == user.layout("font.color"), "neutral, in either theme"
    said = user.text(".td-annotations")
    assert "token 21: window filled" in said and "and 1 more" in said
    assert user.page.locator(".td-annotations script, .td-annotations img").count() == 0
    user.point(0, 22 - 0.2)
    user.wait("document.querySelector('.td-noted').textContent.includes('cumulative_length_int <= 127')")
    assert user.text(".td-noted").startswith("A token 22: compiled again")
    user.point(0, 30)
    user.wait("document.querySelector('.td-noted').textContent.startsWith('B token 30: <script>')")
    assert user.page.locator(".td-noted script, .td-noted img").count() == 0
