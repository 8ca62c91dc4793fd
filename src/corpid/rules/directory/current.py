"""The part of the directory that a file concerns, and its users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.sections import SECTIONS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.rules.directory.document import Document
    from corpid.rules.directory.records import User

Key = tuple[str, ...]

NAMES_USERS: Final[tuple[Kind, ...]] = (
    "credentials", "membership", "administrator", "operator", "assignment", "third-party row",
)  # fmt: skip
"""kinds whose keys begin with a user"""


class References(msgspec.Struct, frozen=True, kw_only=True):
    """Every record that a document refers to, users by user name."""

    user_names: frozenset[str]
    user_ids: frozenset[str]
    entities: frozenset[Key]
    services: frozenset[Key]
    memberships: frozenset[Key]
    """(user name, entity identifier)"""


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """Records that were read, by kind and key.

    Kinds that do not matter may be missing.
    """

    records: dict[Kind, dict[Key, msgspec.Struct]]

    def records_of(self, kind: Kind) -> dict[Key, msgspec.Struct]:
        return self.records.get(kind, {})


def references(document: Document) -> References:
    """The records to read before a plan can be made.

    Source: R-14, R-21
    """
    names: set[str] = {key[0] for key in document.entries_of("user")}
    entities: set[Key] = set(document.entries_of("entity"))
    services: set[Key] = set(document.entries_of("service"))
    memberships: set[Key] = set(document.entries_of("membership"))
    for kind in NAMES_USERS:
        names.update(key[0] for key in document.entries_of(kind))
    for section in SECTIONS.values():
        for key in document.entries_of(section.kind):
            named = dict(zip(section.identity, key, strict=True))
            entities.update((named[member],) for member in ("entity_id", "client_entity_id") if member in named)
            services.update((named[member],) for member in ("service_id",) if member in named)
            if "user_id" in named and "entity_id" in named:
                memberships.add((named["user_id"], named["entity_id"]))
    entities.update((entity_id,) for _, entity_id in memberships)
    for entry in (*document.entries_of("client").values(), *document.entries_of("administrator").values()):
        listed = entry.fields.get("services", ())
        services.update((service_id,) for service_id in listed if isinstance(listed, tuple))  # type: ignore[attr-defined]
    user_ids = {
        str(entry.fields["user_id"]) for entry in document.entries_of("user").values() if "user_id" in entry.fields
    }
    return References(
        user_names=frozenset(names),
        user_ids=frozenset(user_ids),
        entities=frozenset(entities),
        services=frozenset(services),
        memberships=frozenset(memberships),
    )


def new_users(document: Document, by_name: Mapping[str, User]) -> list[str]:
    """The user names that need a fresh identifier.

    They are not in the directory, and the file names no identifier. Source: R-12.4
    """
    return [
        key[0]
        for key, entry in document.entries_of("user").items()
        if key[0] not in by_name and "user_id" not in entry.fields
    ]


def user_ids(
    document: Document, by_name: Mapping[str, User], by_id: Mapping[str, User], fresh: Mapping[str, str]
) -> dict[str, str]:
    """User name → identifier, for every known user.

    Known to the directory or to the file. `fresh` holds identifiers for the newcomers. An `id` in the file that belongs
    to a user of another name renames that user. Raises DirectoryError if name and identifier contradict each other.
    R-12.4, D51.
    """
    problems: list[Problem] = []
    ids = {name: user.user_id for name, user in by_name.items()} | dict(fresh)
    owners: dict[str, str] = {}
    for (name,), entry in document.entries_of("user").items():
        wanted = str(entry.fields.get("user_id", ids.get(name, "")))
        line = entry.line_of("user_id")
        if name in by_name and by_name[name].user_id != wanted:
            problems.append(
                Problem(line, f"id: {name} already has the id {by_name[name].user_id}, which never changes")
            )
        if wanted in owners:
            problems.append(Problem(line, f"id: {owners[wanted]} has this id too"))
        former = by_id.get(wanted)
        if former is not None and former.user_name != name and (former.user_name,) in document.entries_of("user"):
            problems.append(Problem(line, f"id: belongs to {former.user_name}, who is also in this file"))
        owners[wanted] = name
        ids[name] = wanted
    if problems:
        raise DirectoryError(document.file, problems)
    return ids
