"""The processes that run one model together, as each of them sees the others.

All ranks carry out the same commands. How many steps they take must be decided by one of them (`agree`), or a rank
waits for ever in a collective that the others never enter. A process alone is a group of one.
"""

from collections.abc import Sequence

from tokendyno.backend.messages import Failed


class Group:
    """What one member sees; as it stands here, a process that shares its model with no other.

    rank  of this process; rank 0 alone talks to the engine
    size  how many there are
    """

    rank, size = 0, 1

    def agree(self, answer: bool) -> bool:
        """Rank 0's answer, on every rank. All of them must ask the same questions in the same order."""
        return answer

    def exchange(self, own: bytes) -> Sequence[bytes]:
        """What every rank gave, by rank. Returns once all have; raises where one of them fails instead."""
        return [own]

    def settle(self, failed: Failed) -> Failed:
        """This rank's command failed: what the engine is to be told. Ends a process whose group is lost."""
        return failed


_own = Group()


def join(group: Group) -> None:
    """This process is a member of that group from now on, as it is of torch's default process group."""
    global _own
    _own = group


def own_group() -> Group:
    return _own
