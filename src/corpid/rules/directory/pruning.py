"""Pruning: the removal of records that a document does not name."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, TypeAlias

from corpid.rules.directory.records import Administrator
from corpid.rules.directory.sources import Kept

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import msgspec

    from corpid.rules.directory.current import Current, Key
    from corpid.rules.directory.document import Document
    from corpid.rules.directory.sections import Kind
    from corpid.rules.directory.sources import Claims

Named: TypeAlias = "Mapping[Kind, set[Key]]"
"""kind → keys that a document names"""
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
    prune: frozenset[Kind],
    claims: Claims | None,
) -> tuple[Removed, list[Kept]]:
    """The keys to remove, by kind, and the records left to others.

    `current` holds the whole directory; of other kinds than `prune` goes only what depends on a removed record. What
    others wrote stays, with everything that it rests on. Source: R-21, D65, docs/directory.md
    """
    removed: Removed = {}
    if not prune:
        return removed, []
    for kind in document.complete & prune:
        removed[kind] = frozenset(current.of(kind).keys() - named[kind])
    listed = {user_ids[name] for name in document.listed_members} if "membership" in prune else set()
    unlisted = (key for key in current.of("membership") if key[0] in listed and key not in named["membership"])
    removed["membership"] = frozenset(unlisted)
    kept: list[Kept] = []
    if claims is not None:
        held = _held(current, claims)
        for kind, keys in removed.items():
            stay = sorted(keys & held[kind])
            kept += [Kept(verb="remove", kind=kind, key=key, by=claims.others(kind, key)) for key in stay]
            removed[kind] = keys.difference(stay)
    for kind, depends in _DEPENDS.items():
        orphans = [
            key
            for key, record in current.of(kind).items()
            if key not in named[kind]
            and any(tuple(getattr(record, m) for m in members) in removed.get(on, ()) for on, members in depends)
        ]
        removed[kind] = removed.get(kind, frozenset()).union(orphans)
    return removed, kept


def _held(current: Current, claims: Claims) -> defaultdict[Kind, set[Key]]:
    """The records of others, and all that they rest on."""
    held: defaultdict[Kind, set[Key]] = defaultdict(set)
    waiting = [(kind, key) for kind in claims.sources for key in current.of(kind) if claims.others(kind, key)]
    while waiting:
        kind, key = waiting.pop()
        record = current.of(kind).get(key)
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
