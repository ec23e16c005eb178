"""A real app on loopback against what strangers do to it: connections, sessions, hosts, a team's logins."""

import contextlib
import json
import select
import socket
import sys
import time
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.processes import wait_for
from tests.support.served import Served, served
from tokendyno.backend.hosting.limits import LIMITS
from tokendyno.backend.hosting.users import Users
from tokendyno.ui.components.scripts import PLOTLY_JS

pytestmark = pytest.mark.slow

SMALL_REPORT = "/files/recorded-batching.json"
"""140 KiB."""

REPORT = "/files/recorded-compile.html"
"""5 MB."""

FORM = {"Content-Type": "application/x-www-form-urlencoded"}

REQUEST_S, STALL_S, LOOK_EVERY_S = 6.0, 8.0, 1.0
PATIENCE = f"""
import runpy
from tokendyno.ui.gate import connections
connections.REQUEST_S, connections.STALL_S, connections.LOOK_EVERY_S = {REQUEST_S}, {STALL_S}, {LOOK_EVERY_S}
runpy.run_path("app.py", run_name="__main__")
"""
"""app.py, which waits less long for connections than it does for visitors."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("team")
    users = Users(folder / "users.json")
    users.add("ada", "correct horse")
    users.add("bob", "battery staple")
    begin = (sys.executable, "-c", PATIENCE)
    with served(folder, "--mode", "team", "--users", str(users.path), begin=begin) as app:
        yield app


def log_in(app: Served, name: str, password: str) -> str:
    """The login's cookie."""
    body = urllib.parse.urlencode({"name": name, "password": password}).encode()
    answer = app.ask("/login", body, FORM)
    assert answer.status == 303, answer
    return answer.headers["set-cookie"].partition(";")[0]


def attached(app: Served, cookie: str, query: str = "") -> str:
    """What the page shows first, as JSON text: the run, and its settings."""
    load = next(d for d in app.config_of(cookie)["dependencies"] if len(d["outputs"]) > 20 and not d["inputs"])
    sent = {"data": [], "fn_index": load["id"], "session_hash": "s", "trigger_id": None}
    answer = app.post(f"/gradio_api/run/predict{query}", sent, {"Cookie": cookie})
    assert answer.status == 200
    return answer.body.decode()


@pytest.fixture(scope="module")
def silence_s(team: Served) -> Iterator["Future[float]"]:
    """Seconds until a connection that asks for nothing is closed. It is opened before the other tests, which go on."""

    def wait() -> float:
        begin_s = time.monotonic()
        with socket.create_connection(("127.0.0.1", team.port)) as silent:
            silent.settimeout(REQUEST_S + 20)
            silent.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
            assert silent.recv(1) == b""
        return time.monotonic() - begin_s

    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(wait)


def unread(app: Served, path: str, requests: int, headers: str = "") -> socket.socket:
    """A connection that asks for something several times and reads nothing. Of what comes, the system keeps 2.5 MiB."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    link.connect(("127.0.0.1", app.port))
    link.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n".encode() * requests)
    return link


def reset(link: socket.socket) -> bool:
    """Whether the other end has given up a connection, without reading what it sent before."""
    poll = select.poll()
    poll.register(link, select.POLLERR | select.POLLHUP)
    return bool(poll.poll(0))


@pytest.fixture(scope="module")
def stalled_s(team: Served) -> Iterator["Future[float]"]:
    """Seconds until a connection that reads nothing of its answers is closed. It is opened before the other tests."""

    def wait() -> float:
        begin_s = time.monotonic()
        with unread(team, SMALL_REPORT, 40, f"Cookie: {log_in(team, 'ada', 'correct horse')}\r\n") as link:
            wait_for(lambda: reset(link), STALL_S + 40)
        return time.monotonic() - begin_s

    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(wait)


@pytest.fixture(scope="module")
def slowly_read(team: Served) -> Iterator["Future[int]"]:
    """Bytes of a report that a slow link has received after a while. It is opened before the other tests."""

    def read() -> int:
        found, end_s = 0, time.monotonic() + STALL_S + 10
        with unread(team, REPORT, 1, f"Cookie: {log_in(team, 'ada', 'correct horse')}\r\n") as link:
            while time.monotonic() < end_s:
                found += len(link.recv(2_000))
                time.sleep(0.1)
        return found

    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(read)


@pytest.mark.usefixtures("stalled_s", "slowly_read")
@pytest.mark.usefixtures("silence_s")
def test_one_users_history_is_not_anothers(team: Served) -> None:
    """`attach` gave a second visitor the first one's prompt, settings and text."""
    ada, bob = log_in(team, "ada", "correct horse"), log_in(team, "bob", "battery staple")
    run = next(d for d in team.config_of(ada)["dependencies"] if any(e == "submit" for _, e in d["targets"]))
    values = [c["props"].get("value") for i in run["inputs"] for c in team.config_of(ada)["components"] if c["id"] == i]
    values[2], values[3] = "Ada's secret prompt", 3  # the run that is shown comes first, then the model
    sent = {"data": values, "fn_index": run["id"], "session_hash": "s", "trigger_id": None}
    started = team.post("/gradio_api/run/predict", sent, {"Cookie": ada})
    assert started.status == 200 and b"secret" not in started.body
    assert "Ada's secret prompt" in attached(team, ada)
    assert "Ada's secret prompt" not in attached(team, bob)


def test_a_header_that_never_ends_is_cut_off(team: Served) -> None:
    with socket.create_connection(("127.0.0.1", team.port)) as endless:
        endless.settimeout(10)
        endless.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        with pytest.raises(OSError):
            for _ in range(100):
                endless.sendall(b"x" * 8_192)
                time.sleep(0.005)
    assert team.ask("/theme.css").status == 200


def test_a_body_larger_than_a_header_may_be_comes_in_one_piece_with_it(team: Served) -> None:
    """However the two are cut: the end of the header may be in the middle of a packet, or between two."""
    body = b"x" * 200_000
    head = "POST /gradio_api/run/predict HTTP/1.1\r\n"
    head += f"Host: 127.0.0.1:{team.port}\r\nContent-Length: {len(body)}\r\n\r\n"
    for cut in (0, len(head) - 2, len(head)):
        with socket.create_connection(("127.0.0.1", team.port), 10) as connection:
            connection.sendall(head[:cut].encode())
            time.sleep(0.1 * bool(cut))
            connection.sendall(head[cut:].encode() + body)
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 "), cut


def _closed(link: socket.socket) -> bool:
    """Whether the other end has closed a connection on which nothing was sent."""
    link.setblocking(False)
    try:
        return link.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def test_connections_of_one_address_are_bounded_and_others_end_in_good_order(team: Served) -> None:
    most = LIMITS["team"].address_connections
    assert most is not None
    links = [socket.create_connection(("127.0.0.1", team.port)) for _ in range(most + 20)]
    try:
        wait_for(lambda: sum(map(_closed, links)) >= 20, what="those that are too many to be closed")
        assert sum(map(_closed, links)) < 60
    finally:
        for link in links:
            link.close()
    wait_for(lambda: team.ask("/theme.css").status == 200)
    assert "Traceback" not in team.errors.read_text()


def test_nothing_of_a_login_is_in_the_log(team: Served) -> None:
    log_in(team, "bob", "battery staple")
    assert "battery" not in team.errors.read_text() and "battery" not in json.dumps(team.errors.read_text())
    assert b"battery" not in b"".join(p.read_bytes() for p in Path(team.history.parent).glob("history*"))


def test_a_program_runs_two_arms_in_five_lines_as_the_user_of_its_token(team: Served, tmp_path: Path) -> None:
    from gradio_client import Client  # type: ignore[import-untyped]

    users = Users(team.history.parent / "users.json")
    ada, bob = (
        Client(team.url, verbose=False, headers={"Authorization": f"Bearer {users.new_token(name)}"})
        for name in ("ada", "bob")
    )
    run = ada.predict(a="", b="cache=static", max_new_tokens=8, ignore_eos=True, api_name="/run")
    with pytest.raises(Exception, match="another visitor started it"):
        bob.predict(run=run, api_name="/stop")
    found: dict[str, Any] = {"status": "running"}
    while found["status"] in ("queued", "running"):  # a busy machine takes more than one wait
        found = ada.predict(run=run, wait_s=60, api_name="/result")
    assert found["status"] == "done", found["message"]
    assert [len(arm["latency_s"]) for arm in found["arms"]] == [8, 8]


def test_a_connection_that_reads_no_answer_is_closed(stalled_s: "Future[float]") -> None:
    assert stalled_s.result(STALL_S + 50) > STALL_S - 2 * LOOK_EVERY_S


def test_a_connection_that_reads_slowly_is_not_closed(slowly_read: "Future[int]") -> None:
    """The system takes megabytes of an answer, and no more for as long as a slow link needs for them."""
    assert slowly_read.result(STALL_S + 50) > 100_000


def test_a_connection_that_asks_for_nothing_is_closed(silence_s: "Future[float]") -> None:
    assert silence_s.result(REQUEST_S + 30) > REQUEST_S - 2 * LOOK_EVERY_S


def test_nothing_is_answered_with_500(team: Served) -> None:
    """Gradio looks up pages, handlers and components that a request names without a check."""
    cookie = {"Cookie": log_in(team, "ada", "correct horse")}
    assert team.ask(f"/gradio_api/file={PLOTLY_JS}", headers={**cookie, "Range": "bytes=0-1,4-9,2-3"}).status == 200
    for query in ("page=x", "page=fit&page=y", "p%61ge=x", "deep_link=x", "run=%FF", "view=" + "x" * 10_000):
        assert team.ask(f"/?{query}", None, cookie).status == 200, query
    sent: dict[str, object] = {"data": [], "session_hash": "s", "trigger_id": None}
    for path, more in (
        ("queue/join", {"fn_index": 99_999}),
        ("run/predict", {"fn_index": -1}),
        ("component_server", {"component_id": 99_999, "fn_name": "pull"}),
    ):
        answer = team.post(f"/gradio_api/{path}", sent | more, cookie)
        assert 400 <= answer.status < 500, (path, answer)


def test_answers_that_nobody_reads_are_bounded(team: Served) -> None:
    """200 connections took 565 MB. The last test: it has the oldest unread connections given up."""
    cookie = f"Cookie: {log_in(team, 'ada', 'correct horse')}\r\n"
    team.ask(REPORT, headers={"Cookie": cookie[8:-2]})
    process = psutil.Process(team.process.pid)
    before, largest = process.memory_info().rss, 0
    ask = f"GET {REPORT} HTTP/1.1\r\nHost: 127.0.0.1\r\n{cookie}"
    links = [unread(team, REPORT, 1, cookie) for _ in range(60)]
    for link in links:
        with contextlib.suppress(OSError):  # given up already
            link.sendall(f"{ask}\r\n".encode())

    def given_up() -> int:
        nonlocal largest
        largest = max(largest, process.memory_info().rss)
        return sum(map(reset, links))

    try:
        wait_for(lambda: given_up() >= 20, what="connections to be given up")
        print(f"{largest - before:,} bytes for {len(links)} reports")
        assert largest - before < 600 << 20, "without a limit 1,450 MB"
    finally:
        for link in links:
            link.close()
