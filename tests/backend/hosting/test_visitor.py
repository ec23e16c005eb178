"""Identities: a guest is known by a cookie that nothing stored can be turned back into."""

import pytest

from tokendyno.backend.hosting import visitor
from tokendyno.backend.hosting.visitor import GUEST, Throttle, Visitor, counted_address, guest, new_cookie


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


def test_a_key_waits_after_its_last_allowed_failure_and_may_try_again_when_the_first_is_old() -> None:
    now = [100.0]
    door = Throttle(3, 60.0, lambda: now[0])
    for _ in range(3):
        assert door.wait_s("ada") == 0.0
        door.take("ada")
        now[0] += 10
    assert door.wait_s("ada") == 30.0 and door.wait_s("bob") == 0.0
    now[0] += 30
    assert door.wait_s("ada") == 0.0


def test_success_does_not_count_and_does_not_clear_what_failed_before() -> None:
    door = Throttle(2, 60.0)
    door.take("ada")
    for _ in range(5):
        assert door.wait_s("ada") == 0.0
        door.take("ada")
        door.give_back("ada")
    door.take("ada")
    assert door.wait_s("ada") > 0


def test_keys_are_bounded() -> None:
    door = Throttle(1, 60.0)
    for number in range(visitor.MAX_KEYS + 10):
        door.take(str(number))
    assert len(door._failures) == visitor.MAX_KEYS and door.wait_s("0") == 0.0 and door.wait_s("20") > 0
