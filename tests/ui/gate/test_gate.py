"""What passes the gate, and as whose: every request here goes through the real middleware, in front of a small app."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.support.event_loops import finished
from tokendyno.backend.hosting.limits import LIMITS, Limits
from tokendyno.backend.hosting.users import OneAccount, Users
from tokendyno.backend.hosting.visitor import LOCAL, Visitor
from tokendyno.ui.components.scripts import PLOTLY_JS
from tokendyno.ui.csp import PolicyMiddleware
from tokendyno.ui.gate import sessions
from tokendyno.ui.gate.gate import Gate
from tokendyno.ui.gate.routes import Hosts
from tokendyno.ui.gate.visitors import Visitors
from tokendyno.ui.visitor import KEY, visitor_of

PAGE = b"<html><script>window.x = 1</script><script type=module src=./a.js></script></html>"
JOIN = "/gradio_api/queue/join"
SECRET = "hf_" + "AbCdEfGh" * 4
IS_JSON = {"Content-Type": "application/json"}


@cache
def one_page() -> gr.Blocks:
    """For all sites: making one takes a tenth of a second."""
    return gr.Blocks()


class Site:
    """A browser-like client of one gate in front of a small app; cookies are kept."""

    def __init__(
        self,
        visitors: Visitors,
        hosts: Hosts | None = None,
        framed: bool = False,
        app: ASGIApp | None = None,
        blocks: Any = None,
    ) -> None:
        self.visitors, self.blocks = visitors, blocks or one_page()
        gate = Gate(app or self.answer, self.blocks, hosts or Hosts(machine=False), visitors)
        self.gate = PolicyMiddleware(gate, framed)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers as Gradio does: a page at /, else who asked, for which address, and what came."""
        request = Request(scope, receive)
        body, visitor = (await request.body()).decode(), scope.get(KEY)
        if scope["path"] == JOIN and (name := json.loads(body).get("session_hash")):
            self.blocks._queue.pending_messages_per_session[name] = asyncio.Queue()
        request_seen = {
            "owner": visitor and visitor.owner,
            "body": body,
            "path": scope["path"],
            "query": request.url.query,
        }
        response = HTMLResponse(PAGE) if scope["path"] == "/" else JSONResponse(request_seen)
        await response(scope, receive, send)

    def client(self, base: str = "http://127.0.0.1:7860", **more: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.gate), base_url=base, **more)

    def ask(self, method: str, path: str, base: str = "http://127.0.0.1:7860", **more: Any) -> httpx.Response:
        async def once() -> httpx.Response:
            async with self.client(base) as client:
                return await client.request(method, path, **more)

        return finished(once())


@pytest.fixture
def local() -> Site:
    return Site(Visitors(LIMITS["local"]))


@pytest.fixture
def public() -> Site:
    return Site(Visitors(LIMITS["public"]))


@pytest.fixture
def team(tmp_path: Path) -> Site:
    users = Users(tmp_path / "users.json")
    users.add("ada", "correct horse")
    users.add("bob", "battery staple")
    return Site(Visitors(LIMITS["team"], users))


# --- routes ---------------------------------------------------------------------------------------

CLOSED = [
    ("POST", "/gradio_api/upload"),
    ("GET", "/monitoring/summary"),
    ("GET", "/gradio_api/proxy=https://example.com"),
    ("GET", "/gradio_api/file=/etc/passwd"),
    ("GET", f"/gradio_api/file={PLOTLY_JS.parent}/../../../x"),
    ("POST", "/gradio_api/call/stop"),
    ("GET", "/static/%2e%2e/config"),
    ("GET", "/openapi.json"),
    ("PUT", JOIN),
]
OPEN = [
    ("GET", "/"),
    ("HEAD", "/"),
    ("POST", "/gradio_api/run/predict"),
    ("GET", "/gradio_api/heartbeat/abc123"),
    ("GET", "/assets/index-1.js"),
    ("GET", f"/gradio_api/file={PLOTLY_JS}"),
]


@pytest.mark.parametrize(("method", "path"), CLOSED)
def test_an_address_that_the_page_does_not_need_is_not_there(local: Site, method: str, path: str) -> None:
    assert local.ask(method, path).status_code == 404


@pytest.mark.parametrize(("method", "path"), OPEN)
def test_what_the_page_needs_is_there(local: Site, method: str, path: str) -> None:
    more: dict[str, Any] = {"json": {}} if method == "POST" else {}
    assert local.ask(method, path, **more).status_code == 200


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("", ""),
        ("page=x&page=y&view=fit", "view=fit"),
        ("p%61ge=x&run=a%20b", "run=a%20b"),
        ("run=%FF&&deep_link=../x&=1", "run=%FF&&=1"),
    ],
)
def test_what_gradio_reads_for_itself_is_taken_out_of_the_pages_query(query: str, left: str) -> None:
    """An unknown page was answered with an internal error."""
    queries = []

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        queries.append(scope["query_string"].decode())
        await Response()(scope, receive, send)

    site = Site(Visitors(LIMITS["local"]), app=listen)
    assert site.ask("GET", f"/?{query}").status_code == 200
    site.ask("GET", "/gradio_api/info?page=x")
    assert queries == [left, "page=x"], "of the page alone"


# --- host and origin ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("base", "accepted"),
    [
        ("http://127.0.0.1:7860", True),
        ("http://[::1]:7860", True),
        ("http://192.168.1.7", True),  # an address cannot be rebound
        ("http://evil.example", False),
        ("http://localhost.evil.example:7860", False),
        ("http://bench.lan:7860", True),
        ("http://a.gradio.live", True),
    ],
)
def test_only_names_of_this_server_are_answered(base: str, accepted: bool) -> None:
    """DNS rebinding: a foreign name that leads to this machine."""
    site = Site(Visitors(LIMITS["local"]), Hosts(["bench.lan", ".gradio.live"], machine=False))
    answer = site.ask("GET", "/", base)
    assert answer.status_code == (200 if accepted else 421)
    assert accepted or "--allow-host" in answer.json()["detail"]


def test_a_refusal_repeats_no_secret(local: Site) -> None:
    answer = local.ask("GET", "/", headers={"Host": SECRET})
    assert answer.status_code == 421 and "'[redacted]'" in answer.json()["detail"]


@pytest.mark.parametrize("host", ["", "127.0.0.1%.evil.example", "[::1]x", "127.0.0.1, localhost"])
def test_a_host_that_cannot_be_one_is_not_answered(local: Site, host: str) -> None:
    assert local.ask("GET", "/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({}, True),
        ({"Origin": "http://127.0.0.1:7860", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "http://127.0.0.1:8080"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_pages_of_other_sites_send_nothing(local: Site, headers: Mapping[str, str], accepted: bool) -> None:
    assert local.ask("POST", JOIN, headers=headers, json={}).status_code == (200 if accepted else 403)


# --- bodies ---------------------------------------------------------------------------------------


def body_of(size: int) -> bytes:
    return b'{"data":"' + b"x" * (size - 11) + b'"}'


@pytest.mark.parametrize("in_parts", [False, True], ids=["with its length", "in parts"])
@pytest.mark.parametrize("over", [0, 1])
def test_a_body_at_the_limit(in_parts: bool, over: int) -> None:
    site = Site(Visitors(Limits("local", body_bytes=8_000)))
    body = body_of(8_000 + over)

    async def parts() -> AsyncIterator[bytes]:
        for begin in range(0, len(body), 1_000):
            yield body[begin : begin + 1_000]

    answer = site.ask("POST", JOIN, content=parts() if in_parts else body, headers=IS_JSON)
    if over:
        assert answer.status_code == 413 and "8,000 bytes" in answer.json()["detail"]
    else:
        assert answer.status_code == 200 and answer.json()["body"] == body.decode()


def test_a_body_with_two_ends_is_no_body(local: Site) -> None:
    """What follows the first of them could be taken for another visitor's request."""
    answer = local.ask(
        "POST", JOIN, content=b"{}", headers={**IS_JSON, "Transfer-Encoding": "chunked", "Content-Length": "2"}
    )
    assert answer.status_code == 400 and answer.headers["connection"] == "close"


def test_a_body_that_trickles_is_given_up(local: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "WHOLE_BODY_S", 0.2)

    assert finished(trickled(local)) == 408


async def trickled(site: Site) -> int:
    """The status of a request whose body never ends, straight through ASGI."""
    statuses = []

    async def receive() -> Message:
        await asyncio.sleep(0.05)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": JOIN,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
    }
    await asyncio.wait_for(site.gate(scope, receive, send), 5)
    return int(statuses[0])


# --- who ------------------------------------------------------------------------------------------


def attributes_of(answer: httpx.Response) -> set[str]:
    """Of the cookie that an answer sets."""
    return set(answer.headers["set-cookie"].split("; ")[1:])


def owner(site: Site, **more: Any) -> Any:
    return site.ask("POST", JOIN, json={}, **more).json()["owner"]


def test_on_loopback_everybody_is_the_local_user(local: Site) -> None:
    assert owner(local) == LOCAL and "set-cookie" not in local.ask("GET", "/").headers


def test_a_guest_gets_a_cookie_with_the_page_and_keeps_it(public: Site) -> None:
    async def visit() -> list[Any]:
        found = []
        for _ in range(2):
            async with public.client() as client:
                assert {"HttpOnly", "SameSite=lax"} <= attributes_of(await client.get("/"))
                found += [(await client.post(JOIN, json={})).json()["owner"] for _ in range(2)]
                assert "set-cookie" not in (await client.get("/")).headers
        return found

    first, again, second, third = finished(visit())
    assert first == again != second == third and first.startswith("guest:")


def test_a_program_gets_its_cookie_with_the_description_of_the_page(public: Site) -> None:
    """`gradio_client` asks for nothing before, and keeps what it is given there."""
    assert "tokendyno_visitor=" in public.ask("GET", "/config").headers["set-cookie"]
    assert "set-cookie" not in public.ask("GET", "/gradio_api/info").headers


@pytest.mark.parametrize("cookie", ["", "tokendyno_visitor=ada", "other=x"])
def test_without_a_guests_cookie_nothing_is_done(public: Site, cookie: str) -> None:
    answer = public.ask("POST", JOIN, json={}, headers={"Cookie": cookie})
    assert answer.status_code == 401 and "Allow cookies" in answer.json()["detail"]


def test_in_a_frame_of_a_space_the_cookie_is_secure_and_in_a_partition_of_its_own() -> None:
    site = Site(Visitors(LIMITS["public"], framed=True, forwarded=True), Hosts(["a-b.hf.space"], machine=False), True)
    answer = site.ask("GET", "/", "https://a-b.hf.space")
    assert {"HttpOnly", "Secure", "SameSite=none", "Partitioned"} <= attributes_of(answer)
    assert "https://*.hf.space" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("forwarded", "address"),
    [
        (["1.2.3.4, 10.0.0.1"], "1.2.3.4"),
        (["5.6.7.8, 1.2.3.4, 10.0.0.1"], "1.2.3.4"),  # the first was sent by the visitor
        (["2a00:1:2:3:aaaa::1, 10.0.0.1"], "2a00:1:2:3::/64"),
        (["1.2.3.4, [2600:1::1]:443, 10.0.0.1"], "2600:1::/64"),
        ([], "10.0.0.9"),
    ],
)
def test_the_trusted_proxy_says_where_a_request_comes_from_and_nobody_else_does(
    forwarded: list[str], address: str
) -> None:
    """With the first address of the header, one visitor had as many addresses as they liked."""
    headers = [(b"x-forwarded-for", each.encode()) for each in forwarded]
    request = Request({"type": "http", "headers": headers, "client": ("10.0.0.9", 1)})
    assert Visitors(LIMITS["public"], forwarded=True).address(request) == address
    assert Visitors(LIMITS["public"]).address(request) == "10.0.0.9"


@pytest.mark.parametrize("path", ["/config", JOIN])
def test_a_team_is_served_after_the_login_only(team: Site, path: str) -> None:
    method = "POST" if path == JOIN else "GET"
    assert team.ask(method, path).status_code == 401
    page = team.ask("GET", "/?run=abc&at=fit")
    assert page.status_code == 303 and page.headers["location"] == "./login?run=abc&at=fit"
    assert team.ask("GET", "/assets/a.js").status_code == 200


def test_a_login_lasts_until_the_logout(team: Site) -> None:
    async def visit() -> None:
        async with team.client() as client:
            wrong = await client.post("/login", data={"name": "ada", "password": "battery staple"})
            assert (
                wrong.status_code == 401
                and "do not belong together" in wrong.text
                and "set-cookie" not in wrong.headers
            )
            right = await client.post("/login?run=abc", data={"name": "ada", "password": "correct horse"})
            assert right.status_code == 303 and right.headers["location"] == "./?run=abc"
            assert "HttpOnly" in right.headers["set-cookie"]
            assert (await client.post(JOIN, json={})).json()["owner"] == "ada"
            assert (await client.get("/logout")).status_code == 200
            assert (await client.post(JOIN, json={})).status_code == 200, "a link alone logs nobody out"
            cookies = dict(client.cookies)
            assert (await client.post("/logout")).status_code == 303
            assert (await client.post(JOIN, json={})).status_code == 401
        async with team.client(cookies=cookies) as client:
            assert (await client.post(JOIN, json={})).status_code == 401, "the old cookie is worth nothing"

    finished(visit())


def test_a_program_acts_as_the_user_whose_token_it_sends(team: Site) -> None:
    assert isinstance(team.visitors.accounts, Users)
    token = team.visitors.accounts.new_token("bob")
    assert owner(team, headers={"Authorization": f"Bearer {token}"}) == "bob"
    wrong = team.ask("POST", JOIN, json={}, headers={"Authorization": f"Bearer {token}x"})
    assert wrong.status_code == 401 and "token is not known" in wrong.json()["detail"]


@pytest.mark.parametrize("kind", ["password", "token"])
def test_failed_logins_are_throttled(team: Site, kind: str) -> None:
    """Sixty wrong passwords in a tenth of a second were possible."""

    def attempt() -> int:
        if kind == "token":
            return team.ask("POST", JOIN, json={}, headers={"Authorization": "Bearer no"}).status_code
        return team.ask("POST", "/login", data={"name": "ada", "password": "wrong"}).status_code

    most = LIMITS["team"].logins
    assert [attempt() for _ in range(most + 2)] == [401] * most + [429] * 2
    right = team.ask("POST", "/login", data={"name": "ada", "password": "correct horse"})
    assert right.status_code == 429 and "Try again in" in right.text and int(right.headers.get("retry-after", 60)) <= 60


def test_one_account_guards_the_local_users_page() -> None:
    site = Site(Visitors(LIMITS["local"], OneAccount("me", "secret")))

    async def visit() -> Any:
        async with site.client() as client:
            assert (await client.post(JOIN, json={})).status_code == 401
            await client.post("/login", data={"name": "me", "password": "secret"})
            return (await client.post(JOIN, json={})).json()["owner"]

    assert finished(visit()) == LOCAL


def test_a_login_ends_with_its_account(team: Site) -> None:
    """The cookie held the name alone: whoever had it later had the new user's runs open to them."""

    async def visit() -> None:
        async with team.client() as client, team.client() as other:
            await client.post("/login", data={"name": "ada", "password": "correct horse"})
            await other.post("/login", data={"name": "bob", "password": "battery staple"})
            assert isinstance(team.visitors.accounts, Users)
            team.visitors.accounts.new_token("ada")
            assert (await client.get("/config")).status_code == 200, "a further token ends nothing"
            team.visitors.accounts.remove("ada")
            team.visitors.accounts.add("ada", "correct horse")
            assert (await client.get("/config")).status_code == 401
            assert (await other.get("/config")).status_code == 200

    finished(visit())


def test_what_is_typed_into_the_login_stays_text(team: Site) -> None:
    text = '"><img src=x onerror=alert(1)>\r\nSet-Cookie: x=1'
    answer = team.ask("POST", "/login", params={"run": text}, data={"name": text, "password": text})
    assert answer.status_code == 401 and "<img" not in answer.text
    assert "x=1" not in answer.headers.get("set-cookie", "")
    assert team.ask("GET", "/", params={"run": text}).headers["location"].startswith("./login?run=")


# --- the policy -----------------------------------------------------------------------------------


def test_each_page_has_a_nonce_of_its_own_on_all_its_scripts(local: Site) -> None:
    nonces = []
    for page in (local.ask("GET", "/") for _ in range(2)):
        policy = page.headers["content-security-policy"]
        nonces.append(policy.partition("'nonce-")[2].partition("'")[0])
        assert nonces[-1] and page.text.count(f'<script nonce="{nonces[-1]}"') == page.text.count("<script") == 2
        scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
        assert "'unsafe-inline'" not in scripts
    assert nonces[0] != nonces[1]


def test_a_saved_report_is_not_changed_on_its_way() -> None:
    report = HTMLResponse(PAGE, headers={"content-disposition": "attachment"})
    answer = Site(Visitors(LIMITS["local"]), app=report).ask("GET", "/")
    assert answer.content == PAGE and "script-src 'self'" in answer.headers["content-security-policy"]


def test_a_visitor_is_never_assumed() -> None:
    """A handler that is called past the gate fails, instead of acting as the local user."""
    bare = Request({"type": "http", "headers": []})
    with pytest.raises(LookupError, match="past the gate"):
        visitor_of(gr.Request(bare))
    known = Request({"type": "http", "headers": [], KEY: Visitor("ada")})
    assert visitor_of(gr.Request(known)).owner == "ada"
