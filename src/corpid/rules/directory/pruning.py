"""Pruning: the removal of records that a document does not name."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.rules.directory.records import Administrator, ThirdPartyAssignment, ThirdPartyGrant
from corpid.rules.directory.sources import RetainedRecord
from corpid.rules.directory.third_parties import without_grant

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from collections.abc import Set as AbstractSet

    import msgspec

    from corpid.rules.directory.current import Current, Key
    from corpid.rules.directory.document import Document, Entry
    from corpid.rules.directory.sections import Kind
    from corpid.rules.directory.sources import Ownership

Named: TypeAlias = "Mapping[Kind, set[Key]]"
"""kind → keys that a document names"""
Wanted: TypeAlias = "Mapping[Kind, Mapping[Key, tuple[Entry, msgspec.Struct]]]"
"""kind → the document's entries, by key"""
Removed: TypeAlias = "dict[Kind, frozenset[Key]]"

_DEPENDS: Final[Mapping[Kind, tuple[tuple[Kind, tuple[str, ...]], ...]]] = {
    "membership": (("user", ("user_id",)), ("entity", ("entity_id",))),
    "credentials": (("user", ("user_id",)),),
    "administrator": (("membership", ("user_id", "entity_id")),),
    "operator": (("user", ("user_id",)),),
    "assignment": (("membership", ("user_id", "entity_id")), ("service", ("service_id",))),
    "grant": (
        ("entity", ("client_entity_id",)),
        ("entity", ("entity_id",)),
        ("service", ("service_id",)),
    ),
    "third-party row": (
        ("membership", ("user_id", "entity_id")),
        ("entity", ("client_entity_id",)),
        ("service", ("service_id",)),
    ),
}
"""kind → the records without which one of it means nothing, each by the members that name it; in order"""


def removals(
    document: Document,
    current: Current,
    user_ids: Mapping[str, str],
    named: Named,
    wanted: Wanted,
    prune: frozenset[Kind],
    claims: Ownership | None,
) -> tuple[Removed, list[RetainedRecord]]:
    """The keys to remove, by kind, and the records left to others.

    `current` holds the whole directory; of other kinds than `prune` goes only what depends on a removed record. What
    others wrote stays, with everything that it rests on; the roles under a removed grant go with it. Source: R-21, D56,
    D65, docs/directory.md
    """
    removed: Removed = {}
    if not prune:
        return removed, []
    for kind in document.complete & prune:
        removed[kind] = frozenset(current.records_of(kind).keys() - named[kind])
    listed = {user_ids[name] for name in document.listed_members} if "membership" in prune else set()
    unlisted = (key for key in current.records_of("membership") if key[0] in listed and key not in named["membership"])
    removed["membership"] = frozenset(unlisted)
    kept: list[RetainedRecord] = []
    if claims is not None:
        held = _held(current, claims)
        pruned = removed.get("grant", frozenset()) - held["grant"]
        held["grant"] |= {grant for grant, _ in _ended(pruned, held["third-party row"], current, wanted)}
        for kind, keys in removed.items():
            stay = sorted(keys & held[kind])
            kept += [
                RetainedRecord(verb="remove", kind=kind, key=key, by=claims.other_owners(kind, key)) for key in stay
            ]
            removed[kind] = keys.difference(stay)
    for kind, depends in _DEPENDS.items():
        orphans = [
            key
            for key, record in current.records_of(kind).items()
            if key not in named[kind]
            and any(tuple(getattr(record, m) for m in members) in removed.get(on, ()) for on, members in depends)
        ]
        removed[kind] = removed.get(kind, frozenset()).union(orphans)
    undecided = current.records_of("third-party row").keys() - wanted["third-party row"].keys()
    removed["third-party row"] |= {row for _, row in _ended(removed["grant"], undecided, current, wanted)}
    return removed, kept


def _ended(
    grants: AbstractSet[Key], roles: AbstractSet[Key], current: Current, wanted: Wanted
) -> Iterator[tuple[Key, Key]]:
    """The roles that would end with grants, each with its grant (D56)."""
    after = (
        {**current.records_of("grant"), **{key: record for key, (_, record) in wanted["grant"].items()}}
        if grants
        else {}
    )
    remaining: defaultdict[Key, list[ThirdPartyGrant]] = defaultdict(list)
    under: defaultdict[Key, list[ThirdPartyAssignment]] = defaultdict(list)
    for key, grant in after.items():
        if isinstance(grant, ThirdPartyGrant) and key not in grants:
            remaining[key[:3]].append(grant)
    for key in roles if grants else ():
        row = current.records_of("third-party row").get(key)
        if isinstance(row, ThirdPartyAssignment):
            under[row.client_entity_id, row.entity_id, row.service_id].append(row)
    for key in grants:
        grant = after[key]
        if isinstance(grant, ThirdPartyGrant):
            yield from ((key, row.key) for row in without_grant(grant, remaining[key[:3]], under[key[:3]]))


def _held(current: Current, claims: Ownership) -> defaultdict[Kind, set[Key]]:
    """The records of others, and all that they rest on."""
    held: defaultdict[Kind, set[Key]] = defaultdict(set)
    waiting = [
        (kind, key) for kind in claims.sources for key in current.records_of(kind) if claims.other_owners(kind, key)
    ]
    while waiting:
        kind, key = waiting.pop()
        record = current.records_of(kind).get(key)
        if record is not None and key not in held[kind]:
            held[kind].add(key)
            waiting += rests_on(kind, record)
    return held


def rests_on(kind: Kind, record: msgspec.Struct) -> Iterable[tuple[Kind, Key]]:
    """The records without which one means nothing. Source: R-14, R-21, D53."""
    for on, members in _DEPENDS.get(kind, ()):
        yield on, tuple(getattr(record, member) for member in members)
    if isinstance(record, Administrator) and isinstance(record.services, tuple):
        yield from (("service", (service_id,)) for service_id in record.services)
