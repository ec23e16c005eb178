"""Who asks: the local user, somebody who logged in or sent a token, or a guest known by a random cookie.

Runs belong to an owner, a text that is stored with them. No owner is a secret: a guest's is a hash of the cookie, so
that neither the history nor a log can be used to become that guest."""

import hashlib
import ipaddress
import re
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass

LOCAL = ""
"""The owner of what the command line runs, and of everything in mode local."""

GUEST = "guest:"
"""Prefix of a guest's owner. A user's name has no colon, so that the two cannot be mistaken for each other."""

COOKIE = re.compile(r"[A-Za-z0-9_-]{43}")
"""A guest's cookie: 32 random bytes in URL-safe Base64."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks.

    address  where the request came from, for limits that a new cookie must not reset; "" where it is not counted
    """

    owner: str
    address: str = ""

    @property
    def name(self) -> str:
        """What a page may show: the user's name, "" for the local user and for guests."""
        return "" if self.owner.startswith(GUEST) else self.owner


LOCAL_USER = Visitor(LOCAL)


def counted_address(text: str) -> str:
    """What a network address counts as: of IPv6 its /64, which one customer is given; any other text as it is."""
    try:
        address = ipaddress.ip_address(text.strip())
    except ValueError:
        return text[:64]
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), 64), strict=False))


def new_cookie() -> str:
    """The cookie of a new guest."""
    return secrets.token_urlsafe(32)


def guest(cookie: str) -> str | None:
    """The owner of a guest's runs; None for what is no cookie of ours."""
    if not COOKIE.fullmatch(cookie):
        return None
    return GUEST + hashlib.sha256(cookie.encode()).hexdigest()[:32]


# --- failed attempts -----------------------------------------------------------------------------

MAX_KEYS = 4_096


class Throttle:
    """At most `most` failures of a key in `per_s` seconds. Of `MAX_KEYS` keys: the oldest are forgotten first."""

    def __init__(self, most: int, per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._per_s, self._clock = most, per_s, clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait_s(self, key: str) -> float:
        """Seconds until this key may try again; 0: now."""
        with self._lock:
            failures = self._recent(key)
            return failures[0] + self._per_s - self._clock() if len(failures) >= self._most else 0.0

    def take(self, key: str) -> None:
        """Count an attempt of this key, before it is known to fail: attempts at the same time count as well."""
        with self._lock:
            failures = self._recent(key)
            failures.append(self._clock())
            self._failures[key] = failures
            self._failures.move_to_end(key)
            while len(self._failures) > MAX_KEYS:
                self._failures.popitem(last=False)

    def give_back(self, key: str) -> None:
        """This key's last attempt succeeded: it does not count, those before it still do."""
        with self._lock:
            failures = self._recent(key)
            if failures:
                failures.pop()

    def _recent(self, key: str) -> deque[float]:
        failures = self._failures.get(key, deque())
        while failures and failures[0] <= self._clock() - self._per_s:
            failures.popleft()
        return failures
