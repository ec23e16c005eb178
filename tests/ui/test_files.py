"""Runs as files, through the real gate: saved by whoever has the id, taken in as the visitor's own, and refused in a
sentence where the mode, the file or the run does not allow it."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from tests.support.event_loops import finished
from tests.support.kept_runs import history_of, made, run_on
from tests.support.machines import CPU
from tests.support.runs import created
from tests.ui.gate.test_gate import one_page
from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.executors import open_bench
from tokendyno.backend.hosting.limits import LIMITS, Mode
from tokendyno.backend.hosting.users import Users
from tokendyno.backend.hosting.visitor import LOCAL_USER
from tokendyno.backend.paths import ROOT
from tokendyno.backend.recordings.format import unpack
from tokendyno.backend.recordings.recorded_runs import SHIPPED
from tokendyno.ui.files import AT_A_TIME, NO_FILE, Files
from tokendyno.ui.gate.gate import Gate
from tokendyno.ui.gate.routes import Hosts
from tokendyno.ui.gate.visitors import Visitors

RUN = made(run_on("mine", owner="ada", at_s=time.time()))
Ask = Callable[..., httpx.Response]


@pytest.fixture
def site(tmp_path: Path) -> Any:
    """A gate over a history with a run of Ada and one that goes on; `bob`: asks as Bob."""
    with history_of(tmp_path / "h.sqlite", [RUN, [created("open", owner="ada")]]):
        pass
    users = Users(tmp_path / "users.json")
    users.add("bob", "battery staple")
    token, benches = users.new_token("bob"), list[Bench]()

    def opened(mode: Mode) -> tuple[Bench, Ask]:
        benches.append(open_bench(tmp_path / "h.sqlite", None, LIMITS[mode]))
        accounts = users if LIMITS[mode].login else None

        async def nothing(*arguments: object) -> None:
            raise AssertionError("it went on to Gradio")

        def ask(method: str, path: str, bearer: bool = True, cookie: str = "", **more: Any) -> httpx.Response:
            visitors, files = Visitors(LIMITS[mode], accounts), Files(benches[-1])
            gate = Gate(nothing, one_page(), Hosts(machine=False), visitors, files=files)
            headers = ({"Authorization": f"Bearer {token}"} if bearer else {}) | {"Cookie": cookie}

            async def once() -> httpx.Response:
                transport = httpx.ASGITransport(gate)
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860") as client:
                    return await client.request(method, path, headers=headers, **more)

            return finished(once())

        return benches[-1], ask

    yield opened
    for bench in benches:
        bench.close()


def test_a_run_is_saved_in_every_form_by_whoever_has_its_id(site: Any) -> None:
    _, ask = site("team")
    saved = ask("GET", "/files/mine.dyno")
    assert unpack(saved.content)[1:] == RUN[1:] and saved.headers["content-disposition"].startswith("attachment")
    assert ask("GET", "/files/mine.json").json()["run"] == "mine"
    assert ask("GET", "/files/mine.csv").text.startswith("arm,series,index")
    page = ask("GET", "/files/mine.html").text
    assert page.startswith("<!doctype html>") and 4_000_000 < len(page) < 6_000_000
    assert ask("GET", "/files/mine.md").text.startswith("**")
    assert ask("GET", "/files/mine.sh").text.startswith("tokendyno compare --model ")
    assert ask("GET", "/files/recorded-compile.dyno").status_code == 200
    assert ask("GET", "/files/open.dyno").json()["detail"].startswith("This run has not ended")
    assert ask("GET", "/files/none.html").json()["detail"] == NO_FILE
    assert "of one prompt" in ask("GET", "/files/recorded-batching.html").json()["detail"]
    assert ask("GET", "/files/mine.dyno", bearer=False).status_code == 401
    for path in ("/files/mine.py", "/files/../mine.dyno", "/files/mine"):
        assert ask("GET", path).status_code == 404


def test_whoever_previews_a_link_gets_its_picture_without_a_cookie_unless_people_log_in(site: Any) -> None:
    for mode, status in (("public", 200), ("team", 401)):
        _, ask = site(mode)
        answer = ask("GET", "/files/mine.png", bearer=False)
        assert answer.status_code == status and "set-cookie" not in answer.headers
        assert answer.content.startswith(b"\x89PNG") == (status == 200)
        assert ask("GET", "/files/mine.md", bearer=False).status_code == 401
    assert ask("GET", "/files/mine.png").headers["content-disposition"].startswith("inline")


def test_a_file_is_taken_in_as_the_visitors_own_or_refused_in_a_sentence(site: Any) -> None:
    bench, ask = site("team")
    data = (SHIPPED / "compile.dyno").read_bytes()
    run = bench.runs.get(ask("POST", "/import", content=data).json()["run"])
    assert (run.created.owner, run.created.origin, run.status) == ("bob", "imported", "done")
    counted = bench.store.query("SELECT count(*) FROM runs", ())
    for bad, said in ((b"", "not a recording"), (data[:-50], "end is missing"), (data + b"x", "something follows")):
        reply = ask("POST", "/import", content=bad)
        assert reply.status_code == 400 and said in reply.json()["detail"]
    assert ask("POST", "/import", content=bytes(9 << 20)).status_code == 413
    assert ask("POST", "/import", content=data, bearer=False).status_code == 401
    assert bench.store.query("SELECT count(*) FROM runs", ()) == counted


def test_a_report_names_a_folder_of_this_machine_to_nobody_who_may_not_know_it(site: Any) -> None:
    """The embedded model lies in a folder of this machine; its script names it where visitors choose folders."""
    modes: tuple[Mode, ...] = ("team", "public")
    pages = []
    for mode in modes:
        bench, ask = site(mode)
        bench.machine = lambda: CPU  # where the run was
        pages.append(ask("GET", "/files/mine.html", cookie=f"tokendyno_visitor={'a' * 43}").text)
    assert all("MODEL = " in page for page in pages) and [str(ROOT) in page for page in pages] == [True, False]


def test_a_body_that_trickles_keeps_nobody_waiting_and_a_stranger_s_is_not_read(tmp_path: Path) -> None:
    bench = open_bench(tmp_path / "h.sqlite")
    files = Files(bench)

    async def never() -> Any:
        await asyncio.Event().wait()

    upload = Request({"type": "http", "method": "POST", "path": "/import"}, never)
    saved = Request({"type": "http", "method": "GET", "path": "/files/recorded-compile.dyno"}, never)

    async def ask() -> int:
        slow = [asyncio.create_task(files.answer(upload, LOCAL_USER)) for _ in range(2 * AT_A_TIME)]
        await asyncio.sleep(0)
        answer = await asyncio.wait_for(files.answer(saved, LOCAL_USER), 20)
        for task in slow:
            task.cancel()
        return answer.status_code

    try:
        assert finished(ask()) == 200
        bench.limits = LIMITS["public"]
        with pytest.raises(HTTPException, match="not taken in here"):
            finished(asyncio.wait_for(files.answer(upload, LOCAL_USER), 5))
    finally:
        bench.close()
