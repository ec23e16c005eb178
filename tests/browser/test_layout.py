"""What stands on one line, beside what, and what wraps, from a phone to a large screen and at 200% zoom."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]
PHONE, ZOOMED, LAPTOP, LARGE = (390, 844), (720, 450), (1440, 900), (2560, 1440)
"""The second is a laptop at 200% zoom."""


def resize(user: Driver, size: tuple[int, int]) -> None:
    user.page.set_viewport_size({"width": size[0], "height": size[1]})
    user.still()


def boxes(user: Driver, selector: str) -> list[Any]:
    """Where everything stands that the selector finds and that is seen."""
    found = [one.bounding_box() for one in user.page.locator(selector).all() if one.is_visible()]
    assert found, selector
    return found


def tops(user: Driver, selector: str) -> list[float]:
    """Tops of the lines that these stand on."""
    return sorted({round(box["y"]) for box in boxes(user, selector)})


def test_arms_and_buttons_take_few_lines(open_page: Open) -> None:
    user = open_page(width=LAPTOP[0], height=LAPTOP[1])
    assert len(user.chips("b")) == 2
    assert len(tops(user, "#verdicts-b :is(.td-chip, .td-add)")) == 1, "two choices, and what may be added"
    assert user.page.get_by_role("button", name="Add an optimization").count() == 2, "a short button, its whole name"
    for size in (LAPTOP, ZOOMED, PHONE):
        resize(user, size)
        for arm in "ab":
            title, form = (boxes(user, f"#verdicts-{arm} {what}")[0] for what in ("strong", ".td-form"))
            assert title["y"] < form["y"] + form["height"] / 2 < title["y"] + title["height"], (size, arm)
            assert form["x"] > title["x"] + title["width"], (size, arm)
    five = boxes(user, "#work > button")
    assert [round(box["y"]) for box in five[:3]] == [round(five[0]["y"])] * 3
    assert five[3]["y"] == five[4]["y"] > five[0]["y"]
    assert five[2]["x"] + five[2]["width"] == pytest.approx(five[4]["x"] + five[4]["width"], abs=1), "no ragged edge"


def test_more_stands_in_lines_and_cuts_no_word_off(open_page: Open) -> None:
    user = open_page("?run=two", *LAPTOP)
    user.page.click("#more-button")
    for size in (LAPTOP, ZOOMED, PHONE):
        resize(user, size)
        for box in ("ignore-eos", "chat"):
            cut = "one => one.scrollWidth > one.clientWidth || one.offsetHeight > 36"
            assert not user.page.locator(f"#{box}").evaluate(cut), (size, box)
        ends = [box["y"] + box["height"] for box in boxes(user, "#more input[type=number]")]
        lines = {round(end / 8) for end in ends}
        assert len(lines) == (3 if size == PHONE else 2), (size, ends)
        title, form = (boxes(user, f"#verdicts-b {what}")[0] for what in ("strong", ".td-form"))
        assert form["y"] < title["y"] + 24, "a long name wraps; the axes stay beside its first line"


def test_tools_are_of_one_height_and_proof_stands_below_its_row_on_a_phone(open_page: Open) -> None:
    user = open_page("?run=two", *LAPTOP)
    user.wait_over("two")
    heights = {round(box["height"]) for box in boxes(user, "#live .td-tools button")}
    assert heights == {24}, "the switch of the axis is a button among buttons"
    assert user.page.evaluate(
        "getComputedStyle([...document.querySelectorAll('#live .annotation-text')]"
        ".find(one => one.textContent.startsWith('roofline'))).paintOrder"
    ).startswith("stroke"), "a label that lies over a line can be read"
    resize(user, PHONE)
    status, proof = (boxes(user, f"#live .td-ledger {what}")[0] for what in (".td-status", ".td-proof"))
    assert proof["y"] >= status["y"] + status["height"] and proof["x"] + proof["width"] <= PHONE[0] < 2 * proof["width"]


@pytest.mark.slow
def test_a_sweep_uses_the_width_and_its_table_one_line_each(open_page: Open) -> None:
    user = open_page("?sweep=stored-sweep", *LAPTOP)
    user.page.wait_for_selector("#sweep .td-pareto .main-svg")
    user.still()
    ((plot,), (words,)) = (boxes(user, f"#sweep .td-pareto {what}") for what in (".td-plotted", "ol"))
    assert words["x"] >= plot["x"] + plot["width"] and words["y"] < plot["y"] + plot["height"]
    assert plot["width"] > LAPTOP[0] / 2
    for size in (LAPTOP, PHONE):
        resize(user, size)
        assert max(box["height"] for box in boxes(user, "#sweep tbody td:not(:last-child)")) < 60, size
        one_line = user.page.locator("#sweep tbody tr:first-child td:nth-child(4)")
        assert (
            one_line.evaluate(
                "cell => { const range = document.createRange(); range.selectNodeContents(cell);"
                " return range.getClientRects().length; }"
            )
            == 1
        ), size


@pytest.mark.slow
def test_wide_pages_hold_together(open_page: Open) -> None:
    user = open_page("?view=stories", *LARGE)
    user.page.wait_for_selector("#story .td-story-side")
    user.still()
    words, side = (boxes(user, what)[0] for what in (".td-story-words p", ".td-story-side"))
    assert 0 < side["x"] - words["x"] - words["width"] < 300, "the claim stands beside its story"
    user.page.set_viewport_size({"width": LAPTOP[0], "height": LAPTOP[1]})
    user.page.get_by_role("tab", name="History").click()
    user.page.wait_for_selector(".td-runs tr[data-run=two]")
    pins = user.page.locator(".td-runs tr[data-run=two] .td-pin").all()
    assert [round(pin.bounding_box()["height"]) for pin in pins] == [24, 24], "an arm with one choice takes one line"


@pytest.mark.slow
def test_at_200_percent_fields_stand_on_one_line(open_page: Open) -> None:
    user = open_page("?view=fit", *ZOOMED)
    user.page.wait_for_function("() => document.querySelector('#fit-best .td-line-text')?.textContent")
    user.still()
    ends = [box["y"] + box["height"] for box in boxes(user, "#fit-work input")]
    assert max(ends) - min(ends) < 8
    assert not user.page.locator("#brand p").is_visible(), "the machine's line has its room"


def test_a_tile_has_room_for_both_arms_in_units_of_their_own(open_page: Open) -> None:
    user = open_page("?run=two", *PHONE)
    user.wait_over("two")
    cut = user.page.evaluate("""() => [...document.querySelectorAll('.td-tile .td-figure')].map(line => {
      line.querySelector('.td-unit').textContent = '';
      line.querySelectorAll('b').forEach((value, i) => {
        [value.firstChild.textContent, value.lastChild.textContent] = i ? ['1.44', ' GiB'] : ['1,020', ' MiB'];
      });
      return line.scrollWidth - line.clientWidth;
    })""")
    assert len(cut) >= 5 and max(cut) <= 0, cut
