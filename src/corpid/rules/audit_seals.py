"""Seals of the audit: form, making, verification, and further evidence (D58).

A seal covers a range of numbers, used or not, with a digest of every entry in it, and names the digest of the seal
before it. Entries of one range leave the audit at different times, so their digests stand in one list for each
retention.

Seals find what is missing between the first and the last of them. If seals are missing themselves, or the end is cut
off, the rest of the database may still show what was there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from operator import attrgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from corpid.jose import compact
from corpid.jose.encoding import JoseError, base64url, from_base64url
from corpid.jose.keys import ALGORITHMS, Verifier
from corpid.rules.audit import AuditAction
from corpid.rules.limits import CLOCK_AHEAD_SECONDS

TYP: Final = "audit-seal+jwt"
ALGORITHM: Final = ALGORITHMS["ES256"]
ENTRIES: Final = 1000
"""of one seal at most; so many unsealed ones make it due"""
SECONDS: Final = 3000
"""after which a seal is due if there is an entry for it: within the hour, also if a node stops in between"""
DAY_SECONDS: Final = 86_400
SIGN_IN: Final = "sign_in."
"""how the actions of a sign-in begin"""
SETTINGS: Final = {"sign_in": "sign_in_days", "other": "audit_days", "details": "audit_detail_days"}
"""retention → the setting that says for how many days its entries are kept; `details`: those of every entry"""
PRUNE: Final = "prune"
"""the retention of entries about removals: they stay"""

Row: TypeAlias = "Mapping[str, str | int]"
"""an entry as the table `audit` has it"""
Problem: TypeAlias = Literal["changed", "removed", "inserted", "moved", "details", "future"]


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """A seal as it is stored."""

    number: int
    """from 1 on, without gaps"""
    at: int
    last: int
    """the last number that it covers"""
    digest: str
    """SHA-256 of the payload, hexadecimal"""
    seal: str
    """compact JWS"""
    digests: dict[str, str] = msgspec.field(default_factory=dict)
    """retention → JSON of the digests; those of entries that were all removed by age are gone"""
    latest: dict[str, int] = msgspec.field(default_factory=dict)
    """retention → the stored moment of the latest of these entries, by which the list is removed"""


class Digest(NamedTuple):
    """The digest of an entry, without its number."""

    number: int
    at: int
    digest: str
    """SHA-256, base64url"""


class AuditEnds(msgspec.Struct, frozen=True, kw_only=True):
    """The highest number in each table of the audit.

    Read at one moment; 0 for an empty one.
    """

    entry: int = 0
    last_given: int = 0
    """the last number that an entry got; 0 if the engine also counts entries that were rolled back"""
    details: int = 0
    """the last entry with details"""
    seal: int = 0
    digests: int = 0
    """the last seal with digests"""


class DigestList(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    entries: int
    latest: int
    """the moment of the latest one, epoch seconds"""
    digest: str
    """SHA-256 of the list's JSON, base64url"""


class SealClaims(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The payload of a seal."""

    iat: int
    seal: int
    previous: str
    """the digest of the seal before; empty for the first"""
    first: int
    last: int
    lists: dict[str, DigestList]


class SealFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it was sealed."""

    object: Literal["entry", "seal"]
    number: int
    problem: Problem
    text: str
    """a sentence"""


_DIGITS: Final = 9
"""of a number of days: an inserted entry may have any text"""
_JSON: Final = msgspec.json.Encoder().encode
_CLAIMS: Final = msgspec.json.Decoder(SealClaims)
_DIGESTS: Final = msgspec.json.Decoder(list[Digest])


def retention(action: str) -> str:
    """The group of entries that stay as long.

    Source: docs/decisions/0008
    """
    if action == AuditAction.AUDIT_PRUNE:
        return PRUNE
    return "sign_in" if action.startswith(SIGN_IN) else "other"


def entry_digest(row: Row) -> Digest:
    """The digest of an entry, over all its columns but the number.

    SHA-256 over RFC 8785 JSON of the columns that are not empty: a column that a later version adds, empty in earlier
    rows, changes no digest. Of details the row has a salted digest. Empty, which fits nothing, if a value is neither
    text nor number. Source: D58
    """
    number, at = row["number"], row["at"]
    if (
        not all(isinstance(value, str | int) for value in row.values())
        or isinstance(number, str)
        or isinstance(at, str)
    ):
        return Digest(int(number), 0, "")  # SQLite keeps any type: nobody here wrote this
    members = {name: row[name] for name in sorted(row) if row[name] and name != "number"}
    return Digest(number, at, base64url(sha256(_JSON(members)).digest()))


def detail_digest(salt: str, detail: str) -> str:
    """The digest of details that an entry has. Source: docs/decisions/0015"""
    return sha256(f"audit-detail:{salt}:{detail}".encode()).hexdigest()


def payload_digest(payload: bytes) -> str:
    """The digest by which the next seal names this one. Source: D58"""
    return sha256(payload).hexdigest()


def covering(
    digests: Mapping[str, list[Digest]], before: Seal | None, *, last: int, now: float
) -> tuple[SealClaims, dict[str, str]]:
    """The claims and digests of the next seal.

    `digests` are by retention, in the order of their numbers, and come back as JSON; `last` is where the range ends.
    Source: D58
    """
    texts = {name: _JSON(listed).decode() for name, listed in digests.items() if listed}
    lists = {
        name: DigestList(
            entries=len(digests[name]), latest=max(each.at for each in digests[name]), digest=_list_digest(text)
        )
        for name, text in texts.items()
    }
    number, covered, previous = (0, 0, "") if before is None else (before.number, before.last, before.digest)
    claims = SealClaims(iat=int(now), seal=number + 1, previous=previous, first=covered + 1, last=last, lists=lists)
    return claims, texts


def _list_digest(text: str) -> str:
    return base64url(sha256(text.encode()).digest())


class RemovalEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the audit about a removal by age."""

    number: int
    at: int
    detail: Mapping[str, str]


class Prunes:
    """Removals by age, from their entries in the audit.

    `now` is in epoch seconds. An entry explains removals of lower numbers, up to its own moment. One of the future
    explains none. Source: D58, docs/decisions/0008
    """

    def __init__(self, entries: Iterable[RemovalEntry], *, now: float) -> None:
        by_number = sorted({each.number: each for each in entries}.values(), key=_NUMBER, reverse=True)
        self.entries: Final = tuple(by_number)
        self._numbers: Final[dict[str, list[int]]] = {name: [] for name in SETTINGS}
        """negative, so that they ascend"""
        self._limits: Final[dict[str, list[int]]] = {name: [] for name in SETTINGS}
        """the greatest limit of these numbers and those before"""
        self.findings: Final = [_of_future(each) for each in by_number if _is_ahead(each, now)]
        for each in by_number:
            for name, setting in SETTINGS.items() if not _is_ahead(each, now) else ():
                days, limits = each.detail.get(setting, ""), self._limits[name]
                if days.isdecimal() and len(days) <= _DIGITS and int(days):
                    self._numbers[name].append(-each.number)
                    limits.append(max(each.at - int(days) * DAY_SECONDS, limits[-1] if limits else 0))

    def limit_before(self, name: str, number: int) -> int:
        """The limit of removals by age for an entry of this number.

        Older ones were removed. `name` is its retention; 0: no entry is about a removal. Source: D58
        """
        found = bisect_left(self._numbers.get(name, []), -number)
        return self._limits[name][found - 1] if found else 0


_NUMBER: Final = attrgetter("number")


def _is_ahead(entry: RemovalEntry, now: float) -> bool:
    return entry.at > now + CLOCK_AHEAD_SECONDS


def _of_future(entry: RemovalEntry) -> SealFinding:
    text = f"Entry {entry.number} tells of a removal at a moment that has not come: it explains none."
    return entry_finding(entry.number, "future", text)


class Chain:
    """Seals, followed from the first one on.

    `keys` are the public audit keys by kid; `digest` and `last` are those of the seal that was followed last.
    """

    def __init__(self, keys: Mapping[str, Verifier]) -> None:
        self._keys: Final = keys
        self._number = 0
        self.digest = ""
        self.last = 0
        self._known = True
        """whether the digest of the last seal is known: it was there, and could be read"""

    def resume(self, seal: Seal | None, number: int) -> None:
        """Go on after a seal that was followed before.

        It has this number; None: it is not there. Source: D58
        """
        claims, digest, _ = (None, "", "") if seal is None else self._read(seal)
        self._number, self.digest, self._known = number, digest, bool(digest)
        self.last = claims.last if claims is not None else seal.last if seal is not None else 0

    def follow(self, seal: Seal) -> tuple[SealClaims | None, list[SealFinding]]:
        """Read the next seal.

        Returns its claims, None if they cannot be believed, and the findings. Source: D58, RFC 7515 §5.2
        """
        found: list[SealFinding] = []
        if seal.number != self._number + 1:
            several = seal.number > self._number + 2
            missing = f"Seals {self._number + 1} to {seal.number - 1} are" if several else f"Seal {self._number + 1} is"
            covered = "they cover" if several else "it covers"
            text = f"{missing} missing: the entries that {covered}, after number {self.last}, cannot be verified."
            found.append(seal_finding(self._number + 1, "removed", text))
            self._known = False
        claims, digest, wrong = self._read(seal)
        if claims is not None and self._known:
            if claims.previous != self.digest:
                wrong = "it does not follow the one before it: one of the two was exchanged"
            elif claims.first != self.last + 1:
                wrong = "its range does not begin where the one before ends"
        if wrong:
            text = f"Seal {seal.number} was changed: {wrong}. Its entries, {self.last + 1} to {seal.last}, cannot be verified."
            found.append(seal_finding(seal.number, "changed", text))
            claims = None
        elif claims is not None and (claims.last, claims.iat, digest) != (seal.last, seal.at, seal.digest):
            text = f"The row of seal {seal.number} was changed; what was signed is whole."
            found.append(seal_finding(seal.number, "changed", text))
        self._known = bool(digest)
        self._number, self.digest, self.last = seal.number, digest, seal.last if claims is None else claims.last
        return claims, found

    def _read(self, seal: Seal) -> tuple[SealClaims | None, str, str]:
        """Claims, digest of the payload, and faults in words."""
        try:
            token = compact.parse(seal.seal)
            key = self._keys.get(token.kid or "")
            if key is None or token.header.get("typ") != TYP:
                return None, "", "no audit key has signed it, or that key was removed"
            compact.verify(token, key)
            payload = from_base64url(token.signing_input.partition(b".")[2])
            claims = _CLAIMS.decode(payload)
        except (JoseError, msgspec.MsgspecError) as error:
            return None, "", str(error)
        digest = payload_digest(payload)
        if claims.seal != seal.number:
            return None, "", f"it is seal {claims.seal}"
        return claims, digest, ""


class RangeCheck:
    """The entries of one seal's range, compared with their digests."""

    def __init__(self, claims: SealClaims, seal: Seal) -> None:
        self._number: Final = claims.seal
        self._first: Final = claims.first
        self._left: Final[dict[int, tuple[str, Digest]]] = {}
        self._numbers: Final[dict[str, int]] = {}
        self._gone: Final[dict[str, DigestList]] = {}
        self._unlisted: Final[list[int]] = []
        self.broken: Final[list[SealFinding]] = []
        """faults of the lists"""
        for name in {**claims.lists, **seal.digests}:
            self._take(name, claims.lists.get(name), seal)

    def _take(self, name: str, listed: DigestList | None, seal: Seal) -> None:
        text = seal.digests.get(name)
        if listed is not None and text is None:
            self._gone[name] = listed
            return
        is_moved = listed is not None and seal.latest.get(name, listed.latest) != listed.latest
        if listed is None or text is None or is_moved or _list_digest(text) != listed.digest:
            text = f"The digests of seal {seal.number} ({name}) were changed: the entries that they are of cannot be verified."
            self.broken.append(seal_finding(seal.number, "changed", text))
            return
        for digest in _DIGESTS.decode(text):
            self._left[digest.number] = name, digest
            self._numbers[digest.digest] = digest.number

    def entry(self, row: Row) -> SealFinding | None:
        found = entry_digest(row)
        number = found.number
        _, sealed = self._left.pop(number, ("", None))
        if sealed is not None and found.digest and sealed.digest == found.digest:
            return None
        other = self._numbers.get(found.digest)
        if other is not None and other != number:
            return entry_finding(number, "moved", f"Entry {number} has what entry {other} had: entries were reordered.")
        if sealed is not None:
            return entry_finding(number, "changed", f"Entry {number} was changed.")
        self._unlisted.append(number)
        return None

    def rest(self, prunes: Prunes) -> tuple[int, list[SealFinding]]:
        """The number of entries that were removed by age, and further findings.

        These are what was removed otherwise, and what was inserted. To be asked when every entry of the range was
        looked at.
        """
        old = [name for name, listed in self._gone.items() if listed.latest < prunes.limit_before(name, self._first)]
        pruned = sum(self._gone[name].entries for name in old)
        found = [
            seal_finding(
                self._number,
                "removed",
                f"The digests of seal {self._number} ({name}) were removed: the entries that they are of cannot be verified.",
            )
            for name in self._gone
            if name not in old
        ]
        for number, (name, digest) in self._left.items():
            if digest.at < prunes.limit_before(name, number):
                pruned += 1
            else:
                found.append(entry_finding(number, "removed", f"Entry {number} was removed."))
        if len(old) == len(self._gone) and not self.broken:  # else it may have been in a list that is not there
            texts = {n: f"Entry {n} was inserted: it was not there when its range was sealed." for n in self._unlisted}
            found += [entry_finding(number, "inserted", text) for number, text in texts.items()]
        return pruned, found


def entry_finding(number: int, problem: Problem, text: str) -> SealFinding:
    """A finding on an entry. Source: D58"""
    return SealFinding(object="entry", number=number, problem=problem, text=text)


def seal_finding(number: int, problem: Problem, text: str) -> SealFinding:
    """A finding on a seal. Source: D58"""
    return SealFinding(object="seal", number=number, problem=problem, text=text)


def details_finding(row: Row, salt: str | None, detail: str | None) -> SealFinding | None:
    """The finding on exchanged details of an entry, if they are.

    Erased ones are none. Source: D58
    """
    if salt is None or detail is None or row["digest"] == detail_digest(salt, detail):
        return None
    number = int(row["number"])
    return entry_finding(number, "details", f"The details of entry {number} were changed.")


def missing_seals(*, has_seal: bool, has_key: bool, had_key: bool) -> Iterator[SealFinding]:
    """The finding on an audit without any seal, if there was one.

    The first audit key is made to sign the first seal, and the database keeps a note of it (`had_key`).
    Source: D58
    """
    if has_seal or not (has_key or had_key):
        return
    reason = (
        "there is an audit key, and the first one is made together with the first seal"
        if has_key
        else "the database says that an audit key was made, together with the first seal; the key is missing, too"
    )
    yield seal_finding(1, "removed", f"Every seal was removed: {reason}.")


def was_sealed_again(first_key_at: int | None, first_seal_at: int | None) -> bool:
    """Return whether the first seal comes long after the first key.

    Both are made together: earlier seals were removed, and a server sealed the entries again. Source: D58
    """
    return first_key_at is not None and first_seal_at is not None and first_seal_at - first_key_at > DAY_SECONDS


def replaced_seals(first_key_at: int | None, first_seal_at: int | None) -> Iterator[SealFinding]:
    """The finding on seals that replaced earlier ones. Source: D58"""
    if was_sealed_again(first_key_at, first_seal_at):
        text = (
            "Seal 1 is more than a day younger than the first audit key, which is made together with the first seal: "
            "earlier seals were removed, and the entries were sealed again."
        )
        yield seal_finding(1, "removed", text)


def cut_ends(ends: AuditEnds) -> Iterator[SealFinding]:
    """The findings on a cut-off end: of the entries, of the seals.

    Source: D58
    """
    last = max(ends.last_given, ends.details)
    if last > ends.entry:
        reason = "its details are still there" if last == ends.details else f"numbers were given up to {last}"
        text = f"Entry {last} is missing, after entry {ends.entry}, the last one: {reason}."
        yield entry_finding(last, "removed", text)
    if ends.digests > ends.seal:
        text = f"Seal {ends.digests} is missing, after seal {ends.seal}, the last one: its digests are still there."
        yield seal_finding(ends.digests, "removed", text)


def erased_by_age(row: Row, prunes: Prunes) -> bool:
    """Return whether a removal by age explains missing details.

    It removed the details, was about to remove the entry itself, or also removed the entry of an erasure. Source: D57,
    D58
    """
    at, number = int(row["at"]), int(row["number"])
    return any(at < prunes.limit_before(name, number) for name in ("details", retention(str(row["action"])), "other"))


def people_of(row: Row) -> tuple[str, ...]:
    """The people whose erasure removes an entry's details.

    They are its actor and its object, by identifier. Source: D57
    """
    kind, _, actor = str(row["actor"]).partition(":")
    about = str(row["object"]).partition("/")[0]
    return tuple(filter(None, dict.fromkeys((actor if kind == "user" else "", about))))


def unexplained_erasure(row: Row) -> SealFinding:
    """The finding on a removal of details without explanation. Source: D57, D58"""
    number = int(row["number"])
    text = f"The details of entry {number} were removed, and neither an audit.erase nor an audit.prune explains it."
    return entry_finding(number, "details", text)
