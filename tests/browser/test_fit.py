"""The Fit page in a real browser: what is drawn against what is computed, by keyboard, at every width; the address, and
the way to Compare and Batching and back."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.driver import Driver
from tokendyno.backend import hardware
from tokendyno.backend.fit.device import device_of
from tokendyno.backend.fit.table import fit_facts
from tokendyno.backend.fit.view import view
from tokendyno.backend.models import resolve

Open = Callable[..., Driver]
SHOWN = """() => [...document.querySelectorAll('.td-fit-rows tbody tr')]
  .map(row => [...row.cells].map(cell => cell.textContent))"""
BARS = """() => [...document.querySelectorAll('.td-stack')].map(bar => [...bar.querySelectorAll('.td-part')]
  .map(part => part.getBoundingClientRect().width))"""

CURVES = "document.querySelector('.td-fit-curve .js-plotly-plot')"


def open_fit(user: Driver) -> Any:
    user.page.get_by_role("tab", name="Fit").click()
    said(user, "fit-best", "")
    return user.page


def said(user: Driver, line: str, part: str) -> str:
    """Wait until a line is not empty and contains `part`."""
    text = f"document.querySelector('#{line} .td-line-text')?.textContent ?? ''"
    user.page.wait_for_function(f"() => ({text}).length && ({text}).includes({part!r})", timeout=30_000)
    found: str = user.page.evaluate(text)
    return found


def fill(user: Driver, control: str, text: str) -> None:
    box = user.page.locator(f"#{control} input").first
    box.fill(text)
    box.press("Enter")


def wait_rows(user: Driver, part: str) -> None:
    """Wait until some row contains a text."""
    user.page.wait_for_function(
        f"() => [...document.querySelectorAll('.td-fit-rows tr')].some(row => row.textContent.includes({part!r}))"
    )


@pytest.mark.slow
def test_chart_and_table_are_what_is_computed(open_page: Open) -> None:
    """Of a model that this machine holds with room to spare: both ask for its free memory, one after the other."""
    user = open_page(width=1440, height=900)
    page = open_fit(user)
    fill(user, "fit-gpu", "RTX-4090")
    fill(user, "fit-model", "random:Qwen3-4B-Instruct-2507")
    said(user, "fit-heading", "Qwen3 4B")
    expected = view(fit_facts(resolve("random:Qwen3-4B-Instruct-2507"), device_of(hardware.detect(), "RTX-4090")))
    main = [row for row in expected.rows if row.main]
    rows = page.evaluate(SHOWN)
    assert [row[:-1] for row in rows] == [row.cells for row in main]
    assert [row[-1].startswith("Run this") for row in rows] == [not row.not_here for row in main]
    cannot = [(row[-1], shown.not_here) for row, shown in zip(rows, main, strict=True) if shown.not_here]
    assert cannot and all(why in text for text, why in cannot)
    for width in (1440, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        hidden = "(one => one.scrollWidth - one.clientWidth)(document.querySelector('.td-fit-rows'))"
        assert page.evaluate(hidden) == 0, f"why a row cannot run here is in sight at {width}"
    page.set_viewport_size({"width": 1440, "height": 900})
    user.still()
    bars = page.evaluate(BARS)
    pixel = bars[0][0] / main[0].parts[0]
    for widths, row in zip(bars, main, strict=True):
        assert all(abs(w - pixel * part) < 1.5 for w, part in zip(widths, row.parts, strict=True)), row.title
    line = page.locator(".td-line-at.chosen").bounding_box()["x"] - page.locator(".td-lines").bounding_box()["x"]
    assert abs(line - pixel * (24_564 << 20)) < 2
    curve = expected.answer.curves[0]
    user.wait("document.querySelector('.td-fit-curve .js-plotly-plot')?.data")
    drawn = page.evaluate(
        "(one => [[...one.x], [...one.y]])(document.querySelector('.td-fit-curve .js-plotly-plot').data[0])"
    )
    assert drawn[0] == curve.contexts and drawn[1] == pytest.approx([size / 2**30 for size in curve.bytes])
    user.wait("document.querySelectorAll('.td-fit-windows .scatterlayer .trace').length === 6")
    page.locator(".td-fit-tools .td-all").click()
    assert len(page.evaluate(SHOWN)) == len(expected.rows) > len(main)
    fill(user, "fit-model", "Qwen3-30B-A3B")
    user.wait(f"{CURVES}.data.length === 3")
    ends = page.evaluate(f"[{CURVES}.layout.yaxis.range[1], {CURVES}.data[1].y[0]]")
    assert ends[0] > ends[1] > 2 * 24, "the model as it is lies within the axis, however far it is from fitting"


@pytest.mark.full
def test_by_keyboard_from_a_slider_to_a_run_and_back(open_page: Open) -> None:
    user = open_page()
    page = open_fit(user)
    slider, exact = (page.locator(f"[data-name=context] input[type={kind}]") for kind in ("range", "number"))
    fill(user, "fit-model", "random:SmolLM2-135M-Instruct")
    said(user, "fit-heading", "context 8,192 tokens")
    slider.focus()
    for _ in range(2):
        page.keyboard.press("ArrowLeft")
    said(user, "fit-heading", "context 4,096 tokens")
    assert (exact.input_value(), slider.get_attribute("aria-valuetext")) == ("4096", "4,096 tokens")
    exact.fill("5000")
    said(user, "fit-heading", "context 5,000 tokens")
    exact.fill("9999")
    said(user, "fit-best", "8,192 positions: the context of 9,999 was lowered to that")
    exact.fill("")
    said(user, "fit-message", "Context is empty")
    exact.fill("3000")
    said(user, "fit-heading", "context 3,000 tokens")
    page.locator("[data-name=batch] input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    said(user, "fit-heading", "batch 2")
    page.wait_for_function("() => location.search.includes('batch=2')")
    assert page.url.endswith("?view=fit&model=random%3ASmolLM2-135M-Instruct&context=3000&batch=2")

    button = page.get_by_role("button", name="Run this: torchao int8 as arm B of Compare")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.id === 'run'")
    assert page.get_by_role("tab", selected=True).inner_text() == "Compare"
    user.wait("document.querySelector('#verdicts-b .td-chip')?.textContent.includes('torchao int8')")
    assert user.value("model").startswith("random:SmolLM2-135M-Instruct") and user.value("batch-size") == "2"
    assert "view=compare&model=random%3ASmolLM2-135M-Instruct" in page.url
    page.get_by_role("tab", name="Batching").click()
    page.wait_for_function("() => document.querySelector('#batch-model input').value.startsWith('random:SmolLM2')")
    page.go_back()
    page.go_back()
    page.wait_for_function("() => document.querySelector('#pages [aria-selected=true]').textContent.includes('Fit')")
    page.reload()
    said(user, "fit-heading", "context 3,000 tokens, batch 2")


@pytest.mark.full
def test_encoders_several_gpus_and_what_is_refused_have_their_own_words(open_page: Open) -> None:
    user = open_page()
    page = open_fit(user)
    fill(user, "fit-model", "bert-base-uncased")
    said(user, "fit-heading", "input of 512 tokens")
    wait_rows(user, "Activations")
    assert page.locator(".td-fit-rows th", has_text="KV cache").count() == 0
    evil = "<img src=x onerror=alert(1)>"
    fill(user, "fit-gpu", evil)
    assert evil in said(user, "fit-message", "no GPU") and page.locator("#fit-message img").count() == 0
    assert not page.locator(".td-fit").is_visible() and page.locator("#fit-gpu input").input_value() == evil
    fill(user, "fit-model", "Llama-3-8B")
    fill(user, "fit-gpu", "H100-SXM")
    page.wait_for_selector(
        ".td-fit-measured a[href='?run=recorded-launch-bound']:has-text('The same choices ran on NVIDIA H100')"
    )
    fill(user, "fit-gpu", "RTX-4090")
    fill(user, "fit-gpus", "2")
    said(user, "fit-heading", "Llama 3 8B on 2 x RTX-4090")
    said(user, "fit-notes", "Predicted for 2 ranks, as parallel=tensor-2")
    page.get_by_text("How several GPUs split it").click()
    page.locator("#fit-tensor").click()
    page.wait_for_selector(".td-sharding:has-text('column-parallel')", timeout=120_000)
    table = page.locator(".td-sharding").inner_text()
    assert "Llama 3 8B (random weights) as parallel=tensor-2" in table and "128,256 x 4,096" in table, table
    fill(user, "fit-gpus", "3")
    said(user, "fit-message", "Take one of 1, 2, 4, 8")
    page.wait_for_selector(".td-sharding", state="hidden")
