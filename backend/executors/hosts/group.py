"""An executor whose ranks run on several machines: this one's are its own, and a lobby has the others'."""

import functools

from backend.engine.executor import ExecutorKind, Inbox, StartError
from backend.executors.hosts.lobby import Lobby
from backend.executors.ranks import RankGroup
from backend.worker.ranks.share import Share


class FarGroup(RankGroup):
    """Ends with the cause that another machine tells, where its ranks ended first."""

    def __init__(self, inbox: Inbox, lobby: Lobby) -> None:
        self._lobby, self._told = lobby, ""
        super().__init__(inbox, Share(lobby.ranks, lobby.hosts, 0, str(lobby.endpoint), lobby.interface))
        if problem := lobby.begin(self):
            super().end()
            raise StartError(problem)

    def lost(self, cause: str) -> None:
        """Another machine's ranks are gone, so these are of no use."""
        self._told = self._told or cause
        for rank in self._members():
            rank.kill()
        self._process.kill()

    def end(self, grace_s: float = 0.0) -> None:
        self._lobby.finish(self)
        super().end(grace_s)

    def _cause(self, code: int) -> str:
        return self._told or super()._cause(code)


@functools.cache
def of_hosts(lobby: Lobby) -> ExecutorKind:
    """The kind of that lobby: always the same value, since the pool compares kinds."""
    ranks = lobby.ranks * lobby.hosts
    through = f" through {lobby.interface}" if lobby.interface else ""
    return ExecutorKind(
        lambda inbox: FarGroup(inbox, lobby),
        remark=f"{ranks} ranks on {lobby.hosts} machines run the model together and exchange{through}; times and "
        "tokens are those of rank 0.",
    )
