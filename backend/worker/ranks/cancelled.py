"""Whether a run is cancelled, asked at every step on every rank and answered by rank 0."""

import threading

from tokendyno.backend.worker.group import Group


class AgreedCancel(threading.Event):
    """In place of a worker's own event: set where rank 0's is, at the same step on all ranks."""

    def __init__(self, own: threading.Event, group: Group) -> None:
        super().__init__()
        self._own, self._group = own, group

    def is_set(self) -> bool:
        return self._group.agree(self._own.is_set())
