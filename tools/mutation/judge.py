"""Which test kills a mutant, provided that it passes without the mutation."""

from collections.abc import Callable, Sequence

from .sites import Site

FirstFailure = Callable[[Sequence[str], Site | None], str]
"""Runs tests in this order, mutated or not, until one fails. Names it, or tells what ended the run; "" if all pass."""


class Judge:
    """Asks tests; one that fails without the mutation too, after the same others, is asked no more."""

    def __init__(self, first_failure: FirstFailure) -> None:
        self._first_failure = first_failure
        self._sound: set[str] = set()
        self._unsound: set[str] = set()

    def killer(self, site: Site, names: Sequence[str]) -> str:
        while True:
            asked = [name for name in names if name not in self._unsound]
            killer = self._first_failure(asked, site)
            if killer not in asked or killer in self._sound:
                return killer
            if self._first_failure(asked[: asked.index(killer) + 1], None) != killer:
                self._sound.add(killer)
                return killer
            self._unsound.add(killer)
