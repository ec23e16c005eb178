"""The table of limits: local allows everything, public the least, and the documentation repeats it."""

from dataclasses import fields

import pytest

from tokendyno.backend.errors import InputError
from tokendyno.backend.hosting.limits import LIMITS, Limits, limits_of


def test_each_mode_allows_no_more_than_the_one_before() -> None:
    def allowed(value: object) -> float:
        return float("inf") if value is None else float(value)  # type: ignore[arg-type]

    local, team, public, show = LIMITS.values()
    names = [f.name for f in fields(Limits) if f.name not in ("mode", "login", "kernels", "models")]
    names = [name for name in names if name not in ("sessions", "queued_runs")]  # there are more people
    for wider, narrower in ((local, team), (team, public), (public, show)):
        assert all(allowed(getattr(wider, name)) >= allowed(getattr(narrower, name)) for name in names)


def test_public_bounds_everything_that_a_visitor_can_ask_for() -> None:
    assert [f.name for f in fields(Limits) if getattr(LIMITS["public"], f.name) is None] == []


def test_a_mode_is_named_and_lists_are_kept() -> None:
    limits = limits_of("public", ("pocket",), ("a/b",))
    assert (limits.mode, limits.models, limits.kernels) == ("public", ("pocket",), ("a/b",))
    with pytest.raises(InputError, match=r"Unknown mode 'pubic'\. Did you mean 'public'"):
        limits_of("pubic")
