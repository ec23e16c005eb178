"""What should I use? Asked, stopped, and found again by its link."""

from collections.abc import Callable

import pytest

from tests.browser.access import obstacles
from tests.browser.driver import Driver

Open = Callable[..., Driver]


def test_advice_comes_back_by_its_link_with_cards_a_chart_and_reasons(open_page: Open) -> None:
    user = open_page("?advice=stored-advice", 1440, 900)
    user.page.wait_for_selector("#advise .td-pareto .main-svg")
    assert user.page.title() == "Advise - tokendyno"
    asked = held(user, "gpu", "wish", "memory", "latency", "quality", "budget", "prompt", "new-tokens")
    work = ["1m", "Once upon a time, there was", "3"]
    assert asked == ["this machine", "the least time a token", "", "15ms", "as good", *work]
    assert ". For the least time a token, use KV cache static" in user.text("#advise .td-worth-headline")
    card = user.page.locator(".td-advise-card")
    assert (
        card.count() == 1
        and "2.00\u00d7" in card.inner_text()
        and "tokendyno serve --model pocket" in card.inner_text()
    )
    card.get_by_text("Script").click()
    assert "td.load" in card.locator("pre").inner_text()
    assert user.page.locator("#advise tbody tr").count() == 3
    assert user.page.locator("#advise .td-worth-again").is_visible()
    assert obstacles(user.page) == []
    user.page.set_viewport_size({"width": 390, "height": 844})
    assert user.page.evaluate("document.documentElement.scrollWidth") <= 390
    figures = user.page.locator("#advise tbody tr").first.locator("td:not(:empty)")
    ends = [box["x"] + box["width"] for one in figures.all() if (box := one.bounding_box()) is not None]
    assert len(ends) >= 3 and max(ends) <= 390, "each figure is in sight on a phone"
    user.page.goto(f"{user.address}/?worth=stored-advice")  # as a list of runs leads to it
    user.page.wait_for_selector("#advise .td-advise-card", state="visible")


def test_for_a_gpu_that_is_not_here_bounds_and_memory_answer(open_page: Open) -> None:
    user = open_page("?view=advise&model=random:Llama-3-8B", 1440, 900)
    user.page.locator("#advise-gpu input").click()
    user.page.locator("#advise-gpu").get_by_role("option", name="H100-SXM", exact=True).click()
    user.type("advise-memory", "60GiB")
    user.page.locator("#advise .td-worth-begin").click()
    answered = "document.querySelector('#advise .td-worth-headline').textContent.includes('where nothing was measured')"
    user.wait(answered)
    assert user.page.locator("#advise tbody tr").count() > 2
    user.wait("location.search.includes('advice=there-')")
    user.page.reload()
    user.wait(answered)
    assert held(user, "model", "gpu", "memory") == ["random:Llama-3-8B", "H100-SXM", "60GiB"]
    user.type("advise-memory", "50GiB")  # not asked yet
    user.type("advise-new-tokens", "33")
    user.still()
    user.page.reload()
    user.wait(answered)
    user.wait("document.querySelector('#advise-memory :is(input, textarea)').value === '50GiB'")
    assert held(user, "gpu", "new-tokens") == ["H100-SXM", "33"]


def held(user: Driver, *controls: str) -> list[str]:
    """What controls of the page hold."""
    return [user.page.locator(f"#advise-{name} :is(input, textarea)").first.input_value() for name in controls]


@pytest.mark.parametrize(("card", "on", "memory"), [("H100-SXM", "H100-SXM", ""), ("24GiB", "this machine", "24GiB")])
def test_fit_leads_here_with_its_model_gpu_batch_and_context(open_page: Open, card: str, on: str, memory: str) -> None:
    user = open_page(f"?view=fit&model=random:Llama-3-8B&gpu={card}&context=4096&batch=2", 1366, 768)
    user.page.locator(".td-seek").click()
    user.wait("document.querySelector('#pages [aria-selected=true]').textContent.trim() === 'Advise'")
    user.wait("document.activeElement.matches('#advise .td-worth-begin')")
    named = held(user, "model", "gpu", "memory", "prompt-tokens", "new-tokens", "batch")
    assert named == ["random:Llama-3-8B", on, memory, "4032", "64", "2"]
    if not memory:
        user.page.locator("#advise .td-worth-begin").click()
        user.wait("document.querySelector('#advise .td-worth-headline').textContent.includes('nothing was measured')")


def test_compare_leads_here_with_its_prompt(open_page: Open) -> None:
    user = open_page(width=1366, height=768)
    user.type("prompt", "A fox named Pip")
    user.page.locator("#to-advise").click()
    user.wait("document.activeElement.matches('#advise .td-worth-begin')")
    assert held(user, "prompt", "new-tokens", "batch")[0] == "A fox named Pip"


@pytest.mark.slow
def test_advice_is_sought_and_stopped_and_a_limit_that_cannot_be_read_is_said(open_page: Open) -> None:
    user = open_page("?view=advise", 1366, 768)
    user.type("advise-memory", "lots")
    user.page.locator("#advise .td-worth-begin").click()
    user.wait("document.querySelector('#advise-message').textContent.includes(\"Cannot read the size 'lots'\")")
    user.type("advise-memory", "4GiB")
    user.type("advise-prompt", "A fox of my own")
    user.page.locator("#advise .td-worth-begin").click()
    user.wait("document.querySelector('#advise .td-worth-doing').textContent.startsWith('arm 1: As it comes')")
    assert user.text("#advise-message").strip() == ""
    user.page.wait_for_selector("#advise .td-advise-card", timeout=60_000)
    assert "A fox of my own" in (user.page.locator("#advise .td-advise-card pre").first.text_content() or "")
    user.page.locator("#advise .td-worth-stop").click()
    user.wait("document.querySelector('#advise .td-worth-sentence').textContent.startsWith('Stopped after')")
    assert user.page.locator("#advise .td-worth-again").is_visible()
