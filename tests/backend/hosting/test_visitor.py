"""Identities: a guest is known by a cookie that nothing stored can be turned back into."""

import pytest

from backend.hosting.visitor import GUEST, Visitor, guest, new_cookie


def test_a_cookie_always_means_the_same_guest_and_is_in_no_owner() -> None:
    first, second = new_cookie(), new_cookie()
    owner = guest(first)
    assert owner is not None and owner == guest(first) != guest(second)
    assert owner.startswith(GUEST) and first not in owner


@pytest.mark.parametrize("text", ["", "ada", "a" * 42, "a" * 44, "a" * 42 + "\n", "a" * 42 + "é", "guest:" + "a" * 37])
def test_what_is_no_cookie_is_nobody(text: str) -> None:
    assert guest(text) is None


def test_a_user_has_a_name_and_a_guest_has_none() -> None:
    assert Visitor("ada").name == "ada" and Visitor(guest(new_cookie()) or "").name == ""
