"""Failures are counted over a sliding time, by key, in bounded memory."""

from tokendyno.backend.hosting import throttle
from tokendyno.backend.hosting.throttle import Throttle


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
    for number in range(throttle.MAX_KEYS + 10):
        door.take(str(number))
    assert len(door._failures) == throttle.MAX_KEYS and door.wait_s("0") == 0.0 and door.wait_s("20") > 0
