"""Who sends a request: the local user, a guest by cookie, a user by login, or a program by token; and the page on which
users log in, a form that works without a script."""

import asyncio
import hashlib
import html
import ipaddress
import secrets
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.hosting.users import Accounts
from tokendyno.backend.hosting.visitor import LOCAL, Throttle, Visitor, counted_address, guest, new_cookie
from tokendyno.ui.gate.routes import is_address, without_port

GUEST_COOKIE = "tokendyno_visitor"
LOGIN_COOKIE = "tokendyno_login"
GUEST_S = 180 * 86_400
LOGIN_S = 7 * 86_400
MAX_LOGINS = 2_000
NAME_SHARE = 10
"""How many times as many failures a user name may have as an address: against guesses from many addresses, but not so
few that somebody else could keep the user out by failing from one."""

HASHING = 2
"""Passwords that are hashed at a time, each with 16 MiB; further ones wait."""


class _Login(NamedTuple):
    """Who logged in, by which entry of the file of users, and until when."""

    name: str
    entry: str
    until_s: float


class Visitors:
    """Tells visitors apart. `framed`: the page is shown in a frame of another site; `forwarded`: a proxy that is
    trusted says where requests come from."""

    def __init__(
        self, limits: Limits, accounts: Accounts | None = None, framed: bool = False, forwarded: bool = False
    ) -> None:
        self.limits, self.accounts, self.framed, self._forwarded = limits, accounts, framed, forwarded
        self._by_address = Throttle(limits.logins, limits.logins_per_s)
        self._by_name = Throttle(limits.logins * NAME_SHARE, limits.logins_per_s)
        self._logins: OrderedDict[str, _Login] = OrderedDict()
        self._lock = threading.Lock()
        self._hashing = asyncio.Semaphore(HASHING)

    @property
    def must_log_in(self) -> bool:
        """Whether nobody gets in without an account."""
        return self.limits.login or self.accounts is not None

    def address(self, request: Request) -> str:
        """Where a request comes from, as it is counted."""
        peer = request.client.host if request.client else ""
        return counted_address((self._forwarded and _forwarded_for(request)) or peer)

    def find(self, request: Request) -> Visitor | None:
        """Who sends this request; None before a login or a cookie. HTTPException for a wrong token."""
        address = self.address(request)
        if not self.must_log_in:
            if self.limits.mode == "local":
                return Visitor(LOCAL)
            owner = guest(request.cookies.get(GUEST_COOKIE, ""))
            return Visitor(owner, address) if owner else None
        name = self._of_token(request, address) or self._of_login(request)
        if name is None:
            return None
        return Visitor(LOCAL if self.limits.mode == "local" else name, address)

    def new_guest(self, request: Request) -> tuple[Visitor, str]:
        """A guest who has just arrived, and the cookie to be set."""
        value = new_cookie()
        owner = guest(value)
        assert owner is not None
        return Visitor(owner, self.address(request)), self._cookie(request, GUEST_COOKIE, value, GUEST_S)

    def _of_login(self, request: Request) -> str | None:
        with self._lock:
            login = self._logins.get(_hash(request.cookies.get(LOGIN_COOKIE, "")))
        if login is None or self.accounts is None or login.until_s <= time.monotonic():
            return None
        return login.name if self.accounts.entry(login.name) == login.entry else None

    def _of_token(self, request: Request, address: str) -> str | None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or self.accounts is None:
            return None
        _check_failures([(self._by_address, address)])
        name = self.accounts.of_token(token.strip())
        if name is None:
            self._by_address.take(address)
            raise HTTPException(401, "This token is not known. Make one with: tokendyno users token NAME.")
        return name

    def _cookie(self, request: Request, name: str, value: str, max_age_s: int) -> str:
        """A cookie that no script can read. In a frame of another site, as on a Space, only a secure cookie in a
        partition of its own is kept (`set_cookie` knows partitions from Python 3.14 on)."""
        response, secure = Response(), self.framed or request.scope.get("scheme") == "https"
        site = "none" if self.framed else "lax"
        response.set_cookie(name, value, max_age_s, secure=secure, httponly=True, samesite=site)  # type: ignore[arg-type]
        return response.headers["set-cookie"] + "; Partitioned" * self.framed

    # --- logins -----------------------------------------------------------------------------------

    async def login(self, request: Request) -> Response:
        """The answer to a request for the login page, or to the form that is sent from it."""
        if request.method != "POST":
            return _page(request, "Log in to see and start runs.", _FIELDS)
        form = await request.form(max_files=0, max_fields=16)
        status, alert = 401, "This user name and password do not belong together. Try again."
        try:
            async with self._hashing:
                name, password = str(form.get("name", "")), str(form.get("password", ""))
                value = await asyncio.to_thread(self._log_in, self.address(request), name, password)
            if value is not None:
                response = go("/", request)
                response.headers.append("set-cookie", self._cookie(request, LOGIN_COOKIE, value, LOGIN_S))
                return response
        except HTTPException as refused:
            status, alert = refused.status_code, refused.detail
        return _page(request, "Log in to see and start runs.", _FIELDS, alert, status)

    async def logout(self, request: Request) -> Response:
        """A page with a button that ends a login, which a link alone must not, or what the button does."""
        if request.method == "POST":
            with self._lock:
                self._logins.pop(_hash(request.cookies.get(LOGIN_COOKIE, "")), None)
            response = go("/login")
            response.headers.append("set-cookie", self._cookie(request, LOGIN_COOKIE, "", 0))
            return response
        visitor = self.find(request)
        if visitor is None:
            return go("/login")
        lead = f"You are logged in as {visitor.name}." if visitor.name else "You are logged in."
        return _page(request, lead, "<button>Log out</button>")

    def _log_in(self, address: str, name: str, password: str) -> str | None:
        """The value of a new login's cookie; None for a wrong password. HTTPException after too many."""
        assert self.accounts is not None
        counted = [(self._by_address, address), (self._by_name, name[:64])]
        _check_failures(counted)
        for throttle, key in counted:
            throttle.take(key)
        entry = self.accounts.entry(name)
        if entry is None or not self.accounts.password_is(name, password):
            return None
        for throttle, key in counted:
            throttle.give_back(key)
        value = secrets.token_urlsafe(32)
        with self._lock:
            self._logins[_hash(value)] = _Login(name, entry, time.monotonic() + LOGIN_S)
            while len(self._logins) > MAX_LOGINS:
                self._logins.popitem(last=False)
        return value


def _forwarded_for(request: Request) -> str:
    """The address from which the trusted proxy was reached; "" where it names none. Each proxy adds at the end of
    X-Forwarded-For who asked it, and a visitor may send a beginning of any kind. Addresses of private networks at the
    end are further proxies of the same host, so it is the last that is none of these."""
    entries = ",".join(request.headers.getlist("x-forwarded-for")).split(",")
    hops = [without_port(hop.strip()) for hop in entries if hop.strip()]
    public = [hop for hop in hops if not is_address(hop) or ipaddress.ip_address(hop).is_global]
    return (public or hops or [""])[-1]


def _check_failures(counted: list[tuple[Throttle, str]]) -> None:
    wait_s = max(throttle.wait_s(key) for throttle, key in counted)
    if wait_s > 0:
        seconds = int(wait_s) + 1
        sentence = f"Too many failed logins. Try again in {seconds} s."
        raise HTTPException(429, sentence, {"Retry-After": str(seconds)})


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()


# --- pages ----------------------------------------------------------------------------------------

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tokendyno: log in</title>
<style nonce="{nonce}">
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; }}
main {{ width: min(22rem, calc(100vw - 3rem)); }}
h1 {{ font-size: 1.4rem; margin: 0; }}
p {{ margin: 0 0 1.25rem; opacity: .75; }}
label {{ display: block; margin-top: .9rem; font-size: .875rem; }}
input, button {{ box-sizing: border-box; width: 100%; min-height: 2.75rem; font: inherit; border-radius: .375rem; }}
input {{ padding: 0 .75rem; border: 1px solid #8886; background: Field; color: FieldText; }}
button {{ margin-top: 1.4rem; border: 0; background: #3156a3; color: #fff; font-weight: 600; cursor: pointer; }}
:focus-visible {{ outline: 3px solid #4269d0; outline-offset: 2px; }}
[role=alert] {{ margin: 1rem 0 0; opacity: 1; color: light-dark(#a8201a, #ff8f85); }}
</style></head><body><main>
<h1>tokendyno</h1><p>{lead}</p>
<form method="post" action="{action}">{fields}</form>
{alert}</main></body></html>
"""

_FIELDS = """
<label for="name">User</label>
<input id="name" name="name" autocomplete="username" required maxlength="64" autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required maxlength="256">
<button>Log in</button>
"""


def _page(request: Request, lead: str, fields: str, alert: str = "", status: int = 200) -> Response:
    """A page whose form is sent to its own address."""
    nonce = secrets.token_urlsafe(16)
    policy = (
        f"default-src 'none'; style-src 'nonce-{nonce}'; form-action 'self'; base-uri 'none'; frame-ancestors 'self'"
    )
    action = with_query(request.scope["path"].removeprefix("/"), request)
    alert_html = f'<p role="alert">{html.escape(alert)}</p>' if alert else ""
    text = _PAGE.format(
        nonce=nonce, lead=html.escape(lead), action=html.escape(action), fields=fields, alert=alert_html
    )
    return HTMLResponse(text, status, {"content-security-policy": policy})


def with_query(path: str, request: Request | None) -> str:
    """A path with the query of the page, which is kept over a login: the run or the page to be shown, its settings."""
    query = str(request.query_params) if request else ""
    return f"{path}?{query}" if query else path


def go(path: str, request: Request | None = None) -> Response:
    """Redirect, relative to the present address, for proxies' sub-paths. `request`: whose query is kept."""
    return RedirectResponse(with_query(f".{path}", request), 303)
