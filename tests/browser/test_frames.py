"""A page that shows nothing new asks for few frames."""

from collections.abc import Callable

import pytest

from tests.browser.driver import Driver

Open = Callable[..., Driver]

COUNT = """(() => {
  const frame = window.requestAnimationFrame.bind(window);
  window.asked = 0;
  window.requestAnimationFrame = (task) => { window.asked += 1; return frame(task); };
})()"""

ASKED = """async () => {
  const before = window.asked;
  await new Promise(done => setTimeout(done, 3000));
  return (window.asked - before) / 3;
}"""


@pytest.mark.full
def test_an_idle_page_asks_for_few_frames(open_page: Open) -> None:
    """Gradio's first clock would ask for all of them, about sixty a second, as long as the page is open."""
    user = open_page("?view=compare", has_touch=False)
    user.page.add_init_script(COUNT)
    user.page.reload()
    user.page.locator("#run:enabled").wait_for()
    asked = [user.page.evaluate(ASKED)]
    while asked[-1] >= 5 and len(asked) < 10:  # what moves while the page opens
        asked.append(user.page.evaluate(ASKED))
    assert asked[-1] < 5, f"{asked} frames a second"
