"""A bounded queue that serves networks in turn, and within a network accounts in turn (D47)."""

from __future__ import annotations

from collections import Counter, OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from corpid.ports import HashingSource

KNOWN_SHARE: Final = 4
"""one place in so many is kept for known browsers"""

E = TypeVar("E")


class FairQueue(Generic[E]):
    """Entries that wait, at most `places` of them; entries are hashable, and none waits twice. Not thread-safe."""

    def __init__(self, places: int) -> None:
        self._places: Final = places
        self._numbers: Final = count()
        self._networks: Final[OrderedDict[str, OrderedDict[str, dict[E, int]]]] = OrderedDict()
        """network to account to entries and their numbers, the oldest first; whose turn it is stands first"""
        self._sizes: Final[Counter[str]] = Counter()
        self._sources: Final[dict[E, HashingSource]] = {}

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def full(self) -> bool:
        """Whether one more entry would displace another."""
        return len(self) >= self._places

    def put(self, entry: E, source: HashingSource) -> E | None:
        """Add an entry; returns the one that has to go for it, perhaps itself, or None if there was room.

        That is the newest of the busiest account of the busiest network, and among equals the newest of all, so that a
        network that fills the queue displaces nobody else. Source: D47
        """
        self._sources[entry] = source
        self._sizes[source.network] += 1
        accounts = self._networks.setdefault(source.network, OrderedDict())
        accounts.setdefault(source.account, {})[entry] = next(self._numbers)
        if len(self) <= self._places:
            return None
        gone = self._newest_of_the_busiest()
        self.remove(gone)
        return gone

    def take(self) -> E | None:
        """The entry whose turn it is, or None; its network and account go to the end of their rows (D47)."""
        if not self._networks:
            return None
        network, accounts = next(iter(self._networks.items()))
        account, entries = next(iter(accounts.items()))
        entry = next(iter(entries))
        self._networks.move_to_end(network)
        accounts.move_to_end(account)
        self.remove(entry)
        return entry

    def remove(self, entry: E) -> None:
        """Take an entry out of its row; nothing happens if it is not there."""
        source = self._sources.pop(entry, None)
        if source is None:
            return
        self._sizes[source.network] -= 1
        accounts = self._networks[source.network]
        del accounts[source.account][entry]
        if not accounts[source.account]:
            del accounts[source.account]
        if not accounts:
            del self._networks[source.network], self._sizes[source.network]

    def _newest_of_the_busiest(self) -> E:
        most = max(self._sizes.values())
        newest: dict[E, int] = {}
        for network in (each for each, size in self._sizes.items() if size == most):
            accounts = self._networks[network].values()
            longest = max(map(len, accounts))
            newest |= dict(next(reversed(each.items())) for each in accounts if len(each) == longest)
        return max(newest, key=newest.__getitem__)


class HashingQueue(Generic[E]):
    """Two fair queues that are served in turn; one is kept for known browsers, a quarter of the places (D47)."""

    def __init__(self, places: int) -> None:
        kept = places // KNOWN_SHARE
        self._kept: Final[FairQueue[E]] = FairQueue(kept)
        self._common: Final[FairQueue[E]] = FairQueue(places - kept)
        self._keeps: Final = kept > 0
        self._kept_is_next = True

    def __len__(self) -> int:
        return len(self._kept) + len(self._common)

    def put(self, entry: E, source: HashingSource) -> E | None:
        """Add an entry; returns the one that has to go for it, as `FairQueue.put`.

        A known browser waits in the common part only if its own is full and there is room. Source: D47
        """
        own = source.known and self._keeps and (not self._kept.full or self._common.full)
        return (self._kept if own else self._common).put(entry, source)

    def take(self) -> E | None:
        """The entry whose turn it is, or None."""
        turn = (self._kept, self._common) if self._kept_is_next else (self._common, self._kept)
        self._kept_is_next = not self._kept_is_next
        entry = turn[0].take()
        return turn[1].take() if entry is None else entry

    def remove(self, entry: E) -> None:
        """Take an entry out; nothing happens if it is not there."""
        self._kept.remove(entry)
        self._common.remove(entry)
