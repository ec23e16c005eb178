"""Where a queued run stands, for the line below a panel's headline."""

from collections.abc import Callable

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.turns import QueuePlace

QueueLine = Callable[[str], str]
"""By a run's id: where it stands in the queue, "" where it does not wait."""


def no_queue(run_id: str) -> str:
    """Where runs are only read and none waits."""
    return ""


def queue_line(bench: Bench) -> QueueLine:
    """What the panels ask for each pull of a queued run."""

    def line(run_id: str) -> str:
        place = bench.place(run_id)
        return place_text(place) if place else ""

    return line


def place_text(place: QueuePlace) -> str:
    """A place in words: how many runs come first, and about how long they take where that can be estimated."""
    if not place.ahead:
        return "its turn is next"
    runs = "1 run comes first" if place.ahead == 1 else f"{place.ahead} runs come first"
    if place.wait_s is None:
        return f"{runs}; how long they take is not known yet"
    if place.wait_s < 90:
        step = 1 if place.wait_s < 10 else 10
        return f"{runs}; about {max(1, round(place.wait_s / step)) * step} s to go"
    return f"{runs}; about {round(place.wait_s / 60):,} min to go"
