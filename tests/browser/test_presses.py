"""What is redrawn under the hands of a visitor takes away no press, no focus and nothing that was typed."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.browser.driver import LIVE, Driver

Open = Callable[..., Driver]
pytestmark = pytest.mark.full


def hold(page: Any, selector: str) -> None:
    """Press the mouse button over the middle of an element."""
    box = page.locator(selector).first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()


def runs_in(history: Path) -> set[str]:
    """Ids of the runs that an app keeps."""
    with closing(sqlite3.connect(history)) as file:
        return {run_id for (run_id,) in file.execute("SELECT id FROM runs")}


def test_a_chip_that_is_redrawn_while_it_is_pressed_goes_away_all_the_same(open_page: Open) -> None:
    user = open_page("?run=two")
    user.wait_over("two")
    user.wait("document.querySelector('#stale .td-line-text').textContent === ''")
    assert len(user.chips("b")) == 1
    hold(user.page, "#verdicts-b .td-remove")
    user.page.evaluate("""() => {
      const box = document.querySelector('#batch-size input');
      box.value = 7;
      box.dispatchEvent(new Event('input', { bubbles: true }));
    }""")
    user.wait("document.querySelector('#stale .td-line-text').textContent.includes('the workload')")
    user.page.mouse.up()
    user.wait("!document.querySelector('#verdicts-b .td-chip')")


def test_run_that_is_pressed_twice_in_quick_succession_runs_once(open_page: Open, history: Path) -> None:
    user = open_page()
    user.type("max-new-tokens", "4")
    user.two_pairs()
    before = runs_in(history)
    user.page.dblclick("#run")
    user.wait(f"{LIVE}.dataset.status === 'done'")
    user.wait("!document.querySelector('#run').disabled")
    user.page.wait_for_timeout(300)  # were there a second run, it would have begun
    assert {user.shown()} == runs_in(history) - before
