"""The history as the page and the command line use it."""

from collections.abc import Sequence

from tokendyno.backend.history.changes import Changes
from tokendyno.backend.history.pins import Pin, SideBySide, beside
from tokendyno.backend.history.rows import Listing
from tokendyno.backend.hosting.limits import Limits
from tokendyno.backend.runs.log import RunLog
from tokendyno.backend.runs.store import Store


class History:
    """Lists runs, changes what is kept of them, and puts arms side by side. Any thread may use it.

    kept   whether runs outlive the app at all
    team   whether owners may share runs with everybody who is logged in
    """

    def __init__(self, store: Store, runs: RunLog, limits: Limits) -> None:
        self._runs = runs
        self.kept, self.team = store.path is not None, limits.mode == "team"
        self.listing = Listing(store, runs, limits)
        self.changes = Changes(store, runs, limits)

    def beside(self, pins: Sequence[Pin], titles: bool = False) -> SideBySide:
        """Pinned arms side by side (`backend/history/pins.py`)."""
        return beside(pins, self._runs, titles)
