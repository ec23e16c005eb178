"""A report opens offline in a real browser and draws its run, which comes while the empty charts are painted."""

from pathlib import Path
from typing import Any

import pytest

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
