"""The file of users: names, hashed passwords, and hashed tokens for programs.

A password is kept as scrypt (RFC 7914) of it with a salt of its own; a token is 32 random bytes, so that a plain
SHA-256 of it is enough. The file is read again when it changes, so that a user who was added can log in at once.
"""

import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol

import msgspec
from msgspec.structs import replace

from tokendyno.backend.errors import UNDECODABLE, InputError
from tokendyno.backend.files.whole import PRIVATE, write_whole
from tokendyno.backend.redact import error_text

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""A user's name. It has no colon, which sets guests apart, and is not empty, which the local user's is."""

MIN_PASSWORD = 8
MAX_PASSWORD = 256
MAX_TOKENS = 16

LOCK_WAIT_S = 10.0
"""How long a change waits for one by another process."""

COST, BLOCK, LANES = 1 << 14, 8, 1
"""Parameters of scrypt: 16 MiB and about 50 ms for each attempt."""


class UserEntry(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One user. `password`: salt and scrypt of it in hex, with a colon between; `tokens`: SHA-256 of each in hex;
    `revoked`: how often tokens and logins were revoked."""

    password: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}:[0-9a-f]{64}\Z")]
    tokens: list[str] = []
    revoked: int = 0


class _File(msgspec.Struct, forbid_unknown_fields=True):
    users: dict[Annotated[str, msgspec.Meta(pattern=rf"^{NAME.pattern}\Z")], UserEntry] = {}


class Accounts(Protocol):
    """Who may log in, and with what."""

    def password_is(self, name: str, password: str) -> bool: ...
    def of_token(self, token: str) -> str | None: ...
    def names(self) -> list[str]: ...
    def entry(self, name: str) -> str | None:
        """What a login is bound to, None for nobody: another text once the password, or the user, is another."""
        ...


class OneAccount:
    """The one account that was named with --auth. InputError if it cannot be one."""

    def __init__(self, name: str, password: str) -> None:
        check_account(name, password, shortest=1)
        self._name, self._salt = name, secrets.token_bytes(16)
        self._hash = _scrypt(password, self._salt)

    def names(self) -> list[str]:
        return [self._name]

    def entry(self, name: str) -> str | None:
        return self._hash.hex() if name == self._name else None

    def password_is(self, name: str, password: str) -> bool:
        same = hmac.compare_digest(_scrypt(password[: MAX_PASSWORD + 1], self._salt), self._hash)
        return same and name == self._name

    def of_token(self, token: str) -> str | None:
        return None


class Users:
    """The users of one file. Any thread may ask; changes are for the command line, of any number of processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._read_at: tuple[int, int, int] | None = None
        self._users: dict[str, UserEntry] = {}

    def names(self) -> list[str]:
        """Who may log in, sorted. InputError if the file cannot be read."""
        return sorted(self._current())

    def entry(self, name: str) -> str | None:
        entry = self._current().get(name)
        return None if entry is None else f"{entry.password}:{entry.revoked}"

    def password_is(self, name: str, password: str) -> bool:
        """Whether a user has this password. It takes as long for an unknown name as for a known one."""
        entry = self._current().get(name)
        salt, _, expected = (entry.password if entry else f"{'00' * 16}:{'00' * 32}").partition(":")
        hashed = _scrypt(password[: MAX_PASSWORD + 1], bytes.fromhex(salt))
        return hmac.compare_digest(hashed, bytes.fromhex(expected)) and entry is not None

    def of_token(self, token: str) -> str | None:
        """The user who has this token, or None."""
        hashed = _sha256(token)
        for name, entry in self._current().items():
            if any(hmac.compare_digest(hashed, known) for known in entry.tokens):
                return name
        return None

    # --- changes ----------------------------------------------------------------------------------

    def add(self, name: str, password: str) -> None:
        """Add a user, or give one another password. InputError for a name or a password that cannot be."""
        check_account(name, password)
        with self._changed() as users:
            salt = secrets.token_bytes(16)
            known = users.get(name, UserEntry(""))
            users[name] = replace(known, password=f"{salt.hex()}:{_scrypt(password, salt).hex()}")

    def remove(self, name: str) -> None:
        """Remove a user and the user's tokens. InputError if there is none."""
        with self._changed() as users:
            self._known(users, name)
            del users[name]

    def new_token(self, name: str) -> str:
        """A further token for a user's programs; it is returned once and kept as a hash only."""
        token = secrets.token_urlsafe(32)
        with self._changed() as users:
            entry = self._known(users, name)
            if len(entry.tokens) >= MAX_TOKENS:
                raise InputError(f"{name} has {MAX_TOKENS} tokens already. Revoke them first: tokendyno users revoke.")
            users[name] = replace(entry, tokens=[*entry.tokens, _sha256(token)])
        return token

    def revoke(self, name: str) -> int:
        """Revoke all tokens of a user and end every login; returns how many tokens there were."""
        with self._changed() as users:
            entry = self._known(users, name)
            users[name] = replace(entry, tokens=[], revoked=entry.revoked + 1)
        return len(entry.tokens)

    # --- the file ---------------------------------------------------------------------------------

    def _known(self, users: dict[str, UserEntry], name: str) -> UserEntry:
        if name not in users:
            raise InputError(f"There is no user {name[:64]!r} in {self.path}. Add one with: tokendyno users add NAME.")
        return users[name]

    def _current(self) -> dict[str, UserEntry]:
        with self._lock:
            try:
                stat = self.path.stat()
                read_at = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                if read_at != self._read_at:
                    self._users, self._read_at = self._read(), read_at
            except FileNotFoundError:
                self._users, self._read_at = {}, None
            except OSError as error:
                raise self._unreadable(error.strerror or str(error)) from error
            return self._users

    def _read(self) -> dict[str, UserEntry]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=_File).users
        except UNDECODABLE as error:
            raise self._unreadable(error_text(error)) from error

    def _unreadable(self, why: str) -> InputError:
        return InputError(f"The file of users {self.path} cannot be read ({why}). Repair it, or move it away.")

    @contextmanager
    def _changed(self) -> Iterator[dict[str, UserEntry]]:
        """The users, to be changed within it, while others wait: then the file is replaced in one step."""
        from filelock import FileLock  # with asyncio; the page, which changes nothing, starts without it

        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # a file of its own, since each change replaces the other one; the lock ends with its process
            lock = f"{os.path.realpath(self.path)}.lock"
            with FileLock(lock, timeout=LOCK_WAIT_S, mode=PRIVATE):
                users = dict(self._current())
                yield users
                write_whole(self.path, msgspec.json.format(msgspec.json.encode(_File(users)), indent=1), PRIVATE)
        except TimeoutError as error:
            raise InputError(
                f"The file of users {self.path} cannot be changed now: another process has been changing it for "
                f"{LOCK_WAIT_S:.0f} s. Wait for that process, or end it."
            ) from error
        except OSError as error:
            raise InputError(
                f"The file of users {self.path} cannot be written ({error.strerror}). Name another with --users."
            ) from error


def check_account(name: str, password: str, shortest: int = MIN_PASSWORD) -> None:
    """InputError for a name or a password that cannot be."""
    if not NAME.fullmatch(name):
        raise InputError(f"A user's name has 1 to 64 letters, digits, dots, dashes and underscores, not {name[:64]!r}.")
    if not shortest <= len(password) <= MAX_PASSWORD:
        raise InputError(f"A password has {shortest} to {MAX_PASSWORD} characters. Choose another.")


def _scrypt(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(
        password.encode("utf-8", "surrogatepass"), salt=salt, n=COST, r=BLOCK, p=LANES, maxmem=64 << 20, dklen=32
    )


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
