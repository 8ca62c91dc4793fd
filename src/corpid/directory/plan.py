"""What a directory file would change. Pure: the same file and directory give the same plan.

Additive: a member that the file does not name keeps its value, a record that it does not name
stays; only `prune` removes, and only within the sections that the file has.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.directory.checks import check
from corpid.directory.current import NAMES_USERS, Current, Key
from corpid.directory.problems import DirectoryError, Problem, quoted
from corpid.directory.records import (
    Assignment,
    Credentials,
    Entity,
    Membership,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
)
from corpid.directory.removals import removals
from corpid.directory.sections import KINDS, SECTIONS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from corpid.directory.document import Document, Entry

CheckClient: TypeAlias = "Callable[[msgspec.Struct], Iterable[tuple[str, str]]]"
"""the rules of client registration: member and reason of everything wrong"""

RECORDS: Final[Mapping[Kind, type[msgspec.Struct]]] = {
    "service": Service,
    "entity": Entity,
    "user": User,
    "credentials": Credentials,
    "membership": Membership,
    "assignment": Assignment,
    "grant": ThirdPartyGrant,
    "third-party row": ThirdPartyAssignment,
}
_NEEDED: Final[Mapping[Kind, tuple[tuple[str, str], ...]]] = {
    section.kind: tuple((name, key.member) for name, key in section.keys.items() if key.needed)
    for section in SECTIONS.values()
    if section.identifier
}
_IDENTITY: Final[Mapping[Kind, tuple[str, ...]]] = {
    **{section.kind: section.identity for section in SECTIONS.values()},
    "user": ("user_id",),
    "credentials": ("user_id",),
    "membership": ("user_id", "entity_id"),
}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One record that is added, changed or removed. `was` is what is there, `becomes` what will be."""

    verb: Literal["add", "change", "remove"]
    kind: Kind
    key: Key
    was: msgspec.Struct | None = None
    becomes: msgspec.Struct | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in the order of writing, and what a person should look at."""

    changes: tuple[Change, ...]
    warnings: tuple[Problem, ...] = ()


def plan(
    document: Document,
    current: Current,
    user_ids: Mapping[str, str],
    *,
    client_record: type[msgspec.Struct],
    check_client: CheckClient,
    prune: bool = False,
) -> Plan:
    """Compare a file with the directory.

    `current` holds what the file names or refers to, and with `prune` everything; `user_ids` is user
    name → identifier. Plain passwords were hashed or dropped before. Raises DirectoryError with every
    problem found. D51, R-14, R-21.
    """
    problems: list[Problem] = []
    wanted: dict[Kind, dict[Key, tuple[Entry, msgspec.Struct]]] = {}
    types = {**RECORDS, "client": client_record}
    for kind in KINDS:
        wanted[kind] = {}
        for entry in document.of(kind).values():
            if not _known_user(entry, user_ids):
                problems.append(
                    Problem(entry.line, f"there is no user {quoted(entry.key[0])}, here or in the directory")
                )
                continue
            key = record_key(entry, user_ids)
            existing = current.of(kind).get(key)
            problems += _missing(entry) if existing is None else []
            if not problems:
                wanted[kind][key] = (entry, _record(entry, key, existing, types[kind]))
    if problems:
        raise DirectoryError(document.file, problems)
    removed = removals(document, current, user_ids, wanted) if prune else {}
    found = check(wanted, current, removed, check_client)
    if found.problems:
        raise DirectoryError(document.file, found.problems)
    changes = [*_upserts(wanted, current), *_deletions(removed, current)]
    return Plan(changes=tuple(changes), warnings=tuple(sorted(set(found.warnings))))


def record_key(entry: Entry, user_ids: Mapping[str, str]) -> Key:
    """The key of an entry's record: its user's name replaced by the identifier. Raises KeyError. R-12.4"""
    if entry.kind == "user" or entry.kind in NAMES_USERS:
        return (user_ids[entry.key[0]], *entry.key[1:])
    return entry.key


def _known_user(entry: Entry, user_ids: Mapping[str, str]) -> bool:
    return entry.kind not in NAMES_USERS or entry.key[0] in user_ids


def _missing(entry: Entry) -> list[Problem]:
    needed = list(_NEEDED.get(entry.kind, ()))
    if entry.kind == "entity" and entry.fields.get("type", "UEN") != "UEN":
        needed.append(("registration_number", "registration_number"))
    lacking = [name for name, member in needed if member not in entry.fields]
    if not lacking:
        return []
    return [Problem(entry.line, f"the {entry.kind} {' '.join(entry.key)} is new and lacks {', '.join(lacking)}")]


def _record(entry: Entry, key: Key, existing: msgspec.Struct | None, record: type[msgspec.Struct]) -> msgspec.Struct:
    fields = dict(entry.fields)
    if entry.kind == "user":
        fields["user_name"] = entry.key[0]
    if entry.kind == "credentials":
        known = existing if isinstance(existing, Credentials) else Credentials(user_id=key[0])
        return with_factors(known, fields)
    if existing is not None:
        return msgspec.structs.replace(existing, **fields)
    if entry.kind == "entity":
        fields.setdefault("registration_number", key[0])
    return record(**{**fields, **dict(zip(_IDENTITY[entry.kind], key, strict=True))})


def with_factors(known: Credentials, fields: Mapping[str, object]) -> Credentials:
    """Credentials after a file named factors: one that a person or an operator set since stays untouched.

    The hash that a file said is remembered by its own hash, so that a later strengthening of the stored
    one is not undone by the same file. D44, D45.
    """
    changed: dict[str, object] = {}
    password_hash, secret = fields.get("password_hash"), fields.get("totp_secret")
    if password_hash is not None and known.password_set_by == "directory":
        source = hashlib.sha256(str(password_hash).encode()).hexdigest()
        if known.password_source != source:
            changed |= {"password_hash": password_hash, "password_source": source}
    if secret is not None and known.totp_set_by == "directory" and known.totp_secret != secret:
        changed |= {"totp_secret": secret, "totp_last_step": 0}
    return msgspec.structs.replace(known, **changed)


def _upserts(wanted: Mapping[Kind, Mapping[Key, tuple[Entry, msgspec.Struct]]], current: Current) -> Iterable[Change]:
    for kind in KINDS:
        for key, (_, record) in wanted[kind].items():
            existing = current.of(kind).get(key)
            if existing is None:
                yield Change(verb="add", kind=kind, key=key, becomes=record)
            elif existing != record:
                yield Change(verb="change", kind=kind, key=key, was=existing, becomes=record)


def _deletions(removed: Mapping[Kind, frozenset[Key]], current: Current) -> Iterable[Change]:
    for kind in reversed(KINDS):
        for key in sorted(removed.get(kind, ())):
            yield Change(verb="remove", kind=kind, key=key, was=current.of(kind)[key])
