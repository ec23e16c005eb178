"""A report opens offline in a real browser and draws its run, which comes while the empty charts are painted."""

from pathlib import Path
from typing import Any

import pytest

from tests.backend.views.test_start import arm_of, run_of
from tests.browser.stored_runs import RUNS
from tokendyno.backend.runs.run import Run
from tokendyno.ui.report.page import report


@pytest.mark.slow
def test_a_report_draws_its_run_without_an_error(browser: Any, tmp_path: Path) -> None:
    run = Run(RUNS["two"][0])  # type: ignore[arg-type]
    for record in RUNS["two"][1:]:
        run.append(record)
    (tmp_path / "two.html").write_text(report(run, {"A": "# a", "B": "# b"}))
    context = browser.new_context()
    page, errors = context.new_page(), list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"file://{tmp_path / 'two.html'}")
    drawn = "document.querySelector('.td-plot').data?.filter(one => one.meta?.arm && one.x.length > 30).length"
    page.wait_for_function(f"() => {drawn} >= 4", timeout=60_000)
    page.wait_for_function("() => document.querySelectorAll('.td-fresh canvas').length === 3", timeout=60_000)
    assert errors == []
    assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith("system-ui")
    context.close()


@pytest.mark.full
def test_parts_of_starts_stand_in_the_order_in_which_they_happen_and_lines_cross_where_waiting_pays(
    browser: Any, tmp_path: Path
) -> None:
    run = run_of(arm_of("A", {"start": 0.5, "import": 3.0, "load": 2.0, "warmup": 1.0}, 0.02, None), arm_of("B"))
    (tmp_path / "start.html").write_text(report(run, {}))
    page, errors = browser.new_page(), list[str]()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"file://{tmp_path / 'start.html'}")
    page.wait_for_selector(".td-crossing .main-svg", timeout=60_000)
    rows = page.locator(".td-start tbody tr[data-key]").evaluate_all("rows => rows.map(row => row.dataset.key)")
    assert rows == (
        ["start", "import", "read", "move", "quantize", "dynamo", "inductor", "codegen", "capture", "warmup", "prefill"]
    )
    a, b, met = page.evaluate("document.querySelector('.td-crossing-plot').data.map(({x, y}) => [x, y])")
    assert a[1][0] < b[1][0] and a[1][1] > b[1][1] and met[0] == [pytest.approx(1000)]
    assert "1,000 tokens" in page.locator(".td-crossing-plot .annotation-text").text_content() and errors == []
    page.close()
