"""Evidence of unrecorded removals from the audit (D58).

Seals find what is missing between the first and the last of them. If seals are missing themselves, or the end is cut
off, the rest of the database may still show what was there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.audit_seals import DAY_SECONDS, SealFinding, entry_finding, retention, seal_finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpid.rules.audit_seals import Prunes, Row

_DETAILS: Final = "details"


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
    return any(at < prunes.limit_before(name, number) for name in (_DETAILS, retention(str(row["action"])), "other"))


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
