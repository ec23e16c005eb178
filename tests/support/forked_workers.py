"""Names of before benches forked their workers themselves."""

from pathlib import Path

from tokendyno.backend.engine.bench import Bench
from tokendyno.backend.engine.executor import ExecutorKind
from tokendyno.backend.executors import KINDS, open_bench


class Nursery:
    """Nothing."""

    def close(self) -> None:
        """Nothing."""


def forking(nursery: Nursery) -> ExecutorKind:
    """Workers as every bench has them."""
    return KINDS["subprocess"]


def open_forking(nursery: Nursery, history: Path | None = None) -> Bench:
    """A bench."""
    return open_bench(history)
