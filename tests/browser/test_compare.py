"""What a user does on the Compare page."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import UNBEGUN
from tests.browser.driver import LIVE, Driver
from tests.support.command_line import POCKET
from tests.support.runs import PROMPT, TOKEN_BYTES
from tokendyno.backend.paths import ROOT

Open = Callable[..., Driver]
DRAWN_BETWEEN_PAINTS = """[...document.querySelectorAll('.td-fresh canvas')].some(canvas =>
  canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean))"""

OUT_OF_PLACE = """[...document.querySelectorAll('#live .td-ledger tbody tr')].flatMap(row => {
  const at = one => one.getBoundingClientRect(), choice = at(row.querySelector('.td-choice')).left;
  const cells = [...row.querySelectorAll('th, td')].filter(one => at(one).left < 0 || at(one).right > innerWidth);
  return [...cells, ...[...row.querySelectorAll('.td-arm')].filter(one => at(one).right > choice)];
}).map(one => one.className + ': ' + one.textContent)"""
"""Cells of the ledger that the window cuts, and arms that lie on what they chose."""


def test_two_arms_run_from_choice_to_proof(open_page: Open) -> None:
    user = open_page()
    for cache in ("static", "unwindowed"):
        user.choose("axis-b-cache", cache)
    user.type("max-new-tokens", "160")
    user.page.locator("#more-button").click()
    user.page.locator("#ignore-eos input").check()
    user.page.locator("#more-button").click()
    user.two_pairs()
    run_id = user.run()
    assert f"run={run_id}" in user.page.url and "tokens" not in user.page.url, "which a run has"
    assert user.page.locator("#run").is_disabled() and user.page.locator("#stop").is_enabled()
    user.wait_tokens(0, 20)
    early = user.page.evaluate(f"{LIVE}.live.series[0].t.length")
    user.wait_tokens(1, 100)
    user.wait_over(run_id)
    assert early < 160 and user.page.evaluate(f"{LIVE}.live.series.map(columns => columns.t.length)") == [160, 160]
    assert user.text(".td-status") == "Done"
    user.wait("!document.querySelector('#run').disabled")
    assert user.page.locator("#stop").is_disabled()

    # the plateau: past window - 1 tokens the dynamic cache's sliding layers grow no more, the others do
    a, b = user.line("kv", "A", "window"), user.line("kv", "B", "window")
    flat = [y for x, y in zip(a["x"], a["y"], strict=True) if x >= 127]
    assert len(flat) > 20 and len(set(flat)) == 1
    assert b["y"][-1] > flat[-1] and sorted(set(b["y"])) == b["y"]

    assert user.text(".td-digest") == "6 verified, 9 off, 3 not applicable; A and B differ in KV cache"
    ledger = user.text(".td-ledger")
    assert ledger.count("\u2713 verified") == 2 and "DynamicSlidingWindowLayer" in ledger
    user.page.click("#live .td-all")
    assert user.text(".td-ledger").count("\u2713 verified") == 2 + 5, "equal rows of both arms are one"
    tiles = user.text(".td-tiles")
    assert re.search(r"Decode speed\s+Arm A:\s+[\d.,]+\s+Arm B:\s+[\d.,]+\s+tok/s\s+[AB] ", tiles), tiles
    assert re.search(r"KV cache\s+Arm A:.*KiB\s+A \d+% less", tiles, re.DOTALL), tiles
    figures = user.page.locator(".td-one-title").all_inner_texts()
    assert figures == ["Time a token", "Same next token", "First token", "Peak memory"] and "memory" not in tiles
    lead = user.text(".td-lead")
    assert "ull KV cache (no sliding window)" in lead and user.page.locator(".td-pair").count() == 2
    assert "ecided after 2 pairs." in user.text(".td-sure")
    said = user.text(".td-sentence")
    assert said.startswith(lead) and re.search("more KV cache,? and wrote the same text[.]", said), said
    assert "texts" in user.text(".td-text-comparison")
    user.page.set_viewport_size({"width": 390, "height": 844})
    user.still()
    assert user.page.evaluate(OUT_OF_PLACE) == []
    if os.environ.get("TOKENDYNO_UPDATE_SCREENSHOT") == "1":
        (ROOT / "docs").mkdir(exist_ok=True)
        user.page.set_viewport_size({"width": 1440, "height": 900})
        user.page.wait_for_timeout(1500)
        user.page.screenshot(path=str(ROOT / "docs" / "screenshot.png"))


def test_a_small_window_shows_charts_and_texts_of_a_run_that_goes_on(open_page: Open) -> None:
    user = open_page()
    user.page.set_viewport_size({"width": 1280, "height": 720})
    user.type("max-new-tokens", "1000")
    user.run()
    user.wait_tokens(0, 20)
    user.wait("Math.abs(document.querySelector('#live .td-run-bar').getBoundingClientRect().top) < 20")
    charts = "[...document.querySelectorAll('#live .js-plotly-plot')]"
    assert user.page.evaluate(f"Math.max(...{charts}.map(one => one.getBoundingClientRect().bottom))") <= 730
    user.page.click("#live .td-run-stop")
    user.wait_status("cancelled")
    assert user.page.locator("#live .td-run-stop").is_hidden()


def test_a_blocked_arm_is_fixed_with_one_click(open_page: Open) -> None:
    user = open_page()
    user.choose("preset-a", "baseline")
    user.show_axes("a")
    user.choose("axis-a-loop", "own")
    fix = user.page.locator("#verdicts-a .td-verdict.blocked .td-fix")
    fix.wait_for()
    user.wait_chosen("preset-a", "custom")
    user.page.click("#run")
    user.wait("document.querySelector('#message .td-line-text').textContent.includes('static')")
    fix.click()
    user.page.locator("#verdicts-a .td-verdict.blocked").wait_for(state="detached")
    assert user.chosen("axis-a-cache") == "static"
    user.wait_chosen("preset-a", "own-loop")
    assert user.message() == ""


BAD_INPUT = [
    ("max-new-tokens", "0", "New tokens is 0"),
    ("max-new-tokens", "", "New tokens is empty"),
    ("model", "poket", "Did you mean 'pocket'"),
    ("prompt", "", "The prompt is empty"),
]


@pytest.mark.slow
def test_bad_input_is_said_and_nothing_is_lost(open_page: Open, tmp_path: Path) -> None:
    user = open_page()
    torn = Path(shutil.copytree(POCKET, tmp_path / "torn"))
    (torn / "tokenizer.json").write_text("{")
    user.type("prompt", "My very own prompt")
    before, good = user.shown(), {"max-new-tokens": "64", "model": "pocket", "prompt": "Another"}
    message = "document.querySelector('#message .td-line-text').textContent"
    for control, typed, words in [("model", str(torn), "tokenizer.json is cut off"), *BAD_INPUT]:
        user.type(control, typed)
        user.page.click("#run")
        user.wait(f"{message}.includes({words!r})")
        assert "Traceback" not in user.page.content()
        assert user.value(control).startswith(typed)
        assert control == "prompt" or user.value("prompt") == "My very own prompt"
        assert user.shown() == before and user.page.locator("#run").is_enabled()
        user.type(control, good[control])
        user.wait(f"{message} === ''")


@pytest.mark.slow
def test_an_encoder_is_shown_in_passes(open_page: Open) -> None:
    user = open_page("?run=passes")
    user.wait_over("passes")
    assert user.words(".td-said").startswith("Full KV cache (no sliding window) ran 2.00\u00d7")
    assert "Time a forward pass 20.0 \u2192 10.0 ms" in user.words(".td-four")
    assert "Interference or noise (A and B)" in user.text(".td-interference")
    assert "other programs kept some of the 2 CPU cores busy" in user.text(".td-remarks .fallback")
    assert "20 of 20 passes" in user.text(".td-progress")
    assert "no text" in user.text(".td-texts")
    titles = " ".join(user.layout(f"annotations[{i}].text") for i in range(4))
    assert "Forward pass latency" in titles and "An encoder has no KV cache." in titles
    assert user.line("latency", "A")["x"][0] == 0
    labels = user.page.locator(".td-tile h3").all_inner_texts()
    assert not any("first token" in label or "KV" in label for label in labels)


@pytest.mark.slow
def test_a_run_keeps_its_zoom_outlives_a_reload_and_is_stopped_from_another_view(open_page: Open) -> None:
    user = open_page("?pace=fast")
    user.choose("prompt-preset", "long")
    user.wait("document.querySelector('#max-new-tokens input').value === '1000'")
    user.type("max-new-tokens", "3500")  # arm A is at it until it is stopped
    run_id = user.run()
    user.wait_tokens(0, 100)
    user.wait(DRAWN_BETWEEN_PAINTS)
    user.wait("document.querySelector('.td-plot').data.some(t => t.meta?.arm === 'A' && t.x.length > 80)")
    area = user.page.locator("#live .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    user.page.mouse.move(box["x"] + 0.02 * box["width"], box["y"] + 0.1 * box["height"])
    user.page.mouse.down()
    user.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.95 * box["height"], steps=6)
    user.page.mouse.up()
    user.wait("document.querySelector('.td-plot')._fullLayout.xaxis.autorange === false")
    zoom = user.layout("xaxis.range")
    user.page.locator("#live .legendtoggle").first.click()
    user.wait("document.querySelector('.td-plot').data.some(t => t.meta?.arm === 'A' && t.visible === false)")
    count = user.page.evaluate(f"{LIVE}.live.series[0].t.length")
    user.wait_tokens(0, count + 60)
    assert user.layout("xaxis.range") == zoom
    assert user.layout("xaxis2.autorange") is user.layout("xaxis3.autorange") is False, "linked"
    assert {line["visible"] for line in user.drawn() if line["arm"] == "A"} == {False}

    before = user.page.evaluate(f"{LIVE}.live.series[0].lat.slice(0, 30)")
    user.page.reload()
    user.wait_tokens(0, 60)
    assert user.shown() == run_id and user.value("max-new-tokens") == "3500"
    assert user.page.evaluate(f"{LIVE}.live.series[0].lat.slice(0, 30)") == before
    other = open_page("")
    assert other.shown() == run_id
    other.wait_status("running")
    other.page.click("#stop")
    user.wait_over(run_id)
    assert user.text(".td-status") == "Stopped"
    assert user.page.evaluate(f"{LIVE}.live.series[1].t.length") == 0
    other.wait_over(run_id)
    user.wait("!document.querySelector('#run').disabled")


def test_a_permalink_opens_a_run_with_its_settings_charts_and_figures(open_page: Open) -> None:
    user = open_page("?run=two")
    user.wait_over("two")
    assert user.page.evaluate(f"{LIVE}.live.series.map(columns => columns.t.length)") == [64, 50]
    assert user.value("prompt") == "Once upon a time" and user.value("max-new-tokens") == "64"
    assert user.chosen("axis-b-cache") == "unwindowed" and user.text(".td-status") == "Done"
    assert user.page.locator("#run").is_enabled() and user.page.locator("#stop").is_disabled()

    user.wait("document.querySelector('.td-plot').data.filter(t => t.meta?.arm).length === 14")
    for arm, tokens in (("A", 64), ("B", 50)):
        latency, full = user.line("latency", arm), user.line("kv", arm, "growing")
        assert latency["x"] == list(range(1, tokens)) and latency["y"] == pytest.approx([10] * (tokens - 1))
        assert full["x"] == list(range(tokens)) and full["y"][-1] == TOKEN_BYTES * (PROMPT + tokens - 1) / 1024

    assert "as fast in the first pair 1.0\u00d7 one pair, no interval yet" in user.words(".td-said")
    assert user.text(".td-sentence").startswith(
        "One pair of runs: full KV cache (no sliding window) took the same time"
    )
    assert user.page.locator(".td-details[open]").count() == 0
    user.page.click(".td-details summary")
    rows = user.page.locator(".td-rows tbody tr")
    found = {rows.nth(i).get_attribute("data-key"): rows.nth(i).inner_text() for i in range(rows.count())}
    assert "needs 2 runs" in found["interval"]
    assert "needs 662 steps" in found["p99"] and "n/a" in found["energy"]

    user.open("?run=passes")  # two pairs, of which B is faster
    user.wait_over("passes")
    user.page.locator("#live .td-next", has_text="Get the script of").click()
    user.wait("document.activeElement.closest('#code-b')")
    assert user.page.locator("#code-b").is_visible()


@pytest.mark.full
def test_a_broken_run_and_an_unknown_one_are_said(open_page: Open) -> None:
    user = open_page("?run=broken")
    user.wait_over("broken")
    assert user.text(".td-status") == "Failed" and "was killed (SIGKILL)" in user.text("#live .td-failure")
    for label in ("Model", "Prompt preset", "Prompt", "New tokens", "Arm A", "Arm B"):
        assert user.page.get_by_label(label, exact=True).count() >= 1, label
    assert user.page.locator(".td-status[role=status][aria-live=polite]").count() == 1
    assert user.page.locator("#live .td-failure[role=alert]").count() == 1
    user.open("?run=nosuchrun")
    user.page.get_by_text("There is no run 'nosuchrun' here").wait_for()
    assert user.page.locator("#run").is_enabled()
    assert "Press Run" in user.text(".td-empty-run")


@pytest.mark.slow
def test_what_nobody_chose_is_set_the_same_with_one_press_and_the_run_says_how_far_it_is(open_page: Open) -> None:
    user = open_page(UNBEGUN)
    user.wait("document.querySelector('#same').textContent.includes('They differ in KV cache alone.')")
    user.choose("axis-a-dtype", "float16")
    user.page.locator("#verdicts-b").get_by_role("button", name="Remove Dtype float32").click()  # it is left at auto
    user.page.locator("#same").get_by_role("button", name="Use the same: dtype float16 in B").click()
    user.page.locator("#same .td-fair.fair").wait_for()
    assert "Dtype float16" in user.chips("a") and "Dtype float16" in user.chips("b")

    user.type("max-new-tokens", "1500")
    user.run()
    user.page.locator(".td-run-part.now", has_text="writes").wait_for(timeout=60_000)
    user.wait("/^(A writes|\\d+ s) - tokendyno$/.test(document.title)")
    assert "at most 9 pairs or 60 s" in user.text(".td-run-rule")
    user.page.click("#stop")
    user.wait_status("cancelled")
    user.page.locator(".td-run-bar", has_text="Stopped after").wait_for()


@pytest.mark.slow
def test_amounts_are_in_the_address_where_they_are_not_the_first_ones(open_page: Open) -> None:
    first = "?view=compare&model=pocket"
    user = open_page(first)
    before = user.value("max-new-tokens")
    user.page.locator("#max-new-tokens input").click()
    user.type("max-new-tokens", "160")
    user.wait(f"location.search === '{first}&tokens=160'")
    linked = open_page(f"{first}&tokens=160&batch_size=2&prompt_tokens=300")
    linked.wait("document.querySelector('#max-new-tokens input').value === '160'")
    linked.page.locator("#more-button").click()
    assert [linked.value(name) for name in ("batch-size", "prompt-tokens")] == ["2", "300"]
    linked.wait(f"location.search === '{first}&tokens=160&batch_size=2&prompt_tokens=300'")
    user.type("max-new-tokens", before)
    user.wait(f"location.search === '{first}'")


@pytest.mark.full
def test_what_more_hides_is_a_chip_beside_run_that_puts_it_back(open_page: Open) -> None:
    user = open_page("?view=compare&model=pocket")
    user.wait("document.querySelector('#will .td-line-text').textContent.startsWith('Run: ')")
    chips, line = user.page.locator("#will .td-chip"), "document.querySelector('#will').innerText"
    assert not chips.count()
    user.choose("prompt-preset", "seed")  # only its text and what follows an EOS token are its own
    chips.nth(1).wait_for()
    user.page.click("#more-button")
    user.type("batch-size", "2")
    user.type("temperature", "0.8")
    user.page.click("#more-button")
    user.wait(f"{line}.includes('Temperature')")
    said = [" ".join(text.replace("\u00d7", "").split()) for text in chips.all_inner_texts()]
    assert said == ["Prompt Grandmother gave Anna a\u2026", "Batch size 2", "Temperature 0.8", "Ignore EOS off"]
    user.page.locator("#prompt textarea").fill("My own prompt")  # and never leave it
    user.page.reload()
    user.wait(f"{line}.includes('My own prompt') && {line}.includes('Temperature')")
    assert chips.count() == 4 and user.value("batch-size") == "2" and "own" not in user.page.url

    user.page.get_by_role("button", name="Put Batch size back to 1").focus()
    user.page.keyboard.press("Enter")
    user.wait(f"!{line}.includes('Batch size')")
    user.wait("document.activeElement.getAttribute('aria-label') === 'Put Temperature back to 0'")
    user.page.get_by_role("button", name="Put Prompt back to").click()
    user.wait(f"!{line}.includes('Prompt')")
    assert user.page.locator("#prompt textarea").input_value().startswith("Once upon a time")
    user.page.locator("#will").get_by_role("button", name="Put all back").click()
    user.wait(f"!{line}.includes('Temperature')")
    assert not chips.count() and user.page.locator("#batch-size input").input_value() == "1"

    preset = "document.querySelector('#prompt-preset input').value"
    user.type("prompt", "A text of nobody's presets")
    user.wait(f"{preset} === ''")
    user.choose("prompt-preset", "seed")
    user.wait("document.querySelector('#prompt textarea').value.startsWith('Grandmother')")
    user.wait(f"{preset} !== ''")


@pytest.mark.slow
def test_what_changes_at_once_is_checked_once_so_that_no_older_answer_comes_last(open_page: Open) -> None:
    user = open_page()
    asked: list[Any] = []
    user.page.on("request", lambda request: asked.append((request.post_data_json or {}).get("data")))
    user.page.evaluate("""() => {
      for (const [name, value] of [['batch-size', 7], ['seed', 41]]) {
        const box = document.querySelector(`#${name} input`);
        box.value = value;
        box.dispatchEvent(new Event('input', { bubbles: true }));
      }
    }""")
    user.wait("document.querySelector('#stale .td-line-text').textContent.includes('the workload')")
    checks = [values for values in asked if isinstance(values, list) and values[:1] == ["unbegun"] and 7 in values]
    assert [41 in values for values in checks] == [True]
