"""Records of sabotage, and the two tests that every file of this folder makes of them."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pytest

from backend.evidence import Evidence, Status
from tests.sabotage.ledger_of import ledger

Tier = Literal["slow", "full", "gpu"]
NOT_GREEN: tuple[Status, ...] = ("partial", "no_effect", "fallback", "failed", "off", "not_applicable")


@dataclass(frozen=True)
class Sabotage:
    """One way to break one choice.

    manner    what is broken, in a few words: the name of the test
    patch     breaks it while it is entered
    beside    choices of other axes, as (axis, choice)
    model     a model; or a function that returns one, where it has to be written to disk first
    work      settings of the workload beside a short prompt and 8 tokens, as (name, value)
    turns_to  statuses that the row may have then
    """

    axis: str
    choice: str
    manner: str
    patch: Callable[[], AbstractContextManager[Any]]
    beside: tuple[tuple[str, str], ...] = ()
    model: str | Callable[[], str] = "pocket"
    work: tuple[tuple[str, Any], ...] = ()
    turns_to: tuple[Status, ...] = NOT_GREEN
    tier: Tier = "slow"

    def row(self, own_process: bool = False) -> Evidence:
        """The row of the ledger after a run with whatever is patched now, or by a process of its own."""
        name = self.model if isinstance(self.model, str) else self.model()
        models_dir = Path(name).parent if Path(name).is_absolute() else None
        choices = {self.axis: self.choice, **dict(self.beside)}
        return ledger(choices, name, models_dir=models_dir, own_process=own_process, **dict(self.work))[self.axis]

    @property
    def arm(self) -> tuple[Any, ...]:
        """Equal for two that break the same run."""
        return self.axis, self.choice, self.beside, self.model, self.work


def tests_of(saboteurs: Sequence[Sabotage], *marks: pytest.MarkDecorator) -> tuple[Any, Any]:
    """The test that sabotage turns the row, and the test that the row is verified without. `marks`: for both.

    Of what is slow each choice's first manner stays, which CI runs; the others are for `tools/full`.
    """
    saboteurs = _one_a_choice(saboteurs)
    controls = {one.arm: one for one in sorted(saboteurs, key=lambda one: one.tier == "full", reverse=True)}

    def test_sabotage_turns_the_row(sabotage: Sabotage) -> None:
        with sabotage.patch():
            row = sabotage.row()
        assert row.status in sabotage.turns_to, row

    def test_the_control_is_verified(sabotage: Sabotage) -> None:
        # what an earlier run left of a GPU's memory is nothing that a warm-up could reserve
        row = sabotage.row(own_process=sabotage.axis == "loading" and sabotage.tier == "gpu")
        assert row.status == "verified", row

    return (
        pytest.mark.parametrize("sabotage", [_case(one, marks, one.manner) for one in saboteurs])(
            test_sabotage_turns_the_row
        ),
        pytest.mark.parametrize("sabotage", [_case(one, marks) for one in controls.values()])(
            test_the_control_is_verified
        ),
    )


tests_of.__test__ = False  # type: ignore[attr-defined]  # by its name pytest would take it for a test


def _one_a_choice(saboteurs: Sequence[Sabotage]) -> list[Sabotage]:
    found, seen = [], set()
    for one in saboteurs:
        again = one.tier == "slow" and (one.axis, one.choice) in seen
        found.append(replace(one, tier="full") if again else one)
        if one.tier == "slow":
            seen.add((one.axis, one.choice))
    return found


def _case(one: Sabotage, marks: Sequence[pytest.MarkDecorator], manner: str = "intact") -> Any:
    """One saboteur as the parameter of a test in its tier."""
    return pytest.param(one, marks=[getattr(pytest.mark, one.tier), *marks], id=f"{one.axis}={one.choice}: {manner}")
