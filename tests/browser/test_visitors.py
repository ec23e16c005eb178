"""Two visitors of a public page: what one starts the other neither sees nor stops, unless the first sends the link."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.driver import Driver
from tests.support.served import Served, served

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("visitors")]

SECRET = "Ada's own prompt about a clockmaker"


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("public"), "--mode", "public") as app:
        yield app


@pytest.fixture
def visitor(browser: Any, public: Served) -> Iterator[Callable[..., Driver]]:
    """Opens the page as somebody new; nothing on it may fail, or break its policy."""
    contexts, troubles = [], list[str]()

    def open_as(query: str = "?view=compare", context: Any = None) -> Driver:
        if context is None:
            context = browser.new_context(viewport={"width": 1366, "height": 768})
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
        page.on("response", lambda got: troubles.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        return Driver(page, public.url).open(query)

    yield open_as
    for context in contexts:
        context.close()
    assert not troubles, troubles


def enabled(driver: Driver, button: str) -> bool:
    return bool(driver.page.locator(f"#{button}").is_enabled())


def start(driver: Driver, **fields: str) -> str:
    for field, text in fields.items():
        driver.type(field.replace("_", "-"), text)
    return driver.run()


def refused_to_strangers(public: Served, run_id: str) -> None:
    """The page of a stranger has no button that stops a run; the request behind the button is refused as well."""
    stop = public.handler("stop", "click")
    cookie = public.ask("/").headers["set-cookie"].partition(";")[0]
    sent = {"data": [run_id], "fn_index": stop["id"], "session_hash": "stranger", "trigger_id": None}
    assert public.post("/gradio_api/run/predict", sent).status == 401
    answer = public.post("/gradio_api/run/predict", sent, {"Cookie": cookie})
    assert answer.status == 200 and b"another visitor started it" in answer.body


def test_a_run_is_its_visitors_own_and_others_watch_it_by_its_link_alone(
    visitor: Callable[..., Driver], public: Served
) -> None:
    ada = visitor()
    run_id = start(ada, prompt=SECRET, max_new_tokens="600")
    ada.wait_tokens(0, 5)
    assert enabled(ada, "stop") and not enabled(ada, "run")

    bob = visitor()
    assert bob.shown() == "" and SECRET not in bob.page.content() and enabled(bob, "run") and not enabled(bob, "stop")
    waiting = start(bob, max_new_tokens="5")
    bob.wait("document.querySelector('.td-message').textContent.startsWith('1 run comes first')")
    assert bob.text(".td-status") == "Queued" and waiting != run_id

    eve = visitor(f"?run={run_id}")
    eve.wait_tokens(0, 20)
    assert eve.value("prompt") == SECRET and eve.text(".td-status") == "Running"
    assert not enabled(eve, "stop") and enabled(eve, "run")

    refused_to_strangers(public, run_id)
    assert ada.text(".td-status") == "Running"
    again = visitor(context=ada.page.context)
    assert again.shown() == run_id and enabled(again, "stop")
    again.page.click("#stop")
    for watcher in (ada, again, eve):
        watcher.wait_status("cancelled")
    bob.wait_over(waiting)
    assert bob.text(".td-status") == "Done"

    (cookie,) = bob.page.context.cookies()  # which is in no history
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax"
    stored = b"".join(file.read_bytes() for file in public.history.parent.glob("history.sqlite*"))
    assert waiting.encode() in stored and b"guest:" in stored and cookie["value"].encode() not in stored
