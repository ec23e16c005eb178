"""The file of users: nothing in it lets anybody in, and what it says holds at once."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from tests.support.processes import with_path
from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting import users as module
from tokendyno.backend.hosting.users import MAX_PASSWORD, MAX_TOKENS, MIN_PASSWORD, Users
from tokendyno.backend.paths import ROOT

SECRET = "correct horse battery"

ADD = """
import sys
from pathlib import Path
from tokendyno.backend.hosting.users import Users
users, letter = Users(Path(sys.argv[1])), sys.argv[2]
print("ready", flush=True)
sys.stdin.readline()
for number in range(6):
    users.add(f"{letter}{number}", "correct horse battery")
    users.new_token(f"{letter}0")
"""


def test_only_the_password_lets_a_user_in_and_the_file_does_not_hold_it(tmp_path: Path) -> None:
    users = Users(tmp_path / "people" / "users.json")
    users.add("ada", SECRET)
    assert users.password_is("ada", SECRET)
    for name, password in [("ada", SECRET[:-1]), ("ada", ""), ("bob", SECRET), ("", SECRET), ("ADA", SECRET)]:
        assert not users.password_is(name, password)
    text = users.path.read_text()
    assert SECRET not in text and stat.S_IMODE(users.path.stat().st_mode) == 0o600
    users.add("ada", "another password")
    assert not users.password_is("ada", SECRET) and users.password_is("ada", "another password")


def test_a_change_by_another_process_holds_at_once(tmp_path: Path) -> None:
    serving, editing = Users(tmp_path / "users.json"), Users(tmp_path / "users.json")
    assert serving.names() == []
    editing.add("ada", SECRET)
    token = editing.new_token("ada")
    assert serving.names() == ["ada"] and serving.password_is("ada", SECRET) and serving.of_token(token) == "ada"
    assert editing.revoke("ada") == 1
    assert serving.of_token(token) is None and serving.password_is("ada", SECRET)
    editing.remove("ada")
    assert serving.names() == [] and not serving.password_is("ada", SECRET)


def test_no_change_of_two_processes_at_once_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "users.json"
    (tmp_path / "link.json").symlink_to(path)
    env = {**os.environ, "PYTHONPATH": with_path(ROOT)}
    adding = [
        subprocess.Popen(
            [sys.executable, "-c", ADD, str(tmp_path / name), letter],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name, letter in (("users.json", "a"), ("link.json", "b"))
    ]
    for process in adding:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in adding:  # not one after the other
        assert process.stdin is not None
        process.stdin.close()
    for process in adding:
        process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()
    assert [process.returncode for process in adding] == [0, 0]
    found = Users(path)
    assert found.names() == [f"{letter}{number}" for letter in "ab" for number in range(6)]
    assert [len(found._current()[name].tokens) for name in ("a0", "b0")] == [6, 6]
    assert stat.S_IMODE((tmp_path / "users.json.lock").stat().st_mode) == 0o600


def test_a_change_that_waits_too_long_says_for_what_and_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = Users(tmp_path / "users.json")
    users.add("ada", SECRET)
    monkeypatch.setattr(module, "LOCK_WAIT_S", 0.05)
    with FileLock(f"{users.path}.lock"):
        with pytest.raises(InputError, match="another process has been changing it"):
            users.remove("ada")
        assert users.password_is("ada", SECRET), "who logs in does not wait"
    users.remove("ada")
    assert users.names() == []


def test_a_token_is_of_one_user_and_is_not_in_the_file(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    users.add("ada", SECRET)
    users.add("bob", SECRET)
    tokens = {users.new_token("ada"): "ada", users.new_token("bob"): "bob", users.new_token("ada"): "ada"}
    assert {token: users.of_token(token) for token in tokens} == tokens
    assert users.of_token("") is None and not any(token in users.path.read_text() for token in tokens)
    users.add("ada", "another password")
    assert {token: users.of_token(token) for token in tokens} == tokens


@pytest.mark.parametrize("name", ["", ".ada", "guest:1", "a" * 65, "ada\n", "ä", "a/b"])
def test_a_name_that_could_be_another_owner_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="letters, digits"):
        Users(tmp_path / "users.json").add(name, SECRET)


def test_lengths_of_passwords_at_the_edge(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    for length, accepted in ((MIN_PASSWORD - 1, False), (MIN_PASSWORD, True), (MAX_PASSWORD, True), (257, False)):
        if accepted:
            users.add("ada", "x" * length)
            continue
        with pytest.raises(InputError, match="8 to 256 characters"):
            users.add("ada", "x" * length)


def test_tokens_are_bounded(tmp_path: Path) -> None:
    users = Users(tmp_path / "users.json")
    users.add("ada", SECRET)
    for _ in range(MAX_TOKENS):
        users.new_token("ada")
    with pytest.raises(InputError, match="Revoke"):
        users.new_token("ada")


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b'{"users": {"ada": {}}}', b'{"more": 1}', b"\xff" * 100, b'{"users": {"ada": {"password": "x"}}}'],
)
def test_a_damaged_file_lets_nobody_in_and_says_so(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "users.json").write_bytes(data)
    users = Users(tmp_path / "users.json")
    for asked in (users.names, lambda: users.password_is("ada", SECRET), lambda: users.of_token("x")):
        with pytest.raises(InputError, match="cannot be read"):
            asked()
