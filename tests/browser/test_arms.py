"""Which options an arm shows, which are folded, and its script under Code."""

import ast
from collections.abc import Callable

import pytest

from tests.browser.driver import Driver
from tests.browser.stored_runs import HOSTILE
from tokendyno.backend.optimizations import prompt_axes
from tokendyno.ui.compare.arm_column import UNSUPPORTED

Open = Callable[..., Driver]
DEFAULTS = "?run=broken"
"""Arm A as it is when nothing was chosen, arm B without windows."""
FOLDED = [axis.name for axis in prompt_axes() if not axis.leading]


def visible(user: Driver, arm: str = "a") -> set[str]:
    """Axes of an arm whose control can be seen in its plain form."""
    user.show_form(arm)
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
    user.page.locator("#verdicts-b .td-add").first.click()
    user.page.locator(".td-palette input").fill("<img src=x onerror=alert(1)>")
    assert "Nothing matches" in user.text(".td-entries")
    user.page.keyboard.press("Escape")
    user.shot("chips-1366")


def test_leading_axes_are_shown_and_the_rest_unfolds_with_the_keyboard(open_page: Open) -> None:
    user = open_page(DEFAULTS)
    assert visible(user) == {axis.name for axis in prompt_axes()} - set(FOLDED)
    user.show_form("a")
    more = user.page.locator("#fold-a .td-more")
    assert f"({len(FOLDED)})" in more.inner_text() and more.get_attribute("aria-expanded") == "false"
    more.focus()
    user.page.keyboard.press("Enter")
    assert visible(user) == {axis.name for axis in prompt_axes()} and more.get_attribute("aria-expanded") == "true"
    assert visible(user, "b") == {axis.name for axis in prompt_axes()} - set(FOLDED)
    user.shot("unfolded-1366")
    user.page.locator("#axis-a-dtype input").focus()
    more.click()
    assert visible(user) == {axis.name for axis in prompt_axes()} - set(FOLDED)


@pytest.mark.full
def test_what_was_set_stays_in_sight(open_page: Open) -> None:
    user = open_page()
    user.choose("preset-a", "float32")
    user.page.locator("#axis-a-dtype").wait_for(state="visible")
    assert visible(user) == {axis.name for axis in prompt_axes()} - set(FOLDED) | {"dtype"}
    user.choose("preset-a", "baseline")
    user.page.locator("#axis-a-dtype").wait_for(state="hidden")


@pytest.mark.full
def test_a_model_without_a_cache_folds_what_is_about_it(open_page: Open) -> None:
    user = open_page()
    user.type("model", "random:bert-base-uncased")
    user.page.locator("#axis-a-cache").wait_for(state="hidden")
    assert "attention" in visible(user)


def test_code_follows_the_controls_and_can_be_copied(open_page: Open) -> None:
    user = open_page(DEFAULTS, permissions=["clipboard-read", "clipboard-write"])
    assert user.page.locator("#code-a .cm-content").count() == 0  # nothing is loaded for it before it is opened
    user.page.locator("#code").get_by_role("button", name="Code").click()
    shows(user, "Pocket, 5M: transformers defaults")
    shows(user, "cache=unwindowed", "b")
    assert all(ast.parse(code(user, arm)).body for arm in "ab")
    user.choose("axis-a-cache", "static")
    shows(user, "Pocket, 5M: cache=static.")
    user.type("prompt", "Another prompt")
    shows(user, 'PROMPT = "Another prompt"', "b")
    user.page.locator("#code-a button[aria-label*=copy i], #code-a button[title*=copy i]").first.click()
    assert user.page.evaluate("navigator.clipboard.readText()") == code(user)
    with user.page.expect_download() as saved:
        user.page.locator("#code-a a[download]").click()
    assert saved.value.suggested_filename == "pocket-A-cache-static.py"
    user.shot("code-1366", full=True)
    user.choose("axis-a-cache", "dynamic")
    user.unfold("a")
    user.choose("axis-a-loop", "own")
    shows(user, "Set cache=static.")
    assert ast.parse(code(user)).body == []


@pytest.mark.slow
def test_hostile_words_are_text_in_the_code_too(open_page: Open) -> None:
    user = open_page()
    user.page.locator("#code").get_by_role("button", name="Code").click()
    user.type("prompt", " ".join(HOSTILE))
    shows(user, "srcdoc")
    (line,) = [line for line in code(user).split("\n") if line.startswith("PROMPT = ")]
    assert ast.literal_eval(line.removeprefix("PROMPT = ")) == " ".join(HOSTILE)
    assert user.page.locator("#code").locator("script, iframe, img, a[href^=javascript]").count() == 0


@pytest.mark.full
def test_on_a_phone_the_scripts_are_stacked(open_page: Open) -> None:
    user = open_page("", 390, 844)
    user.page.locator("#code").get_by_role("button", name="Code").click()
    shows(user, "import torch", "b")
    a, b = (user.page.locator(f"#code-{arm}").bounding_box() for arm in "ab")
    assert a["y"] + a["height"] <= b["y"]
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    user.shot("code-390", full=True)


@pytest.mark.slow
def test_what_cannot_run_has_a_sign_and_says_why_when_chosen(open_page: Open) -> None:
    user = open_page()
    user.choose("preset-b", "quantized-cache", UNSUPPORTED)
    line = user.page.locator("#verdicts-b .td-verdict.blocked").first
    line.wait_for()
    assert "sliding" in line.inner_text()
    user.choose("preset-b", "static")  # without the sign
    user.type("model", "gpt-oss-120b")
    user.page.locator("#verdicts-a .td-verdict.blocked").first.wait_for()
    user.choose("preset-b", "baseline", UNSUPPORTED)
    assert user.chosen("preset-b") == "baseline"


@pytest.mark.slow
def test_a_bundle_sets_what_can_run_and_says_what_gave_way(open_page: Open) -> None:
    user = open_page()
    user.choose("preset-a", "lowest-latency")
    note = user.page.locator(
        "#verdicts-a .td-verdict.note", has_text="Of the preset lowest-latency, cuda_graphs=manual"
    )
    note.wait_for()
    assert (user.chosen("axis-a-loop"), user.chosen("axis-a-cuda_graphs")) == ("own", "auto")
    user.choose("preset-a", "baseline")
    note.wait_for(state="detached")
    user.choose("preset-a", "gpt-oss")  # comes to the same choices as the baseline before it
    user.page.locator("#verdicts-a .td-verdict.note", has_text="Of the preset gpt-oss, quantization=mxfp4").wait_for()
    assert user.chosen("preset-a") == "gpt-oss"


@pytest.mark.slow
def test_an_unknown_model_and_the_preset_custom_change_nothing(open_page: Open) -> None:
    user = open_page()  # a handler that fails on the server fails this test
    user.type("model", "no-such-model")
    user.wait("document.querySelector('#message .td-line-text').textContent.includes('Unknown model')")
    before = user.chosen("axis-b-cache")
    user.choose("preset-b", "custom")
    user.wait_chosen("preset-b", "custom")
    user.type("model", "pocket")
    user.wait("document.querySelector('#message .td-line-text').textContent === ''")
    assert user.chosen("axis-b-cache") == before == "unwindowed"


@pytest.mark.full
def test_a_verdicts_source_opens_with_the_keyboard(open_page: Open) -> None:
    user = open_page()
    user.choose("axis-a-cuda_graphs", "manual", UNSUPPORTED)
    source = user.page.locator("#verdicts-a .td-verdict.blocked .td-source")
    source.locator("summary").focus()
    assert not source.locator("a").is_visible()
    user.page.keyboard.press("Enter")
    source.locator("a").wait_for()
    assert source.locator("a").get_attribute("href").startswith("https://docs.pytorch.org/")


@pytest.mark.full
def test_the_button_for_more_options_covers_nothing(open_page: Open) -> None:
    user = open_page()
    user.show_form("a")
    user.show_form("b")
    for width in (390, 420, 700, 1366):
        user.page.set_viewport_size({"width": width, "height": 768})
        for arm in "ab":
            button = user.page.locator(f"#fold-{arm} .td-more").bounding_box()
            for axis in visible(user, arm):
                for part in ("[data-testid=block-info]", "input"):
                    other = user.page.locator(f"#axis-{arm}-{axis} {part}").first.bounding_box()
                    assert not _overlap(button, other), (width, axis)


def _overlap(a: dict[str, float], b: dict[str, float]) -> bool:
    across = a["x"] < b["x"] + b["width"] and b["x"] < a["x"] + a["width"]
    return across and a["y"] < b["y"] + b["height"] and b["y"] < a["y"] + a["height"]
