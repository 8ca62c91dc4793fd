"""Numbers of connections, known to all workers of the same sockets.

A proxy opens its connections together and keeps them. The worker that looks first would accept them all, and the others
would have nothing to do.
"""

from __future__ import annotations

from mmap import mmap
from typing import Final

_BYTES: Final = 8
_NOT_ACCEPTING: Final = -1
_SLACK: Final = 4


class ConnectionShares:
    """The number of open connections of each worker.

    It lies in memory that all of them share, and is made before they are forked.
    """

    def __init__(self, workers: int) -> None:
        self._counts: Final = memoryview(mmap(-1, workers * _BYTES)).cast("q")
        for place in range(workers):
            self._counts[place] = _NOT_ACCEPTING

    def share_of(self, place: int) -> ConnectionShare:
        """Return the share of the worker at this place."""
        return ConnectionShare(self._counts, place)

    def free(self, place: int) -> None:
        """Forget a worker that has ended; it may have been killed."""
        self._counts[place] = _NOT_ACCEPTING


class ConnectionShare:
    """One worker's connections among those of all."""

    def __init__(self, counts: memoryview[int], place: int) -> None:
        self._counts: Final = counts
        self._place: Final = place
        self._accepts = False

    def begin(self) -> None:
        """Tell the others that this worker accepts connections."""
        self._accepts = True
        self.note(0)

    def note(self, count: int) -> None:
        """Tell the others how many connections this worker has open."""
        if self._accepts:
            self._counts[self._place] = count

    def end(self) -> None:
        """Tell the others that this worker accepts no further connections."""
        self.note(_NOT_ACCEPTING)
        self._accepts = False

    @property
    def is_exceeded(self) -> bool:
        """True if this worker accepts and has clearly more connections than another.

        More by over four and over an eighth. Callers that open a connection for each request rarely get so far.
        """
        if not self._accepts:
            return False
        least = min(count for count in self._counts if count != _NOT_ACCEPTING)
        return self._counts[self._place] > least + max(_SLACK, least // 8)
