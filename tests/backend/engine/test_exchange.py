"""Deadlines: one for each phase, and one variable that overrides them all."""

from typing import get_args

import pytest

from tokendyno.backend.engine.exchange import DEADLINE_S, Deadline, deadline_override_s
from tokendyno.backend.errors import InputError
from tokendyno.backend.messages import PhaseName


def test_every_phase_has_a_deadline() -> None:
    assert set(DEADLINE_S) == set(get_args(PhaseName))


@pytest.mark.parametrize(("text", "seconds"), [("", None), (" ", None), ("600", 600.0), ("0.5", 0.5)])
def test_the_variable_overrides_all_phases(monkeypatch: pytest.MonkeyPatch, text: str, seconds: float | None) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", text)
    assert deadline_override_s() == seconds
    deadline = Deadline("load")
    assert deadline.limit_s == (seconds or DEADLINE_S["load"])
    assert 0 < deadline.left_s <= deadline.limit_s


@pytest.mark.parametrize("text", ["soon", "0", "-1", "inf", "nan"])
def test_a_bad_value_is_refused_with_advice(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", text)
    with pytest.raises(InputError, match="must be a positive number of seconds"):
        deadline_override_s()


def test_a_deadline_that_has_passed_leaves_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENDYNO_DEADLINE_S", "1e-9")
    assert Deadline("run").left_s == 0.0
