"""Which options an arm shows, and its script under Code."""

import ast
import re
from collections.abc import Callable

import pytest

from tests.browser.driver import Driver
from tests.browser.stored_runs import HOSTILE
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.compare.page import UNSUPPORTED

Open = Callable[..., Driver]
pytestmark = pytest.mark.slow
DEFAULTS = "?run=broken"
"""Arm A as it is when nothing was chosen, arm B without windows."""


def visible(user: Driver, arm: str = "a") -> set[str]:
    """Axes of an arm whose control can be seen."""
    return {axis.name for axis in prompt_axes() if user.page.locator(f"#axis-{arm}-{axis.name}").is_visible()}


def code(user: Driver, arm: str = "a") -> str:
    """The script that an arm shows; the document holds only lines near the viewport, so the editor is asked."""
    return str(
        user.page.evaluate(f"document.querySelector('#code-{arm} .cm-content').cmTile.view.state.doc.toString()")
    )


def shows(user: Driver, words: str, arm: str = "a") -> None:
    """Wait until an arm's script holds these words; comments may be wrapped."""
    view = f"document.querySelector('#code-{arm} .cm-content')?.cmTile?.view"
    user.wait(f"{view} && {view}.state.doc.toString().replaceAll('\\n# ', ' ').includes({words!r})")


def test_an_arm_is_what_differs_and_the_palette_adds_to_it_by_keyboard(open_page: Open) -> None:
    user = open_page(DEFAULTS)
    assert (user.chips("a"), user.chips("b")) == ([], ["KV cache full (no sliding window)"])
    user.page.locator("#verdicts-a .td-add").focus()
    user.page.keyboard.press("Enter")
    user.page.keyboard.type("spec")
    user.page.keyboard.press("Enter")
    user.page.locator("#verdicts-a .td-chip").wait_for()
    assert user.chips("a") == ["Speculation prompt lookup"]
    assert user.page.evaluate("document.activeElement.className") == "td-add", "the focus is where it was"
    user.page.locator("#verdicts-b [data-press=copy]").click()  # A and one more
    user.page.keyboard.press("Escape")
    user.take("b", "own loop", "custom")
    user.page.locator("#verdicts-b .td-chip.blocked").first.wait_for()
    assert user.chips("b") == ["KV cache static", "Decode loop custom", "Speculation prompt lookup"]
    assert user.chosen("axis-b-speculation") == "prompt-lookup"
    user.page.locator("#verdicts-b").get_by_role("button", name="Remove Speculation prompt lookup").click()
    user.page.locator("#verdicts-b .td-chip.blocked").first.wait_for(state="detached")
    assert user.chips("b") == ["KV cache static", "Decode loop custom"]
    arms = "a=speculation=prompt-lookup&b=cache=static,loop=own"
    user.wait(f"location.search === '?view=compare&model=pocket&{arms}&tokens=64'")
    user.page.reload()
    user.wait("document.querySelectorAll('#verdicts-b .td-chip').length === 2")
    user.wait_over("broken")
    assert user.chips("a") == ["Speculation prompt lookup"] and "You changed arm A and arm B" in user.text("#stale")
    user.page.locator("#verdicts-b .td-add").first.click()
    compiled = user.page.locator(".td-entry", has_text="torch.compile: default").locator(".td-entry-start")
    assert re.fullmatch(r"\+\d+ s to start here", compiled.inner_text().strip()), "what it added in earlier runs"
    user.page.locator(".td-palette input").fill("<img src=x onerror=alert(1)>")
    assert "Nothing matches" in user.text(".td-entries")
    user.page.keyboard.press("Escape")
    user.open("?view=compare&model=gpt2&a=cach=static&b=cache=static")
    user.wait("document.querySelector('#facts').textContent && document.querySelector('#message').textContent")
    user.page.wait_for_timeout(500)  # in which what the address has filled is checked
    assert user.message().startswith("Unknown axis 'cach'. Did you mean 'cache'?")
    assert user.chips("b") == ["KV cache static"]


@pytest.mark.full
def test_code_follows_the_controls_and_can_be_copied(open_page: Open) -> None:
    user = open_page(DEFAULTS, permissions=["clipboard-read", "clipboard-write"])
    assert user.page.locator("#code-a .cm-content").count() == 0  # nothing is loaded for it before it is opened
    user.page.locator("#code").get_by_role("button", name="Code").click()
    shows(user, "This arm is transformers' own calls")
    shows(user, "DynamicCache()", "b")
    assert all(ast.parse(code(user, arm)).body for arm in "ab")
    user.choose("axis-a-cache", "static")
    shows(user, "StaticCache(")
    user.type("prompt", " ".join(HOSTILE))
    shows(user, "srcdoc", "b")
    literals = [one.value for one in ast.walk(ast.parse(code(user, "b"))) if isinstance(one, ast.Constant)]
    assert " ".join(HOSTILE) in literals
    assert user.page.locator("#code").locator("script, iframe, img, a[href^=javascript]").count() == 0
    user.page.locator("#code-a button[aria-label*=copy i], #code-a button[title*=copy i]").first.click()
    assert user.page.evaluate("navigator.clipboard.readText()") == code(user)
    with user.page.expect_download() as saved:
        user.page.locator("#code-a a[download]").click()
    assert saved.value.suggested_filename == "pocket-A-cache-static.py"
    assert len(code(user).split("\n")) < 20
    user.page.locator("#code-all").get_by_role("button", name="All of it").click()
    shows(user, "Pocket, 5M: cache=static.", "all-a")


def test_all_axes_are_shown_by_keyboard_and_say_what_cannot_run_and_what_gave_way(open_page: Open) -> None:
    user = open_page(DEFAULTS)
    every = user.page.locator("#verdicts-a .td-form")
    assert visible(user) == set() and every.get_attribute("aria-expanded") == "false"
    every.focus()
    user.page.keyboard.press("Enter")
    assert visible(user) == {axis.name for axis in prompt_axes()} and every.get_attribute("aria-expanded") == "true"
    assert visible(user, "b") == set()

    user.choose("preset-b", "quantized-cache", UNSUPPORTED)
    line = user.page.locator("#verdicts-b .td-verdict.blocked").first
    line.wait_for()
    assert "sliding" in line.inner_text()
    user.choose("preset-a", "lowest-latency")
    given_up = "Of the preset lowest-latency, cuda_graphs=manual"
    user.page.locator("#verdicts-a .td-verdict.note", has_text=given_up).wait_for()
    assert (user.chosen("axis-a-loop"), user.chosen("axis-a-cuda_graphs")) == ("own", "auto")

    user.type("model", "no-such-model")  # a handler that fails on the server fails this test
    user.wait("document.querySelector('#message .td-line-text').textContent.includes('There is no model')")
    user.page.locator("#verdicts-b .td-add").first.click()  # nothing is offered by another model's rules
    user.page.locator(".td-palette .td-empty", has_text="Choose a model first.").wait_for()
    user.page.keyboard.press("Escape")
    user.type("model", "pocket")
    user.wait("document.querySelector('#message .td-line-text').textContent === ''")
    assert user.chosen("axis-a-loop") == "own"
