"""Sabotage as it happens in the world, and the two tests that every file of this folder makes of it.

Each file is a table of one axis: by choice, the manners in which it is broken from outside. What only somebody would do
who patches torch on purpose is in no table: the ledger catches fallbacks, not forgery.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import pytest

from tests.sabotage.small_models import llama
from tests.support.worker import request
from tokendyno.backend.evidence import Evidence, Status
from tokendyno.backend.executors import open_bench
from tokendyno.backend.runs.run import Run

Patch = Callable[[], AbstractContextManager[Any]]
Which = Callable[[int], bool]
"""Which layers, by their number."""
Ledger = Mapping[str, Evidence]
Tier = Literal["slow", "full", "gpu"]
TOKENS = "tokens"
"""The row that answers for the text, whichever choice has spoilt it."""
AMBER_OR_RED: tuple[Status, ...] = ("partial", "no_effect", "fallback", "failed")
SHARES = "one", "half", "all"
INTACT = "intact"


@dataclass(frozen=True)
class Sabotage:
    """One way to break one choice.

    manner    what is broken, in a few words: the name of the test
    patch     breaks it while it is entered
    beside    choices of other axes
    model     a model; or a function that returns one, where it has to be written to disk first
    work      settings of the workload beside a short prompt and 8 tokens
    shown_by  the row that turns, where it is not this axis's own; that of the tokens is trusted for every choice
    """

    axis: str
    choice: str
    manner: str
    patch: Patch
    beside: Mapping[str, str] = field(default_factory=dict)
    model: str | Callable[[], str] = llama
    work: Mapping[str, Any] = field(default_factory=dict)
    shown_by: str = ""
    tier: Tier = "slow"

    def ledger(self, own_process: bool = False) -> Ledger:
        """The rows after a run with whatever is patched now, by axis."""
        name = self.model if isinstance(self.model, str) else self.model()
        folder = Path(name).parent if Path(name).is_absolute() else None
        choices = {self.axis: self.choice, **self.beside}
        return ledger(choices, name, models_dir=folder, own_process=own_process, **self.work)

    def is_caught(self, rows: Ledger) -> bool:
        """Whether a row that is trusted for this choice says that something is wrong."""
        others = [rows[axis] for axis in (self.shown_by, TOKENS) if axis in rows]
        return rows[self.axis].status != "verified" or any(row.status in AMBER_OR_RED for row in others)

    @property
    def arm(self) -> str:
        """Equal for two that break the same run."""
        return repr((self.axis, self.choice, self.beside, self.model, self.work, self.shown_by))


def table(
    axis: str,
    manners: Mapping[str, Mapping[str, Patch]],
    beside: Mapping[str, str] | None = None,
    model: str | Callable[[], str] = llama,
    shown_by: str = "",
    tier: Tier = "slow",
    **work: Any,
) -> list[Sabotage]:
    """Saboteurs of an axis: choice -> manner -> what breaks it."""
    return [
        Sabotage(axis, choice, manner, patch, beside or {}, model, work, shown_by, tier)
        for choice, patches in manners.items()
        for manner, patch in patches.items()
    ]


def tests_of(saboteurs: Sequence[Sabotage], *marks: pytest.MarkDecorator) -> tuple[Any, Any]:
    """The test that sabotage turns a row, and the test that no row is turned without. `marks`: for both. For CI are the
    first manner of each choice and the first control of each axis, for `tools/full` the others."""
    of_choices = {(one.axis, one.choice): one for one in reversed(saboteurs)}
    of_axes = {one.axis: one for one in reversed(saboteurs)}
    of_arms = {one.arm: one for one in reversed(saboteurs)}

    def case(sabotage: Sabotage, name: str) -> Any:
        costly = name == INTACT and not {"compile", "parallel"}.isdisjoint((sabotage.axis, *sabotage.beside))
        in_ci = of_axes.values() if name == INTACT else of_choices.values()
        tier = "full" if sabotage.tier == "slow" and (costly or sabotage not in in_ci) else sabotage.tier
        marked = [getattr(pytest.mark, tier), *marks]
        return pytest.param(sabotage, marks=marked, id=f"{sabotage.axis}={sabotage.choice}: {name}")

    def test_sabotage_turns_a_row(sabotage: Sabotage) -> None:
        with sabotage.patch():
            rows = sabotage.ledger()
        assert sabotage.is_caught(rows), rows

    def test_the_control_is_verified(sabotage: Sabotage) -> None:
        # what an earlier run left of a GPU's memory is nothing that a warm-up could reserve
        rows = sabotage.ledger(own_process=sabotage.axis == "loading" and sabotage.tier == "gpu")
        assert not sabotage.is_caught(rows), rows

    broken = [case(saboteur, saboteur.manner) for saboteur in saboteurs]
    intact = [case(saboteur, INTACT) for saboteur in of_arms.values()]
    return (
        pytest.mark.parametrize("sabotage", broken)(test_sabotage_turns_a_row),
        pytest.mark.parametrize("sabotage", intact)(test_the_control_is_verified),
    )


tests_of.__test__ = False  # type: ignore[attr-defined]  # by its name pytest would take it for a test


def run_of(
    choices: Mapping[str, str],
    model: str = "pocket",
    models_dir: Path | None = None,
    own_process: bool = False,
    **work: Any,
) -> Run:
    """A finished run of one arm in this process: what is patched here is what the worker meets. `own_process`: by a
    worker that nothing patched here reaches, and whose GPU memory nothing has used."""
    with mock.patch.object(os, "_exit"), mock.patch.object(sys, "stdin"):
        bench = open_bench(models_dir=models_dir, executor="subprocess" if own_process else "in-process")
        bench.start()
        try:
            run = bench.wait(bench.submit(request(choices, model=model, **work)), 500)
        finally:
            bench.close()
    assert run.status == "done", run.message
    return run


def ledger(choices: Mapping[str, str], model: str = "pocket", **kwargs: Any) -> Ledger:
    """The ledger of such a run, by axis."""
    return {row.finding.axis: row for row in run_of(choices, model, **kwargs).snapshot().ledgers["A"]}


@contextlib.contextmanager
def model_changed(change: Callable[[Any], None]) -> Iterator[None]:
    """`change` gets every model that is loaded meanwhile, before anything else sees it."""
    from tokendyno.backend.worker.load import loader

    original = loader.LoadedModel.__init__

    def changed(self: Any, plan: Any, model: Any, *args: Any) -> None:
        change(model)
        original(self, plan, model, *args)

    with mock.patch.object(loader.LoadedModel, "__init__", changed):
        yield


def in_layers(share: str, change: Callable[[Any], None]) -> Patch:
    """Changes one, half or all of the decoder layers of every model that is loaded."""

    def each(model: Any) -> None:
        layers = model.model.layers
        for layer in layers[: {"all": len(layers), "half": len(layers) // 2, "one": 1}[share]]:
            change(layer)

    return lambda: model_changed(each)
