"""The page as a user drives it and sees it."""

from typing import Any

from tokendyno.backend.arms.presets import arm_presets, prompts
from tokendyno.backend.optimizations import all_axes
from tokendyno.ui.compare.page import UNSUPPORTED
from tokendyno.ui.compare.request import CUSTOM

LIVE = "document.querySelector('#live .td-live')"

DRAWN = """(live => live?.dataset.run !== undefined && (!live.dataset.run || !live.offsetParent
  || live.querySelector('.main-svg') || live.querySelector('.td-failure').textContent)
)(document.querySelector('#live .td-live'))"""
"""The panel of Compare says what to do; where it shows a run, its charts are drawn."""

STILL = """async () => {
  const frame = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const places = () => [...document.querySelectorAll('body *')].map(one => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return [x, y, width, height].join();
  }).join(';');
  let before = '';
  for (let alike = 0; alike < 3;) {
    await frame();
    const now = places();
    alike = now === before ? alike + 1 : 0;
    before = now;
  }
}"""
"""Resolves when nothing has moved for three frames: observers of a width draw in the frame after it changed."""


def titles(control: str) -> dict[str, str]:
    """Title of each option, by name, of the dropdown of presets, prompts or an axis."""
    if control == "prompt-preset":
        return {prompt.name: prompt.title for prompt in prompts()}
    if control.startswith("preset-"):
        return {preset.name: preset.title for preset in arm_presets()} | {CUSTOM: CUSTOM}
    _, _, name = control.split("-", 2)
    return {choice.name: choice.title for axis in all_axes() if axis.name == name for choice in axis.choices}


ROOM = "gradio_config.components.find(({ props }) => props.elem_id === 'pages').props.selected"
"""The room in which the page opens."""


class Driver:
    """One open page."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address

    def open(self, query: str = "") -> "Driver":
        """Load the page and wait until it can be used."""
        self.page.goto(f"{self.address}/{query}")
        room = self.page.evaluate(ROOM).capitalize()
        if room != "Compare":  # a room is built when it is entered
            self.wait(f"document.querySelector('#pages [aria-selected=true]')?.textContent.trim() === {room!r}")
            return self
        self.wait(DRAWN)
        said = "document.querySelector('#message .td-line-text').textContent"
        self.wait(f"document.querySelector('#verdicts-b .td-memory') || {said}")
        return self

    # --- doing ------------------------------------------------------------------------------------

    def choose(self, control: str, name: str, sign: str = "") -> None:
        """Choose an option of a dropdown by the name behind its title. `sign`: what stands behind the title."""
        if control.startswith(("preset-", "axis-")):
            self.show_axes(control.split("-")[1])
        self.page.locator(f"#{control} input").click()
        option = titles(control)[name] + sign
        self.page.locator(f"#{control}").get_by_role("option", name=option, exact=True).click()

    def show_axes(self, arm: str) -> None:
        """Show the preset and all axes of arm "a" or "b"."""
        button = self.page.locator(f"#verdicts-{arm} .td-form")
        if button.get_attribute("aria-expanded") == "false":
            button.click()

    def take(self, arm: str, search: str, title: str) -> None:
        """Add what the palette calls `title` to an arm."""
        self.page.locator(f"#verdicts-{arm} .td-add").first.click()
        self.page.locator(".td-palette input").fill(search)
        self.page.locator(".td-entry", has=self.page.get_by_text(title, exact=True)).first.click()

    def chips(self, arm: str) -> list[str]:
        """What an arm shows as differing from the defaults."""
        shown = self.page.locator(f"#verdicts-{arm} .td-chip").all_inner_texts()
        return [" ".join(text.replace("\u00d7", "").split()) for text in shown]

    def type(self, control: str, text: str) -> None:
        """Fill a field and leave it."""
        box = self.page.locator(f"#{control}").locator("input, textarea").first
        box.fill(text)
        box.press("Tab")

    def two_pairs(self) -> None:
        """Let a run end after its second pair, the fewest that there can be."""
        self.page.click("#more-button")
        self.type("seconds", "0.1")
        self.page.click("#more-button")

    def run(self) -> str:
        """Press Run; returns the id of the new run once it is shown."""
        before = self.shown()
        self.page.click("#run")
        self.wait(
            f"{LIVE}.querySelector('.td-permalink').textContent !== {('?run=' + before)!r} && {LIVE}.dataset.status"
        )
        return self.shown()

    def wait(self, condition: str, seconds: float = 120) -> None:
        """Until a condition holds; what it asks of something that is not drawn yet does not hold."""
        there = f"""() => {{ try {{ return Boolean({condition}); }} catch (error) {{
          if (error instanceof TypeError) return false; throw error; }} }}"""
        self.page.wait_for_function(there, timeout=1000 * seconds, polling=50)

    def still(self) -> None:
        """Wait until nothing moves any more."""
        self.page.evaluate(STILL)

    def wait_status(self, status: str, seconds: float = 120) -> None:
        self.wait(f"{LIVE}.dataset.status === {status!r}", seconds)

    def wait_tokens(self, arm: int, count: int, seconds: float = 120) -> None:
        self.wait(f"({LIVE}.live.series[{arm}]?.t.length ?? 0) >= {count}", seconds)

    def wait_over(self, run_id: str, seconds: float = 120) -> None:
        self.wait(f"{LIVE}.dataset.over === {run_id!r} && {DRAWN}", seconds)

    def point(self, chart: int, x: float) -> None:
        """Move the pointer to x on the horizontal axis of a chart."""
        self.page.locator(".td-plot").scroll_into_view_if_needed()
        place = self.page.evaluate(
            """([i, x]) => {
              const plot = document.querySelector('.td-plot'), at = plot.getBoundingClientRect();
              const name = 'axis' + (i ? i + 1 : '');
              const across = plot._fullLayout['x' + name], up = plot._fullLayout['y' + name];
              return [at.left + across._offset + across.l2p(x), at.top + up._offset + up._length / 2];
            }""",
            [chart, x],
        )
        self.page.mouse.move(*place)

    # --- seeing -----------------------------------------------------------------------------------

    def wait_chosen(self, control: str, name: str) -> None:
        """Wait until a dropdown shows the option of that name."""
        self.wait(f"document.querySelector('#{control} input').value === {titles(control)[name]!r}")

    def shown(self) -> str:
        """Id of the run that is shown."""
        return str(self.page.evaluate(f"{LIVE}.querySelector('.td-permalink').textContent")).removeprefix("?run=")

    def text(self, selector: str) -> str:
        return str(self.page.locator(selector).first.inner_text())

    def words(self, selector: str) -> str:
        """The text of an element in one line."""
        return " ".join(self.text(selector).split())

    def message(self) -> str:
        """The message line of the page."""
        return str(self.page.locator("#message .td-line-text").text_content())

    def value(self, control: str) -> str:
        return str(self.page.locator(f"#{control}").locator("input, textarea").first.input_value())

    def drawn(self) -> list[dict[str, Any]]:
        """The lines of the figure: their meta data and points."""
        found: list[dict[str, Any]] = self.page.evaluate(
            """() => document.querySelector('.td-plot').data.filter(t => t.meta && t.meta.arm)
                 .map(t => ({...t.meta, x: [...t.x], y: [...t.y], visible: t.visible !== false}))"""
        )
        return found

    def line(self, chart: str, arm: str, kind: str = "") -> dict[str, Any]:
        """One measured line."""
        wanted = {"chart": chart, "arm": arm, "kind": kind, "curve": ""}
        (one,) = [line for line in self.drawn() if wanted.items() <= line.items()]
        return one

    def chosen(self, control: str) -> str:
        """Name of the option that a dropdown shows."""
        shown = self.value(control).removesuffix(UNSUPPORTED)
        return next(name for name, title in titles(control).items() if title == shown)

    def layout(self, path: str) -> Any:
        """A value of the drawn layout."""
        return self.page.evaluate(f"document.querySelector('.td-plot')._fullLayout.{path}")
