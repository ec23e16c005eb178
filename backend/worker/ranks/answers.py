"""Answers that rank 0 gives and the other ranks of this host wait for, in a file that all of them have mapped.

An answer costs rank 0 one write to memory and the others a read, so that one can be asked for at every token.
"""

import mmap
import time
from pathlib import Path

PLACES = 1024
"""Answers that rank 0 may be ahead of the slowest rank. Collectives hold it back long before that."""

WAIT_S = 20e-6


def create(path: Path) -> None:
    """The file, without any answer."""
    path.write_bytes(bytes(8 * PLACES))


class Answers:
    """One rank's view of the file. Question n has place n % PLACES; its word is 2 n + answer, written at once."""

    def __init__(self, path: Path, rank: int) -> None:
        with path.open("r+b") as file:
            self._words = memoryview(mmap.mmap(file.fileno(), 8 * PLACES)).cast("Q")
        self._rank, self._asked = rank, 0

    def agree(self, answer: bool) -> bool:
        """Rank 0's answer to the next question, for which the others wait as long as it takes."""
        self._asked += 1
        place = self._asked % PLACES
        if self._rank == 0:
            self._words[place] = 2 * self._asked + answer
            return answer
        while (word := self._words[place]) >> 1 < self._asked:
            time.sleep(WAIT_S)
        if word >> 1 > self._asked:
            raise RuntimeError(f"rank {self._rank} fell {PLACES} steps behind rank 0")
        return bool(word & 1)
