"""Sealing of the audit, verification, and export (D58, docs/decisions/0016)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import msgspec

from corpid.flows.directory.lists import authorise_list
from corpid.flows.directory.write import Refused, audit_event
from corpid.flows.operations.signing_keys import new_key, open_key
from corpid.jose import compact
from corpid.jose.encoding import base64url
from corpid.rules.audit import AuditAction, AuditQuery, StoredEntry
from corpid.rules.audit_seals import (
    ALGORITHM,
    ENTRIES,
    SECONDS,
    TYP,
    Chain,
    Digest,
    Prunes,
    RangeCheck,
    RemovalEntry,
    Row,
    Seal,
    SealClaims,
    SealFinding,
    covering,
    cut_ends,
    details_finding,
    entry_digest,
    erased_by_age,
    missing_seals,
    payload_digest,
    people_of,
    replaced_seals,
    retention,
    unexplained_erasure,
    was_sealed_again,
)
from corpid.rules.directory.access import Actor, Object, authorise

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from corpid.jose.key_ring import SigningKey
    from corpid.rules.signing_keys import ProviderKey
    from corpid.stores.sql.registry import Registry

LOOK_SECONDS: Final = 10
"""between two looks whether a seal is due"""
VERIFIED_AT_ONCE: Final = 200
"""seals that a page or a file verifies"""
SEALS_AT_ONCE: Final = 4
"""of one round, when more entries wait than one seal covers"""
FINDINGS: Final = 1000
"""listed at most; further ones are counted"""
_ENTRIES_AT_ONCE: Final = 200
"""of one read"""
_JUDGED_AT_ONCE: Final = 25
"""a millisecond of work, after which others run"""
_SEALS_READ_AT_ONCE: Final = 8
_PRUNES: Final = 10_000
"""most entries about removals to check; one a day"""
_LATEST_PRUNES: Final = 10
"""those that can have begun during a verification"""
_BEFORE_EVERY_NUMBER: Final = -(1 << 63)
"""numbers begin with 1, unless somebody inserts others"""
_SETTLING_SECONDS: Final = 5.0
"""how long a command waits for transactions that are still running"""
_PAUSE_SECONDS: Final = 0.05


class Sealer:
    """Makes the seals that are due, in the background.

    Any number of processes may run one: if two make the same seal, the store refuses one. `log` gets a line for
    the log about each seal, with its digest; `warn` one if a seal that was there is there no more.
    """

    def __init__(
        self, registry: Registry, log: Callable[[str], None], warn: Callable[[str], None] | None = None
    ) -> None:
        self._registry: Final = registry
        self._log: Final = log
        self._warn: Final = warn or log
        self._seen: Seal | None = None
        """the last seal that was there at the last look"""
        self._looked_at: float | None = None
        self._behind = False

    async def round(self, *, now: float) -> int:
        """Look whether a seal is due, every ten seconds, and make it.

        The first time nothing is done: a process that starts has other work. Returns how many were made.
        """
        if self._looked_at is None:
            self._looked_at = now
        if not self._behind and 0 <= now - self._looked_at < LOOK_SECONDS:
            return 0
        self._looked_at = now
        await self._look_back()
        made = 0
        while made < SEALS_AT_ONCE and await self._next(now, at_once=False):
            made += 1
        self._behind = made == SEALS_AT_ONCE
        return made

    async def _look_back(self) -> None:
        """Warn if the seals are not those that were seen before.

        If somebody cuts off the end, the rest is sealed again, and then nothing in the database shows it.
        """
        seals, seen = self._registry.seals, self._seen
        self._seen = last = await seals.last()
        if seen is None:
            return
        there = last
        if last is not None and last.number > seen.number:
            there = next(iter(await seals.page(after=seen.number - 1, limit=1)), None)
        if there is None or (there.number, there.digest) != (seen.number, seen.digest):
            self._warn(f"seal {seen.number} was removed or exchanged, and had the digest {seen.digest}")

    async def seal_all(self, actor: Actor, *, now: float) -> int:
        """Seal every entry now.

        Waits a few seconds for transactions that are still running, and returns how many seals were made.
        Raises access.Forbidden, StoreUnavailable. Source: D58
        """
        authorise(actor, "write", Object(kind="deployment"))
        seals, made = self._registry.seals, 0
        before = await seals.last()
        _, _, last = await seals.unsealed(after=0 if before is None else before.last)
        for _ in range(int(_SETTLING_SECONDS / _PAUSE_SECONDS)):
            while await self._next(now, at_once=True):
                made += 1
            sealed = await seals.last()
            if (0 if sealed is None else sealed.last) >= last:
                break
            await asyncio.sleep(_PAUSE_SECONDS)
        return made

    async def _next(self, now: float, *, at_once: bool) -> Seal | None:
        """Make the next seal if it is due, or at once.

        None if it is not, there is nothing to seal, or another process was first.
        """
        seals = self._registry.seals
        before = await seals.last()
        covered = 0 if before is None else before.last
        settled = await seals.settled_number()
        due = at_once or settled - covered >= ENTRIES or before is None or not 0 <= now - before.at < SECONDS
        if settled <= covered or not due:
            return None
        digests: dict[str, list[Digest]] = {}
        read, last = 0, covered
        while read < ENTRIES:
            size = min(_ENTRIES_AT_ONCE, ENTRIES - read)
            page = await seals.rows(after=last, last=settled, limit=size)
            for entry in page:
                digests.setdefault(retention(str(entry.row["action"])), []).append(entry_digest(entry.row))
            read += len(page)
            last = int(page[-1].row["number"]) if len(page) == size else settled
            if last == settled:
                break
            await asyncio.sleep(0)
        if not read:
            return None
        claims, texts = covering(digests, before, last=last, now=now)
        seal = _signed(await _sealing_key(self._registry, now=now), claims, texts)
        if not await seals.add(seal, {name: listed.latest for name, listed in claims.lists.items()}):
            return None
        self._log(f"seal {seal.number}: {read} entries up to {last}, digest {seal.digest}")
        if before is None and was_sealed_again(await _first_key_at(self._registry), claims.iat):
            self._warn("every earlier seal was removed: an audit key has been there for more than a day")
        return seal


def _signed(key: SigningKey, claims: SealClaims, digests: dict[str, str]) -> Seal:
    payload = msgspec.json.encode(claims)
    header = base64url(msgspec.json.encode({"alg": ALGORITHM.name, "kid": key.kid, "typ": TYP})).encode()
    return Seal(
        number=claims.seal,
        at=claims.iat,
        last=claims.last,
        digest=payload_digest(payload),
        seal=compact.sign(header, payload, key.private, ALGORITHM),
        digests=digests,
    )


async def stored_audit_keys(registry: Registry) -> list[ProviderKey]:
    """Every key that has sealed the audit, oldest first.

    None is ever removed: it goes on verifying what it sealed. Source: D58
    """
    return [key for key in await registry.keys.list_all() if key.use == "audit"]


async def _first_key_at(registry: Registry) -> int | None:
    """The moment of the first audit key.

    None if it was not made together with the first seal.
    """
    if not await registry.keys.had_audit_key():
        return None
    return min((key.active_from for key in await stored_audit_keys(registry)), default=None)


async def audit_keys(registry: Registry) -> dict[str, list[dict[str, str]]]:
    """The public audit keys, as a JWK Set.

    Source: D58, RFC 7517 §5
    """
    return public_keys(await stored_audit_keys(registry))


def public_keys(keys: Iterable[ProviderKey]) -> dict[str, list[dict[str, str]]]:
    """The public part of some audit keys, as a JWK Set. Source: D58, RFC 7517 §5"""
    return {"keys": [dict(open_key(key).public_jwk) for key in keys]}


async def rotate_audit_key(registry: Registry, actor: Actor, *, now: float) -> ProviderKey:
    """Make a new audit key, which seals from now on.

    Raises access.Forbidden, and Refused before the first seal. Source: D58
    """
    authorise(actor, "write", Object(kind="key"))
    older = [key for key in await stored_audit_keys(registry) if key.retired_at is None]
    if not older and not await registry.keys.had_audit_key() and await registry.seals.last() is None:
        # Any audit key shows that there was a seal.
        raise Refused("there is no audit key yet: `corpid audit seal`, or a server, makes it with the first seal")
    key = new_key("audit", now=now, active_from=now)
    await registry.keys.add(key, audit_event(actor, AuditAction.KEY_ROTATE, key.kid, use="audit"))
    for old in older:
        retired = audit_event(actor, AuditAction.KEY_RETIRE, old.kid, retired_at=str(int(now)))
        await registry.keys.update(msgspec.structs.replace(old, retired_at=int(now)), retired)
    return key


async def _sealing_key(registry: Registry, *, now: float) -> SigningKey:
    """The newest audit key; the first time it is made.

    Raises Refused if there was one and it is gone.
    """
    stored = await stored_audit_keys(registry)
    if not stored:
        await registry.keys.add_first_audit_key(new_key("audit", now=now, active_from=now))
        stored = await stored_audit_keys(registry)
        if not stored:
            raise Refused("every audit key was removed: `corpid audit verify`, then `corpid key rotate --audit`")
    return open_key(max(stored, key=lambda key: (key.retired_at is None, key.active_from, key.kid)))


class SealVerification(msgspec.Struct, kw_only=True):
    seals: int = 0
    sealed_to: int = 0
    """the last number that a seal covers"""
    sealed_at: int = 0
    digest: str = ""
    """that of the last seal; empty if there is none"""
    entries: int = 0
    """sealed ones that are there"""
    pruned: int = 0
    """sealed ones that were removed by age"""
    erased: int = 0
    """entries without their details: these were erased"""
    unsealed: int = 0
    first_unsealed: int = 0
    last_unsealed: int = 0
    expected: bool | None = None
    """whether a seal has the digest that was expected; None: none was"""
    found: int = 0
    findings: list[SealFinding] = msgspec.field(default_factory=list)
    """the faults, in the order of the numbers; at most so many"""
    next: int = 0
    """the seal after which the next part begins; 0: this was the last one"""

    def add(self, findings: list[SealFinding]) -> None:
        self.found += len(findings)
        self.findings += findings[: max(0, FINDINGS - len(self.findings))]


async def verify(
    registry: Registry,
    actor: Actor,
    *,
    now: float,
    expect: str = "",
    after: int = 0,
    most: int | None = None,
    verified: Callable[[int], None] = lambda _seal: None,
) -> SealVerification:
    """Verify the audit against its seals.

    `now` is in epoch seconds, `expect` is the digest of a seal that there was. `after` is a seal with which an earlier
    part ended, `most` how many seals this part may have: the last part counts what is not sealed. `verified` is told
    the number of each seal. Nothing is changed, and servers may write meanwhile. Raises access.Forbidden,
    StoreUnavailable. Source: D58
    """
    authorise_list(actor, Object(kind="audit"))
    keys = {key.kid: open_key(key).verifier for key in await stored_audit_keys(registry)}
    chain, result = Chain(keys), SealVerification(expected=False if expect else None)
    number, removals = after, _Removals(registry, await _prunes(registry, _PRUNES, now), now)
    if not after:
        result.add(removals.prunes.findings)
    else:
        before = await registry.seals.page(after=after - 1, limit=1)
        chain.resume(next((seal for seal in before if seal.number == after), None), after)
    while seals := await registry.seals.page(after=number, limit=_SEALS_READ_AT_ONCE):
        for seal in seals:
            if result.seals == most:
                result.next = number
                return result
            ended = chain.last
            claims, wrong = chain.follow(seal)
            result.add(wrong)
            result.seals += 1
            if claims is not None:
                result.expected = result.expected if chain.digest != expect else True
                check = RangeCheck(claims, seal)
                begin = max(ended, claims.first - 1) or _BEFORE_EVERY_NUMBER
                await _verify_range(registry, check, begin, claims.last, removals, result)
                if claims.seal == 1:
                    result.add([*replaced_seals(await _first_key_at(registry), claims.iat)])
                await _verify_rest(check, removals, result)
            number = seal.number
            verified(number)
            result.sealed_to, result.sealed_at, result.digest = seal.last, seal.at, seal.digest
    ends = await registry.seals.ends()
    had_key = await registry.keys.had_audit_key()
    result.add([*missing_seals(has_seal=bool(ends.seal), has_key=bool(keys), had_key=had_key), *cut_ends(ends)])
    sealed_to = result.sealed_to or chain.last
    if not sealed_to and (last := await registry.seals.last()) is not None:
        sealed_to = last.last
    result.unsealed, result.first_unsealed, result.last_unsealed = await registry.seals.unsealed(after=sealed_to)
    return result


class _Removals:
    """The entries of the audit that explain what is missing: `audit.prune`, `audit.erase`."""

    def __init__(self, registry: Registry, prunes: Prunes, now: float) -> None:
        self._registry: Final = registry
        self._now: Final = now
        self.prunes = prunes
        self._erasures: dict[str, int] = {}
        """identifier of a person → number of the last entry about their erasure"""

    async def renew(self) -> None:
        """Read them again.

        Each is written before its removal, so it is there whenever something is missing.
        """
        later = await _prunes(self._registry, _LATEST_PRUNES, self._now)
        self.prunes = Prunes([*self.prunes.entries, *later.entries], now=self._now)
        self._erasures.clear()

    async def explain(self, row: Row) -> bool:
        """Return whether one explains that the details of an entry are gone."""
        if erased_by_age(row, self.prunes):
            return True
        return any([await self._erased(person) > int(row["number"]) for person in people_of(row)])

    async def _erased(self, person: str) -> int:
        if person not in self._erasures:
            query = AuditQuery(object=person, actions=(AuditAction.AUDIT_ERASE,))
            found = await self._registry.audit.latest(query, limit=1)
            self._erasures[person] = found[0].number if found else 0
        return self._erasures[person]


async def _verify_range(
    registry: Registry, check: RangeCheck, after: int, last: int, removals: _Removals, result: SealVerification
) -> None:
    result.add(check.broken)
    unexplained: list[Row] = []
    async for entry in _entries(registry, after, last):
        wrong = check.entry(entry.row) or details_finding(entry.row, entry.salt, entry.detail)
        result.add([wrong] if wrong else [])
        result.entries += 1
        if entry.row["digest"] and entry.salt is None:
            result.erased += 1
            if wrong is None and not await removals.explain(entry.row):
                unexplained.append(entry.row)
    if unexplained:
        await removals.renew()
        result.add([unexplained_erasure(row) for row in unexplained if not await removals.explain(row)])


async def _verify_rest(check: RangeCheck, removals: _Removals, result: SealVerification) -> None:
    """Judge missing entries in a range."""
    pruned, wrong = check.rest(removals.prunes)
    if wrong:
        await removals.renew()
        pruned, wrong = check.rest(removals.prunes)
    result.pruned += pruned
    result.add(wrong)


async def _prunes(registry: Registry, limit: int, now: float) -> Prunes:
    found = await registry.audit.latest(AuditQuery(actions=(AuditAction.AUDIT_PRUNE,)), limit=limit)
    return Prunes((RemovalEntry(number=each.number, at=each.at, detail=each.detail) for each in found), now=now)


async def _entries(registry: Registry, after: int, last: int) -> AsyncIterator[StoredEntry]:
    """Entries of a range, read page by page."""
    while page := await registry.seals.rows(after=after, last=last, limit=_ENTRIES_AT_ONCE):
        for count, entry in enumerate(page, 1):
            yield entry
            if not count % _JUDGED_AT_ONCE:
                await asyncio.sleep(0)
        if len(page) < _ENTRIES_AT_ONCE:
            return
        after = int(page[-1].row["number"])


async def export(registry: Registry, actor: Actor, *, now: float) -> AsyncIterator[dict[str, Any]]:
    """The audit as JSON objects: keys, entries, seals.

    Each seal comes after the entries that it covers, and those that are not sealed come last. The whole is
    never in memory. Raises access.Forbidden, StoreUnavailable. Source: D58
    """
    authorise_list(actor, Object(kind="audit"))
    yield {"export": "corpid audit", "version": 1, "at": int(now), **await audit_keys(registry)}
    number, after, digest = 0, _BEFORE_EVERY_NUMBER, ""
    while seals := await registry.seals.page(after=number, limit=_SEALS_READ_AT_ONCE):
        for seal in seals:
            async for entry in _entries(registry, after, seal.last):
                yield _exported(entry)
            yield {"seal": seal.seal, "digests": seal.digests}
            number, after, digest = seal.number, max(after, seal.last), seal.digest
    _, _, last = await registry.seals.unsealed(after=after)
    async for entry in _entries(registry, after, last):
        yield _exported(entry)
    yield {"end": digest, "seals": number}


def _exported(entry: StoredEntry) -> dict[str, Any]:
    exported: dict[str, Any] = {"entry": entry.row}
    return exported if entry.salt is None else exported | {"details": {"salt": entry.salt, "detail": entry.detail}}
