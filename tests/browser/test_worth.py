"""What each choice is worth and sweeps, on a page without a tab: by their links, begun, stopped and gone on with."""

import itertools
from collections.abc import Callable

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]


def to_worth(user: Driver) -> None:
    """Advise leads there."""
    user.page.get_by_role("tab", name="Advise").click()
    user.page.click("#to-worth")


@pytest.mark.slow
def test_an_ablation_comes_back_by_its_link_with_its_arms(open_page: Open) -> None:
    user = open_page("?worth=stored-worth", 1440, 900)
    user.page.wait_for_selector(".td-worth-group")
    arms = "A: Dtype bfloat16. B: KV cache static + Dtype float32."
    user.wait(f"document.querySelector('#worth-arms').textContent.includes({arms!r})")
    assert user.page.title() == "Worth - tokendyno" and user.page.get_by_role("tab", name="Worth").count() == 0
    assert user.text("#worth .td-worth-headline").startswith("Together: 1.9")
    assert user.text("#worth .td-worth-sentence").startswith("Stopped after 13 of 15 runs")
    assert (
        user.page.locator("#worth .td-worth-again").is_visible()
        and not user.page.locator("#worth .td-worth-stop").is_visible()
    )
    rows = user.page.locator(".td-worth-group").first.locator("tbody tr")
    assert rows.all_inner_texts()[1].split()[:2] == ["Dtype:", "float32"]
    boxes = [rows.nth(i).locator(".td-worth-bar").first.bounding_box() for i in range(3)]
    for before, after in itertools.pairwise(boxes):
        start = before["x"] if before is not boxes[0] else before["x"] + before["width"]
        assert after["x"] + after["width"] == pytest.approx(start, abs=3), "each begins where the one before ends"
    user.page.set_viewport_size({"width": 390, "height": 844})
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    user.page.get_by_role("button", name="More tabs").click()
    assert "Worth" not in user.page.locator(".overflow-dropdown").inner_text()
    user.page.get_by_role("button", name="More tabs").click()
    user.page.get_by_role("button", name="Change the arms on Compare").click()
    user.page.wait_for_selector("#run", state="visible")
    user.wait("!location.search.includes('worth')")
    assert user.chips("a") == ["Dtype bfloat16"] and user.chips("b") == ["Dtype float32", "KV cache static"]
    to_worth(user)
    user.page.wait_for_selector("#worth .td-worth-group", state="visible")
    user.wait("location.search === '?view=worth&worth=stored-worth'")
    user.page.go_back()
    user.page.wait_for_selector("#advise", state="visible")


@pytest.mark.slow
def test_a_sweep_comes_back_by_its_link_with_lines_heat_maps_and_what_no_other_beats(open_page: Open) -> None:
    user = open_page("?sweep=stored-sweep", 1440, 900)
    user.page.wait_for_selector("#sweep .td-pareto .main-svg")
    panel = user.page.locator("#sweep")
    assert panel.locator(".td-worth-sentence").inner_text().startswith("Stopped after 16 of 19 runs")
    values = panel.locator(".td-sweep-values")
    assert [values.nth(i).input_value() for i in (0, 1)] == ["1, 4, 16", "bfloat16, float32"]
    assert panel.locator("figcaption").all_inner_texts()[0] == "Time per token"
    drawn = "[...document.querySelectorAll('#sweep .td-plotted')].map(one => one.data && one.data[0].type || 'scatter')"
    user.wait(f"{drawn}.filter(type => type === 'heatmap').length === 2")
    assert panel.locator(".td-pareto li").count() == 5 and panel.locator(".td-sweep-table tbody tr").count() == 6
    widths = user.page.evaluate(
        "[...document.querySelectorAll('#sweep .td-plotted')].map(one => [one.clientWidth, "
        "one.querySelector('.main-svg').clientWidth])"
    )
    assert all(inner <= outer for outer, inner in widths), "no plot lies over the one beside it"
    user.page.set_viewport_size({"width": 390, "height": 844})
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    panel.locator(".td-sweep-values").first.fill("1, two")
    user.page.locator("#sweep .td-worth-begin").click()
    user.wait("document.querySelector('#sweep .td-worth-refused').textContent.includes('two')")
    user.page.locator("#worth .td-worth-begin").click()
    user.wait("document.querySelector('#worth .td-worth-refused').textContent.includes('differ')")
    assert not user.text("#sweep .td-worth-refused").strip(), "what was refused before is over"
    user.page.goto(f"{user.address}/?worth=stored-sweep")  # as a list of runs leads to it
    user.wait("document.querySelector('#sweep .td-worth-headline')?.textContent.startsWith('Least time per token')")


@pytest.mark.full
def test_two_choices_are_measured_stopped_and_gone_on_with(open_page: Open) -> None:
    user = open_page()
    said = "document.querySelector('#worth .td-worth-sentence').textContent"
    to_worth(user)
    user.page.click("#worth .td-worth-begin")
    user.wait("document.querySelector('#worth .td-worth-refused').textContent.includes('differ in one choice')")
    user.page.locator(".td-sweep-values").first.fill("1, 2")
    user.page.click("#sweep .td-worth-begin")
    user.wait("document.querySelector('#sweep .td-worth-sentence').textContent.startsWith('Measuring')", 60)
    assert not user.text("#worth .td-worth-refused").strip(), "what was refused before is over"
    user.page.click("#sweep .td-worth-stop")
    user.wait("document.querySelector('#sweep .td-worth-sentence').textContent.startsWith('Stopped')", 60)
    user.page.get_by_role("tab", name="Compare").click()
    user.take("b", "static", "static")
    user.take("b", "own loop", "custom")
    user.type("max-new-tokens", "2")
    user.page.evaluate("window.addEventListener('tokendyno-measured', () => { window.measured = true; })")
    to_worth(user)
    user.page.click("#worth .td-worth-begin")
    user.wait(f"/^Measuring: [1-9]/.test({said})", 120)
    user.wait("window.measured")
    user.page.click("#worth .td-worth-stop")
    user.wait(f"{said}.startsWith('Stopped after')", 60)
    user.page.click("#worth .td-worth-again")
    user.wait(f"{said}.startsWith('Measuring')")
    user.page.click("#worth .td-worth-stop")
    user.wait(f"{said}.startsWith('Stopped after')", 60)
