"""The stream of the audit to a file or SIEM (docs/decisions/0030).

At least once, in the order of the numbers, without gaps. One process of the deployment streams: the one that the
position names. It changes the position whenever entries were handed over, and otherwise every few seconds; each change
is made only if the position is still the one that was read. A process that finds the position unchanged for
TAKEOVER_SECONDS of its own time takes over, so that no two clocks are compared. One that was stopped meanwhile may
repeat some entries, but can no longer change the position.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

import msgspec

from corpid.flows.directory.write import audit_event
from corpid.rules.audit import AuditAction
from corpid.rules.audit_stream import Position
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.failures import StreamFailed, StreamInterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corpid.outbound.audit_targets import AuditTarget
    from corpid.stores.sql.registry import Registry

TAKEOVER_SECONDS: Final = 20.0
"""without a change of the position, after which another process streams"""
_BEAT_SECONDS: Final = 5.0
_WATCH_SECONDS: Final = 3.0
"""between two looks of a process that does not stream"""
_POLL_SECONDS: Final = 1.0
"""between two looks for new entries"""
_SENDING_SECONDS: Final = 1.0
"""after which what was sent is confirmed"""
_AT_ONCE: Final = 100
"""entries of one read, which the others of the loop wait for"""
_ATTEMPTS: Final = 5
_MOST_DOUBLINGS: Final = 5
_LONGEST_PAUSE: Final = 30.0
"""of a process after attempts that failed; others try meanwhile"""
_RESENT_SECONDS: Final = 60.0
"""of a syslog connection that ended: its receiver may have died before it read what its kernel had acknowledged"""
_DECODER: Final = msgspec.json.Decoder(Position)


class AuditStream:
    """Streams the audit, in one process of the deployment at a time.

    `report` and `warn` log an event with its detail.
    """

    def __init__(
        self,
        registry: Registry,
        target: AuditTarget,
        *,
        process: str,
        clock: Callable[[], float],
        report: Callable[[str, str], None],
        warn: Callable[[str, str], None],
    ) -> None:
        self._registry: Final = registry
        self._target: Final = target
        self._process: Final = process
        self._clock: Final = clock
        self._report: Final = report
        self._warn: Final = warn
        self.pause = 0.0
        """seconds until the next round"""
        self._seen = ""
        self._seen_at = 0.0
        self._waiting_since: int | None = None
        """see `oldest_waiting`"""
        self._retry_at = float("-inf")
        self._failures = 0
        self._streams = False
        self._beat_at = 0.0
        self._confirmed: Final[deque[tuple[float, int]]] = deque()
        """the last confirmations: the moment, and the number before it"""
        self._first: Final[deque[tuple[float, int]]] = deque()
        """the same, without what was sent again"""
        self._highest = 0

    @property
    def lag(self) -> float:
        """The age of the oldest entry that has not left, in seconds."""
        return 0.0 if self._waiting_since is None else max(0.0, self._clock() - self._waiting_since)

    async def round(self) -> None:
        """Stream for about a second, or look whether another process does.

        Raises StoreUnavailable. Source: docs/decisions/0030
        """
        self.pause = _WATCH_SECONDS
        stored = await self._registry.deployment.audit_stream()
        position = read(stored)
        now = _moment()
        if position.process == self._process:
            position = await self._stream(stored, position)
        else:
            if self._streams:  # another process took over
                await self._release()
            await self._watch(stored, position, now)
        self._waiting_since = await oldest_waiting(self._registry, after=position.number)

    async def end(self) -> None:
        """Let another process stream, at once.

        Raises StoreUnavailable. Source: docs/decisions/0030
        """
        await self._release()
        stored = await self._registry.deployment.audit_stream()
        position = read(stored)
        if position.process == self._process:
            await self._change(stored, position, process="")

    async def _watch(self, stored: str, position: Position, now: float) -> None:
        if stored != self._seen or not self._seen_at:
            self._seen, self._seen_at = stored, now
        is_free = not position.process or now - self._seen_at >= TAKEOVER_SECONDS
        if is_free and now >= self._retry_at and await self._change(stored, position, process=self._process):
            self._streams, self.pause, self._beat_at = True, 0.0, now
            if not position.failed:
                self._report("audit_stream_begun", f"to {self._target.name}, after entry {position.number}")

    async def _stream(self, stored: str, position: Position) -> Position:
        """Send what is there, confirm it, and store the position."""
        self._streams = True
        try:
            sent, is_more = await self._send_after(position.number)
        except StreamInterrupted as interrupted:
            return await self._again(stored, position, is_reset=interrupted.is_reset)
        except StreamFailed as error:
            return await self._failed(stored, position, str(error))
        self.pause = 0.0 if is_more else _POLL_SECONDS
        now = _moment()
        if sent == position.number:
            if now - self._beat_at >= _BEAT_SECONDS:
                self._beat_at = now
                await self._change(stored, position)
            return position
        if not await self._change(stored, position, number=sent, failed=""):
            return position
        self._beat_at, self._failures = now, 0
        self._remember(position.number, sent, now)
        if position.failed:
            self._report("audit_stream_resumed", f"to {self._target.name}, after entry {position.number}")
        return msgspec.structs.replace(position, number=sent)

    async def _send_after(self, number: int) -> tuple[int, bool]:
        """Send for about a second, and wait until it is handed over.

        The number of the last entry, and whether more may wait.
        """
        begun, sent, is_more = _moment(), number, False
        last = await self._registry.seals.settled_number()
        while not is_more and (page := await self._registry.audit.between(after=sent, last=last, limit=_AT_ONCE)):
            if _moment() - begun >= TAKEOVER_SECONDS / 2:  # the process was stopped: first look who streams now
                return number, True
            await self._target.send(page)
            sent = page[-1].number
            is_more = _moment() - begun >= _SENDING_SECONDS
        if sent > number:
            await self._target.confirm()
        return sent, is_more

    def _remember(self, before: int, sent: int, now: float) -> None:
        self._confirmed.append((now, before))
        if sent > self._highest:
            self._first.append((now, max(before, self._highest)))
            self._highest = sent
        for each in (self._confirmed, self._first):
            while each and each[0][0] < now - _RESENT_SECONDS:
                each.popleft()

    async def _again(self, stored: str, position: Position, *, is_reset: bool) -> Position:
        """Go back by what the receiver may not have read.

        One that ends connections without need gets an entry again for a minute only, not for ever.
        """
        number = self._unread_from(position.number, self._confirmed if is_reset else self._first)
        self._confirmed.clear()
        self.pause = 0.0
        await self._change(stored, position, number=number)
        return msgspec.structs.replace(position, number=number)

    async def _failed(self, stored: str, position: Position, reason: str) -> Position:
        """Let another process try, and this one later."""
        self._failures += 1
        self._retry_at = _moment() + min(2.0 ** min(self._failures, _MOST_DOUBLINGS), _LONGEST_PAUSE)
        number = self._unread_from(position.number, self._confirmed)
        await self._release()
        if await self._change(stored, position, number=number, process="", failed=reason) and not position.failed:
            self._warn("audit_stream_failed", f"{reason}; entries wait, and none is lost")
        return msgspec.structs.replace(position, number=number)

    def _unread_from(self, number: int, confirmed: Iterable[tuple[float, int]]) -> int:
        now = _moment()
        again = [before for at, before in confirmed if at >= now - _RESENT_SECONDS]
        return number if self._target.is_lasting else min([number, *again])

    async def _release(self) -> None:
        self._streams, self._highest = False, 0
        self._confirmed.clear()
        self._first.clear()
        await self._target.close()

    async def _change(
        self,
        stored: str,
        position: Position,
        *,
        number: int | None = None,
        process: str | None = None,
        failed: str | None = None,
    ) -> bool:
        after = Position(
            number=position.number if number is None else number,
            process=position.process if process is None else process,
            beat=position.beat + 1,
            failed=position.failed if failed is None else failed,
        )
        return await self._registry.deployment.change_audit_stream(stored, encode_position(after))


def read(stored: str) -> Position:
    """Return the stored position; the first one if there is none.

    Source: docs/decisions/0030
    """
    return _DECODER.decode(stored) if stored else Position()


def encode_position(position: Position) -> str:
    """Return a position as it is stored.

    Source: docs/decisions/0030
    """
    return msgspec.json.encode(position).decode()


async def last_left(registry: Registry) -> int:
    """Return the number of the last entry that has left.

    0 for none. Raises StoreUnavailable. Source: docs/decisions/0030
    """
    return read(await registry.deployment.audit_stream()).number


async def oldest_waiting(registry: Registry, *, after: int) -> int | None:
    """Return the moment of the oldest entry that has not left.

    `after` is the number of the last one that has. Epoch seconds; None: none waits. Raises StoreUnavailable.
    Source: docs/decisions/0030
    """
    oldest = await registry.audit.between(after=after, limit=1)
    return oldest[0].at if oldest else None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The position, and what waits behind it."""

    position: Position
    waiting: int
    """entries that have not left"""
    oldest_at: int | None
    """epoch seconds of the oldest of them; None: none waits"""


async def read_progress(registry: Registry, actor: Actor) -> Progress:
    """Return the progress of the stream.

    Raises access.Forbidden, StoreUnavailable. Source: docs/decisions/0030
    """
    authorise(actor, "read", Object(kind="deployment"))
    position = read(await registry.deployment.audit_stream())
    waiting, _, _ = await registry.seals.unsealed(after=position.number)
    oldest_at = await oldest_waiting(registry, after=position.number)
    return Progress(position=position, waiting=waiting, oldest_at=oldest_at)


async def set_position(registry: Registry, actor: Actor, number: int, *, now: float) -> bool:
    """Let the stream go on after an entry of this number.

    The process that streams finds another position, and begins again there. `now` in epoch seconds. False if the
    position changed at the same moment, again and again. Raises access.Forbidden, StoreUnavailable. Source:
    docs/decisions/0030
    """
    authorise(actor, "write", Object(kind="deployment"))
    for _ in range(_ATTEMPTS):
        stored = await registry.deployment.audit_stream()
        before = read(stored)
        after = msgspec.structs.replace(before, number=number, process="", beat=before.beat + 1)
        event = audit_event(actor, AuditAction.AUDIT_STREAM, "", **{"to": str(number), "from": str(before.number)})
        if await registry.deployment.change_audit_stream(stored, encode_position(after), event, now=now):
            return True
    return False


def _moment() -> float:
    return asyncio.get_running_loop().time()
