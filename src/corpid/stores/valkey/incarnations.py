"""Incarnations: periods in which no part of the engine loses data.

What was written in one is not found in another.

Its name says since when, epoch seconds by the engine's clock, everything that was written in it is remembered, and has
a random part. Names are put in order by that time. Incarnations that follow each other while processes look on share a
store identity, and carry its name; a process that finds no incarnation at all begins one with a store identity of its
own. A marker in each part names the incarnation of the part, and the run of the engine that had it then.
`stores.data_loss` has the theory for all engines.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final
from zlib import crc32

from corpid.rules.failures import StoreUnavailable
from corpid.stores import milliseconds
from corpid.stores.valkey.link import packed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpid.stores.valkey.link import Answer, EngineLink

NONE: Final = b""
"""before every other"""
_SET_BACK: Final = b"back"
"""in the name of an incarnation whose engine has a clock far behind the previous one's"""


class StoreIncarnation:
    """An incarnation as one process sees it: the nodes of its parts."""

    __slots__ = ("_expected", "_marker_gets", "_markers", "_prefixes", "name", "serving")

    def __init__(self, name: bytes, serving: Sequence[EngineLink | StoreUnavailable]) -> None:
        self.name: Final = name
        self.serving: Final = tuple(serving)
        self._markers: Final = [name_marker(part) for part in range(len(serving))]
        self._prefixes: Final = [b"%b:%b:" % (marker, name) for marker in self._markers]
        self._marker_gets: Final = [packed(("GET", marker)) for marker in self._markers]
        self._expected: Final = [
            b"" if isinstance(link, StoreUnavailable) else encode_marker(link, name) for link in serving
        ]

    def entry(self, kind: str, key: bytes) -> tuple[int, bytes]:
        """The part of an entry, and its name in the engine."""
        part = crc32(key) % len(self.serving)
        return part, b"%b%b:%b" % (self._prefixes[part], kind.encode(), key)

    def links(self) -> set[EngineLink]:
        """Those of all parts. Raises StoreUnavailable if one cannot be asked."""
        return {self._link(part) for part in range(len(self.serving))}

    async def ask(self, part: int, commands: Sequence[bytes]) -> list[Answer]:
        """The answers to packed commands, valid in this incarnation.

        The last command in the same pipeline asks for the part's incarnation. Names of incarnations never come back,
        but of an engine that was closed and lost nothing (orderly_stops), so that it is still this one means that it
        was this one all along.
        """
        answers = await self._link(part).send([*commands, self._marker_gets[part]])
        if answers.pop() != self._expected[part]:
            raise self._incarnation_changed(part)
        return answers

    async def read(self, part: int, names: Sequence[bytes]) -> list[bytes | None]:
        """The values of entries of a part, valid in this incarnation.

        The part's incarnation is in the same answer.
        """
        [values] = await self._link(part).send([packed(("MGET", *names, self._markers[part]))])
        if values.pop() != self._expected[part]:
            raise self._incarnation_changed(part)
        found: list[bytes | None] = values
        return found

    def _incarnation_changed(self, part: int) -> StoreUnavailable:
        place = self._link(part).address.name
        return StoreUnavailable(
            f"{place} was closed for a restart, or has forgotten something, or somebody found that another has"
        )

    def _link(self, part: int) -> EngineLink:
        link = self.serving[part]
        if isinstance(link, StoreUnavailable):
            raise StoreUnavailable(str(link))
        return link


def name_marker(part: int) -> bytes:
    """The engine's key of a part's marker.

    The braces keep all keys of a part in one slot.
    """
    return b"corpid:{p%d}" % part


def name_claim(part: int) -> bytes:
    """The engine's key of the right to begin a new incarnation."""
    return b"%b:claim" % name_marker(part)


def encode_marker(link: EngineLink, name: bytes) -> bytes:
    """The value of a marker: incarnation, and run of the engine."""
    return b"%b:%b" % (link.engine.run_id.encode(), name)


def read(link: EngineLink, mark: bytes | None) -> bytes:
    """The incarnation's name in a marker.

    NONE if it was not made in this run of the engine.
    """
    run, _, name = (mark or NONE).partition(b":")
    return name if run == link.engine.run_id.encode() else NONE


def make_next_name(since: float, *, after: bytes, set_back: bool = False) -> bytes:
    """The name of a new incarnation after another, in its store identity.

    `since`: from when on it remembers everything, epoch seconds. After NONE it has a store identity of its own.
    `set_back`: what was spent before may be dated later than that.
    """
    first = max(milliseconds(since), round(remembers_since(after) * 1000) + 1)
    names = [
        secrets.token_hex(6).encode(),
        *([_SET_BACK] if set_back else []),
        *([store_identity(after)] if after else []),
    ]
    return b"-".join([b"%013d" % first, *names])


def store_identity(name: bytes) -> bytes:
    """The store identity that an incarnation is in.

    Its first one has no other name in it.
    """
    return name.rpartition(b"-")[2]


def begins_store(name: bytes) -> bool:
    """Return whether it is the first incarnation of its store identity."""
    return name.count(b"-") == 1


def is_set_back(name: bytes) -> bool:
    """Return whether what was spent before may be dated later."""
    return _SET_BACK in name.split(b"-")


def remembers_since(name: bytes) -> float:
    """Epoch seconds by the engine's clock; 0 for NONE."""
    return int(name.partition(b"-")[0] or 0) / 1000
