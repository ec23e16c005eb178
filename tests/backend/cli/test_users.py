"""`tokendyno users`: what it adds can log in, and what it prints as a token is one."""

import io
from pathlib import Path

import pytest

from tokendyno.backend.cli.main import main
from tokendyno.backend.hosting.users import Users


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKENDYNO_USERS", str(tmp_path / "users.json"))
    return tmp_path / "users.json"


def users(monkeypatch: pytest.MonkeyPatch, *words: str, typed: str = "") -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    return main(["users", *words])


def test_a_user_is_added_gets_a_token_and_is_removed(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = Users(path)
    assert users(monkeypatch, "add", "ada", typed="correct horse\n") == 0
    assert accounts.password_is("ada", "correct horse") and not accounts.password_is("ada", "correct horse\n")
    capsys.readouterr()
    assert users(monkeypatch, "token", "ada") == 0
    printed = capsys.readouterr()
    assert accounts.of_token(printed.out.strip()) == "ada" and "only once" in printed.err
    assert users(monkeypatch, "list") == 0 and capsys.readouterr().out == "ada\n"
    assert users(monkeypatch, "revoke", "ada") == 0 and accounts.of_token(printed.out.strip()) is None
    assert users(monkeypatch, "remove", "ada") == 0 and accounts.names() == []


@pytest.mark.parametrize(
    ("words", "typed", "says"),
    [
        (["add"], "", "Whose?"),
        (["list", "ada"], "", "takes no name"),
        (["add", "ada"], "short\n", "8 to 256 characters"),
        (["add", "ada"], "x" * 1_000, "8 to 256 characters"),
        (["add", "guest:ada"], "correct horse\n", "letters, digits"),
        (["token", "bob"], "", "There is no user 'bob'"),
        (["rename", "bob"], "", "invalid choice"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    typed: str,
    says: str,
) -> None:
    assert users(monkeypatch, *words, typed=typed) == 2
    assert says in capsys.readouterr().err and not path.exists()
