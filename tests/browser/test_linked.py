"""The instruments of the page: charts that point, zoom and count together, distributions, the parts of a step."""

from collections.abc import Callable

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]
pytestmark = pytest.mark.slow
PLOT = "document.querySelector('.td-plot')"


def test_charts_point_zoom_and_count_together_and_hide_no_data(open_page: Open) -> None:
    user = open_page("?run=two", 1440, 900)
    user.wait_over("two")
    user.point(1, 24)
    user.wait("document.querySelectorAll('.td-readout').length === 3")
    said = user.page.locator(".td-readout").all_inner_texts()
    assert "10 ms" in said[0] and "513 MiB" in said[1] and "34 tokens cached" in said[2]
    assert said[0].startswith("Token latency") and said[2].startswith("KV cache"), "values cover the titles"
    assert user.page.locator(".td-place").all_inner_texts() == ["token 24"] * 3
    left = f"[0, 1, 2].map(i => {PLOT}._fullLayout['xaxis' + (i ? i + 1 : '')]).map(x => x._offset + x.l2p(24))"
    drawn = "[...document.querySelectorAll('.td-moment')].map(line => parseFloat(line.style.left))"
    assert [round(x) for x in user.page.evaluate(drawn)] == [round(x) for x in user.page.evaluate(left)]
    assert user.page.locator(".td-plot .hoverlayer .hovertext, .td-plot .modebar-btn").count() == 0
    user.page.mouse.move(5, 5)
    user.wait("document.querySelectorAll('.td-readout, .td-moment').length === 0")

    area = user.page.locator(".td-plot .nsewdrag").nth(2)
    box = area.bounding_box()
    assert box is not None
    user.page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"])
    user.page.mouse.down()
    user.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"], steps=5)
    user.page.mouse.up()
    ranges = f"[0, 1, 2].map(i => {PLOT}._fullLayout['xaxis' + (i ? i + 1 : '')].range.map(x => Math.round(1000 * x)))"
    user.wait("!document.querySelector('.td-whole').hidden")
    tokens = user.page.evaluate(ranges)
    assert tokens[0] == tokens[1] == tokens[2] and 10_000 < tokens[0][0] < 20_000 < tokens[0][1] < 40_000
    user.page.click("[data-axis=second]")
    user.wait(f"{PLOT}._fullLayout.xaxis.title.text === 'seconds'")
    seconds = user.page.evaluate(ranges)
    assert seconds[0] == seconds[1] == seconds[2] == [round(100 + tokens[0][i] / 100) for i in (0, 1)], (
        "0.1 s + 0.01 s each"
    )
    user.page.click(".td-distribution")
    dialog = user.page.locator(".td-spread")
    first, last = -(-tokens[0][0] // 1000), tokens[0][1] // 1000
    assert f"tokens {first} to {last}, as zoomed" in dialog.inner_text()
    assert dialog.locator("tr.arm-a td").first.inner_text() == str(last - first + 1)
    user.page.keyboard.press("Escape")
    user.page.click(".td-whole")
    user.wait("document.querySelector('.td-whole').hidden")
    assert user.page.evaluate(ranges)[0][0] < 50 and user.layout("xaxis3.autorange") is True
    user.page.click(".td-distribution")
    assert "Half of the tokens of arm A took 10 to 10 ms." in dialog.inner_text()
    row = dialog.locator("tr").all_inner_texts()[1]
    assert " ".join(row.split()) == "Arm A 63 10 10 10 10 needs 64 tokens needs 662 tokens 10"
    assert dialog.locator(".td-spread-plot[aria-hidden=true] .main-svg").count() > 0
    layout, names = "document.querySelector('.td-spread-plot')._fullLayout", ("xaxis", "yaxis", "xaxis2", "yaxis2")
    colours = {user.page.evaluate(f"{layout}.{name}.gridcolor") for name in names}
    assert len(colours) == 1, "both charts have the grid of the theme"


def test_the_parts_of_a_step_are_a_bar_and_a_table_and_an_arm_without_a_trace_says_why(open_page: Open) -> None:
    user = open_page("?run=traced", 1440, 900)
    user.wait_over("traced")
    box = user.page.locator(".td-parts").first
    pieces = box.locator(".td-part-piece")
    assert box.locator(".td-part-bar").count() == 1 and pieces.count() == 4
    widths = [pieces.nth(i).bounding_box()["width"] for i in range(4)]
    assert [round(12 * width / sum(widths)) for width in widths] == [3, 4, 2, 3]
    rows = {row.get_attribute("data-key"): row.inner_text() for row in box.locator("tbody tr").all()}
    assert "2.50 ms 25%" in rows["attention"] and "must read 32.0 KiB of KV cache, 0.00328 ms" in rows["attention"]
    assert "3.33 ms 33%" in rows["products"] and "10.0 ms" in rows[None]
    said = box.locator("p").all_inner_texts()
    assert (
        "he measured 10.0 ms per token, split as 3 traced steps of 12.0 ms each" in said[0]
        and "Not traced: the run has a single token." in said[1]
    )
    box.scroll_into_view_if_needed()
    user.open("?run=broken").wait_over("broken")
    assert user.page.locator(".td-parts:visible").count() == 0, "no empty instrument"


@pytest.mark.full
def test_a_run_is_copied_in_three_forms_and_names_its_tab(open_page: Open) -> None:
    user = open_page("?run=two", permissions=["clipboard-read", "clipboard-write"])
    user.wait_over("two")
    user.wait("document.title.startsWith('Pocket: ')")
    held = "navigator.clipboard.read().then(([one]) => one.getType(one.types[0])).then(one => one.type + one.size)"
    for form, kind in (("Markdown", "text/plain"), ("Picture", "image/png"), ("Command", "text/plain")):
        user.page.get_by_role("button", name=form, exact=True).click()
        user.wait(f"document.querySelector('.td-copied-as').textContent === '{form} copied'")
        assert user.page.evaluate(held).startswith(kind)
    assert user.page.evaluate("navigator.clipboard.readText()").startswith("tokendyno ")
    user.page.get_by_role("tab", name="Fit").click()
    user.wait("document.title === 'Fit - tokendyno'")
