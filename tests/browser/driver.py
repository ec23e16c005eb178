"""The page as a user drives it and sees it."""

import os
from pathlib import Path
from typing import Any

LIVE = "document.querySelector('.td-live')"


class Driver:
    """One open page."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address

    def open(self, query: str = "") -> "Driver":
        """Load the page and wait until it can be used."""
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_selector("#live .main-svg")
        said = "document.querySelector('#message .td-words').textContent"
        self.wait(f"document.querySelector('#verdicts-b .td-memory') || {said}")
        return self

    # --- doing ------------------------------------------------------------------------------------

    def choose(self, control: str, label: str) -> None:
        """Pick an option of a dropdown."""
        self.page.locator(f"#{control} input").click()
        self.page.locator(f"#{control}").get_by_role("option", name=label, exact=True).click()

    def type(self, control: str, text: str) -> None:
        """Write into a field and leave it."""
        box = self.page.locator(f"#{control}").locator("input, textarea").first
        box.fill(text)
        box.press("Tab")

    def run(self) -> str:
        """Press Run; returns the id of the new run once it is shown."""
        before = self.shown()
        self.page.click("#run")
        self.wait(f"{LIVE}.querySelector('.td-permalink').textContent !== {('?run=' + before)!r}"
                  f" && {LIVE}.dataset.status")  # fmt: skip
        return self.shown()

    def wait(self, condition: str, seconds: float = 60) -> None:
        there = f"() => Boolean({LIVE} && ({condition}))"
        self.page.wait_for_function(there, timeout=1000 * seconds, polling=50)

    def wait_status(self, status: str, seconds: float = 60) -> None:
        self.wait(f"{LIVE}.dataset.status === {status!r}", seconds)

    def wait_tokens(self, arm: int, count: int, seconds: float = 60) -> None:
        self.wait(f"({LIVE}.bench.lanes[{arm}]?.t.length ?? 0) >= {count}", seconds)

    def wait_over(self, run_id: str, seconds: float = 90) -> None:
        self.wait(f"{LIVE}.dataset.over === {run_id!r}", seconds)

    # --- seeing -----------------------------------------------------------------------------------

    def shown(self) -> str:
        """Id of the run that is shown."""
        return str(self.page.evaluate(f"{LIVE}.querySelector('.td-permalink').textContent")).removeprefix("?run=")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def message(self) -> str:
        """What the page says about the last thing that was asked."""
        return str(self.page.locator("#message .td-words").text_content())

    def value(self, control: str) -> str:
        return str(self.page.locator(f"#{control}").locator("input, textarea").first.input_value())

    def drawn(self) -> list[dict[str, Any]]:
        """The lines of the figure: what they are, and their points."""
        found: list[dict[str, Any]] = self.page.evaluate(
            """() => document.querySelector('.td-plot').data.filter(t => t.meta && t.meta.arm)
                 .map(t => ({...t.meta, x: [...t.x], y: [...t.y], visible: t.visible !== false}))"""
        )
        return found

    def line(self, panel: str, arm: str, kind: str = "") -> dict[str, Any]:
        """One measured line."""
        wanted = {"panel": panel, "arm": arm, "kind": kind, "predicted": False}
        (one,) = [line for line in self.drawn() if wanted.items() <= line.items()]
        return one

    def layout(self, path: str) -> Any:
        """A value of the drawn layout."""
        return self.page.evaluate(f"document.querySelector('.td-plot')._fullLayout.{path}")

    def shot(self, name: str, full: bool = False) -> None:
        """Keep a picture, where TOKENDYNO_SHOTS names a folder."""
        folder = os.environ.get("TOKENDYNO_SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"), full_page=full)
