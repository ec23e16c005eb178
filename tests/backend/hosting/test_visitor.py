"""Identities: a guest is known by a cookie that nothing stored can be turned back into."""

import pytest

from tokendyno.backend.hosting.visitor import GUEST, Visitor, counted_address, guest, new_cookie


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


@pytest.mark.parametrize(
    ("address", "counts_as"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:DB8:1:2::", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:1.2.3.4", "1.2.3.4"),
        ("", ""),
        ("no address", "no address"),
        ("x" * 65, "x" * 64),
    ],
)
def test_an_address_counts_as_what_one_customer_of_a_network_is_given(address: str, counts_as: str) -> None:
    """With each address of a /64 as one of its own, an IPv6 visitor had 2^64 times what one address may have."""
    assert counted_address(address) == counts_as
