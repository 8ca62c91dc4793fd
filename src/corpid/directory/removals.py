"""What `--prune` removes: records that the file does not name in a section that it has, and what hangs on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from corpid.directory.current import Current, Key
    from corpid.directory.document import Document, Entry
    from corpid.directory.sections import Kind

_DEPENDS: Final[Mapping[Kind, tuple[tuple[Kind, tuple[str, ...]], ...]]] = {
    "membership": (("user", ("user_id",)), ("entity", ("entity_id",))),
    "credentials": (("user", ("user_id",)),),
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
    wanted: Mapping[Kind, Mapping[Key, tuple[Entry, msgspec.Struct]]],
) -> dict[Kind, frozenset[Key]]:
    """The keys to remove, by kind. `current` holds the whole directory. Source: R-21, docs/directory.md"""
    removed: dict[Kind, frozenset[Key]] = {}
    for kind in document.complete:
        removed[kind] = frozenset(current.of(kind).keys() - wanted[kind].keys())
    listed = {user_ids[name] for name in document.listed_members}
    unlisted = (key for key in current.of("membership") if key[0] in listed and key not in wanted["membership"])
    removed["membership"] = frozenset(unlisted)
    for kind, depends in _DEPENDS.items():
        orphans = [
            key
            for key, record in current.of(kind).items()
            if key not in wanted[kind]
            and any(tuple(getattr(record, m) for m in members) in removed.get(on, ()) for on, members in depends)
        ]
        removed[kind] = removed.get(kind, frozenset()).union(orphans)
    return removed
