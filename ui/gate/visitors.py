"""Who sends a request: the local user, a guest by cookie, a user by login, or a program by token."""

import hashlib
import ipaddress
import re
import secrets
import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from backend.hosting.limits import Limits
from backend.hosting.throttle import Throttle
from backend.hosting.users import Accounts
from backend.hosting.visitor import LOCAL, Visitor, counted_address, guest, new_cookie
from ui.gate.asgi import Header, Refused, Scope, cookies, header, set_cookie

GUEST_COOKIE = "tokendyno_visitor"
LOGIN_COOKIE = "tokendyno_login"
GUEST_S = 180 * 86_400
LOGIN_S = 7 * 86_400
MAX_LOGINS = 2_000
NAME_SHARE = 10
"""How many times as many failures a user name may have as an address: against guesses from many addresses, but not so
few that somebody else could keep the user out by failing from one."""


_HOP = re.compile(r"\[(.+)\](?::\d+)?|([^:]+):\d+")
"""An address in brackets, or with a port."""


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

    @property
    def must_log_in(self) -> bool:
        """Whether nobody gets in without an account."""
        return self.limits.login or self.accounts is not None

    def address(self, scope: Scope) -> str:
        """Where a request comes from, as it is counted."""
        peer = scope["client"][0] if scope.get("client") else ""
        return counted_address((self._forwarded and _forwarded_for(scope)) or peer)

    def find(self, scope: Scope) -> Visitor | None:
        """Who sends this request; None for somebody who has still to log in or to take a cookie. Refused for a wrong
        token."""
        address, given = self.address(scope), cookies(scope)
        if not self.must_log_in:
            if self.limits.mode == "local":
                return Visitor(LOCAL)
            owner = guest(given.get(GUEST_COOKIE, ""))
            return Visitor(owner, address) if owner else None
        name = self._of_token(scope, address) or self._of_login(given.get(LOGIN_COOKIE, ""))
        if name is None:
            return None
        return Visitor(LOCAL if self.limits.mode == "local" else name, address)

    def new_guest(self, scope: Scope) -> tuple[Visitor, Header]:
        """A guest who has just arrived, and the cookie to be set."""
        value = new_cookie()
        owner = guest(value)
        assert owner is not None
        return Visitor(owner, self.address(scope)), self._cookie(scope, GUEST_COOKIE, value, GUEST_S)

    # --- logins -----------------------------------------------------------------------------------

    def log_in(self, scope: Scope, name: str, password: str) -> Header | None:
        """The cookie of a login; None for a wrong password. Refused where there were too many wrong ones. It takes
        about 50 ms of a core: call it from a thread."""
        assert self.accounts is not None
        counted = [(self._by_address, self.address(scope)), (self._by_name, name[:64])]
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
        return self._cookie(scope, LOGIN_COOKIE, value, LOGIN_S)

    def log_out(self, scope: Scope) -> Header:
        """End the login of this request; the header deletes its cookie."""
        with self._lock:
            self._logins.pop(_hash(cookies(scope).get(LOGIN_COOKIE, "")), None)
        return self._cookie(scope, LOGIN_COOKIE, "", 0)

    def _of_login(self, value: str) -> str | None:
        with self._lock:
            login = self._logins.get(_hash(value))
        if login is None or self.accounts is None or login.until_s <= time.monotonic():
            return None
        return login.name if self.accounts.entry(login.name) == login.entry else None

    def _of_token(self, scope: Scope, address: str) -> str | None:
        kind, _, token = header(scope, b"authorization").partition(" ")
        if kind.lower() != "bearer" or self.accounts is None:
            return None
        _check_failures([(self._by_address, address)])
        name = self.accounts.of_token(token.strip())
        if name is None:
            self._by_address.take(address)
            raise Refused(401, "This token is not known. Make one with: tokendyno users token NAME.")
        return name

    def _cookie(self, scope: Scope, name: str, value: str, max_age_s: int) -> Header:
        return set_cookie(name, value, max_age_s, framed=self.framed, secure=scope.get("scheme") == "https")


def _forwarded_for(scope: Scope) -> str:
    """The address from which the trusted proxy was reached; "" where it names none. Each proxy adds at the end of
    X-Forwarded-For who asked it, and a visitor may send a beginning of any kind. Addresses of private networks at the
    end are further proxies of the same host, so it is the last that is none of these."""
    values = b",".join(value for key, value in scope["headers"] if key == b"x-forwarded-for")
    hops = list(filter(None, map(_without_port, values.decode("latin-1").split(","))))
    return next(filter(_is_no_proxy, reversed(hops)), hops[-1] if hops else "")


def _without_port(hop: str) -> str:
    found = _HOP.fullmatch(hop.strip())
    return (found[1] or found[2]) if found else hop.strip()


def _is_no_proxy(hop: str) -> bool:
    try:
        return ipaddress.ip_address(hop).is_global
    except ValueError:
        return True


def _check_failures(counted: list[tuple[Throttle, str]]) -> None:
    wait_s = max(throttle.wait_s(key) for throttle, key in counted)
    if wait_s > 0:
        seconds = int(wait_s) + 1
        wait = [(b"retry-after", str(seconds).encode())]
        raise Refused(429, f"Too many failed logins. Try again in {seconds} s.", wait)


def _hash(value: str) -> str:
    return hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
