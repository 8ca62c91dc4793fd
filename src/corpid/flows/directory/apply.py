"""Directory files: applied (`corpid apply`), exported, and single entries of one.

Commands and the console change a record as a file with this one entry would.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import msgspec

from corpid.flows.directory.person_names import name_subjects
from corpid.flows.directory.write import REMOVALS, InvalidMembers, Refused, audit_event, read_pages, write_changes
from corpid.flows.large import in_thread_if_many, in_turns
from corpid.jose.keys import KeySetError, parse_client_key_set
from corpid.rules.audit import AuditAction, AuditQuery
from corpid.rules.authentication.passwords import COMMAND_LINE, PasswordRefused, require_allowed_password
from corpid.rules.authentication.records import Credentials
from corpid.rules.characters import printable
from corpid.rules.directory.access import Actor, Object, authorise
from corpid.rules.directory.differences import Difference, RetainedRecordNote, difference, kept_record
from corpid.rules.directory.document import (
    KINDS,
    LEVELS,
    SECTION_OF,
    SECTIONS,
    Current,
    DirectoryDocument,
    DocumentEntry,
    Key,
    Kind,
    entry_text,
    named_users,
    new_users,
    one_entry,
    parse,
    user_ids,
)
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.plan import ALL_BUT_LEVELS, OF_PEOPLE, Plan, keys_named, plan, record_key
from corpid.rules.directory.records import (
    KIND_OF,
    RECORDS,
    Entity,
    Membership,
    Precondition,
    Service,
    Sources,
    ThirdPartyGrant,
    User,
    Verb,
)
from corpid.rules.directory.sources import RELATIONS, UNKNOWN, Ownership, SourcedRecord, channel, people
from corpid.rules.fields import NOTHING, KeyedRecord
from corpid.rules.oauth.client_registration import (
    PLAIN_RULES,
    RegistrationError,
    RegistrationRules,
    new_client,
    public_key_set,
    register,
)
from corpid.rules.oauth.records import Client
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from corpid.outbound.passwords import Passwords
    from corpid.stores.sql.registry import Registry

    Records: TypeAlias = dict[Kind, dict[Key, KeyedRecord]]
    AllSources: TypeAlias = dict[Kind, dict[Key, Sources]]

HASHED_AT_ONCE: Final = 4
_BETWEEN: Final = ("client_entity_id", "entity_id", "service_id")
_GRANTS_AT_ONCE: Final = 200
_BYTES_OF_AN_ENTRY: Final = 100
"""of the text of a file, about"""
_EVERY: Final[Mapping[Kind, type[KeyedRecord]]] = {**RECORDS, "client": Client}
_EXPORT_HEADER = (
    "# A CorpID directory. It holds no passwords and no TOTP secrets; applying it leaves those unchanged.\n"
)
R = TypeVar("R", bound=KeyedRecord)
ADDS: Final[frozenset[Verb]] = frozenset({"add"})
CHANGES: Final[frozenset[Verb]] = frozenset({"change"})
REMOVES: Final[frozenset[Verb]] = frozenset({"remove"})
SETS: Final[frozenset[Verb]] = ADDS | CHANGES
_CHANGED_WITH: Final[Mapping[Kind, str]] = {"client": "corpid client update", "entity": "corpid entity update"}
"""the command that changes one record of a kind"""


class ApplyResult(msgspec.Struct, frozen=True, kw_only=True):
    """Changes by a file, made or planned, in order of writing."""

    differences: tuple[Difference, ...]
    warnings: tuple[FileProblem, ...]
    written: bool
    kept: tuple[RetainedRecordNote, ...] = ()
    """what the file would change or remove, and leaves to others"""


async def apply_document(
    registry: Registry,
    passwords: Passwords,
    content: bytes,
    *,
    file: str,
    actor: Actor,
    new_user_id: Callable[[], str],
    document: DirectoryDocument | None = None,
    rules: RegistrationRules = PLAIN_RULES,
    within: Callable[[ApplyResult], Awaitable[None]] | None = None,
    plain_passwords: bool = False,
    prune: bool = False,
    prune_administrators: bool = False,
    take_over: bool = False,
    dry_run: bool = False,
) -> ApplyResult:
    """Apply a directory file.

    `file` names it in errors, `new_user_id` gives a UUID. `document` is the content if it was read already. `within` is
    awaited in the last transaction of what is written, or in one of its own if there is nothing to write.

    Additive: what the file does not name is unchanged, unless `prune`, or, for administrators and operators,
    `prune_administrators`. What others than files have written since stays as it is, unless `take_over`. `rules` are
    those of clients; `plain_passwords` are for development. A large file is written in several short transactions;
    since applying is idempotent, an interrupted one is finished by applying again. Raises DirectoryError with every
    problem of the file, access.Forbidden, StoreUnavailable, PasswordsBusy; nothing was changed then. Source:
    docs/directory.md, docs/decisions/0018, D44, D51, D65, R-14, R-21
    """
    read = document
    if read is None:
        number = len(content) // _BYTES_OF_AN_ENTRY
        read = await in_thread_if_many(lambda: parse(content, file, plain_passwords=plain_passwords), number)
    kinds = (ALL_BUT_LEVELS if prune else frozenset()) | (LEVELS if prune_administrators else frozenset())
    prepared = await prepare_document(
        registry, passwords, read, new_user_id=new_user_id, rules=rules, prune=kinds,
        claims=Ownership(channel=channel(actor.name), sources={}, take_over=take_over),
    )  # fmt: skip
    changes = prepared.changes
    applied = await in_thread_if_many(lambda: _describe(prepared, written=bool(changes) and not dry_run), len(changes))

    counts = {str(verb): str(number) for verb, number in Counter(change.verb for change in changes).items()}
    digest = hashlib.sha256(content).hexdigest()
    summary = audit_event(actor, AuditAction.DIRECTORY_APPLY, printable(file), sha256=digest, **counts)

    async def last() -> None:
        if changes:
            await registry.audit.write(summary)
        if within is not None:
            await within(applied)

    if changes and not dry_run:
        await write_changes(registry, actor, changes, planned=True, within=last)
    elif within is not None and not dry_run:
        async with registry.transaction():
            await last()
    return applied


async def export_directory(registry: Registry, *, actor: Actor) -> AsyncIterator[str]:
    """The text of a directory file, piece by piece.

    Applying it again changes nothing.

    Passwords, their hashes and TOTP secrets are never read. Sections without records are left out.
    Raises access.Forbidden, StoreUnavailable. Source: docs/directory.md
    """
    for each in KINDS:
        authorise(actor, "read", Object(kind=each))
    yield _EXPORT_HEADER
    names: dict[str, str] = {}
    held: defaultdict[str, list[Membership]] = defaultdict(list)
    opened = {""}
    for name, section in SECTIONS.items():
        if section.kind == "user":
            names = {
                each.user_id: each.user_name async for each in registry.directory.scan(User) if not each.placeholder
            }
            async for membership in registry.directory.scan(Membership):
                held[membership.user_id].append(membership)
        parent, _, title = name.rpartition(".")
        heading = f"  {title}:\n" if parent else f"\n{title}:\n"
        async for record in registry.directory.scan(_EVERY[section.kind]):
            user_id = getattr(record, "user_id", "")
            if user_id and user_id not in names:  # of somebody who has not accepted an invitation
                continue
            if parent not in opened:
                opened.add(parent)
                yield f"\n{parent}:\n"
            yield heading + entry_text(name, record, names, held[user_id])
            heading = ""


async def prepare_document(
    registry: Registry,
    passwords: Passwords,
    document: DirectoryDocument,
    *,
    new_user_id: Callable[[], str],
    rules: RegistrationRules = PLAIN_RULES,
    prune: frozenset[Kind] = frozenset(),
    claims: Ownership | None = None,
) -> Plan:
    """Plan a document against the directory; nothing is written.

    `new_user_id` gives a UUID for each user that is new, `prune` are kinds as in `plan`, and so are `claims`, whose
    sources are read here. Plain passwords are hashed, unless the stored hash is theirs already. A new client gets the
    defaults of `rules` for members that the document omits. Raises DirectoryError, StoreUnavailable, PasswordsBusy.
    D44, D51.
    """
    number = _count_entries(document)
    by_name, by_id = await _read_users(registry, *await in_thread_if_many(lambda: named_users(document), number))

    def identified() -> dict[str, str]:
        fresh = {name: new_user_id() for name in new_users(document, by_name)}
        return user_ids(document, by_name, by_id, fresh)

    ids = await in_thread_if_many(identified, number)
    records, sources = await (_read_everything(registry) if prune else _read_named(registry, document, ids))
    current = Current(records=records)
    complete = _complete_clients(document, current, rules)
    hashed = await _hash_passwords(complete, current, ids, passwords)

    def check_client(client: KeyedRecord) -> Iterable[tuple[str, str]]:
        if not isinstance(client, Client):
            raise TypeError("the record of a client is a Client")
        try:
            register(client, rules)
        except RegistrationError as error:
            return [(fault.member, fault.reason) for fault in error.faults]
        return []

    if claims is not None:
        removed = await _find_removers(registry, document, current, ids)
        claims = msgspec.structs.replace(claims, sources=sources, removed=removed)
    settled = claims

    def planned() -> Plan:
        return plan(
            hashed, current, ids, check_client=check_client, prune=prune, claims=settled
        )  # fmt: skip

    made = await in_thread_if_many(planned, number)
    warnings = sorted({*made.warnings, *document.remarks, *_remark_keys(document)})
    names = {user.user_id: user.user_name for user in current.records_of("user").values() if isinstance(user, User)}
    names |= {user_id: name for name, user_id in ids.items()}
    writers = {by for each in made.kept for by in each.by} | {by for each in made.changes for by in each.taken.values()}
    keys = [(user_id,) for user_id in sorted(people(writers) - names.keys())]
    names |= {user.user_id: user.user_name for user in (await registry.directory.read(User, keys)).values()}
    names = await name_subjects(registry, [each.record for each in made.changes], names)
    return msgspec.structs.replace(made, warnings=tuple(warnings), user_names=names)


async def prepare_entry(
    registry: Registry,
    passwords: Passwords,
    section: str,
    key: str | None,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str] = str,
    rules: RegistrationRules = PLAIN_RULES,
) -> Plan:
    """The changes that a file with this one entry would make.

    `members` are keys of its section, None for those not given; `key` is None for a row, which has no other identifier.

    Raises Refused with every fault. Source: docs/directory.md
    """
    try:
        document = parse(one_entry(section, key, members), "", typed=True)
        return await prepare_document(registry, passwords, document, new_user_id=new_user_id, rules=rules)
    except DirectoryError as error:
        raise InvalidMembers(tuple(problem.reason for problem in error.problems)) from None


async def prepare_addition(
    registry: Registry,
    passwords: Passwords,
    record: type[R],
    key: str,
    members: Mapping[str, object],
    *,
    new_user_id: Callable[[], str] = str,
    rules: RegistrationRules = PLAIN_RULES,
) -> tuple[R, Plan]:
    """Return a record to add, with the changes that it brings.

    `members` are keys of its section, None for those not given. `rules` are those of clients.

    Raises Refused when it exists already or breaks a rule. Source: docs/directory.md
    """
    kind: Any = KIND_OF[record]
    prepared = await prepare_entry(
        registry, passwords, SECTION_OF[kind], key, members, new_user_id=new_user_id, rules=rules
    )
    added = [change.after for change in prepared.changes if change.kind == kind and change.verb == "add"]
    if not added or not isinstance(added[0], record):
        raise Refused(f"the {kind} {key} exists already: change it with `{_CHANGED_WITH.get(kind, 'corpid apply')}`")
    return added[0], prepared


async def carry_out(
    registry: Registry,
    prepared: Plan,
    *,
    actor: Actor,
    verbs: frozenset[Verb],
    dry_run: bool,
    was: Entity | Client | Service | None = None,
) -> ApplyResult:
    """Write the prepared change, unless `dry_run`, and describe it.

    `was` is the record that the change was decided on, otherwise the one that it was prepared on. What somebody else writes at the same moment is not overwritten. Raises Refused if a change is none of
    `verbs`, access.Forbidden, Conflict, StoreUnavailable. Source: docs/directory.md
    """
    changes = prepared.changes
    if any(change.verb not in verbs for change in changes):
        raise Refused(phrase("somebody removed it at the same time: nothing was changed"))
    if changes and not dry_run:
        seen = [Precondition(type(was), was.key, was)] if was is not None else ()
        await write_changes(registry, actor, changes, planned=True, seen=seen)
    return _describe(prepared, written=bool(changes) and not dry_run)


async def _read_users(
    registry: Registry, names: Iterable[str], user_ids: Iterable[str]
) -> tuple[dict[str, User], dict[str, User]]:
    by_name: dict[str, User] = {}
    async for name in in_turns(sorted(names)):
        user = await registry.directory.user_by_name(name)
        if user is not None:
            by_name[name] = user
    by_key = await registry.directory.read(User, [(user_id,) for user_id in sorted(user_ids)])
    return by_name, {user.user_id: user for user in by_key.values()}


async def _find_removers(
    registry: Registry, document: DirectoryDocument, current: Current, ids: Mapping[str, str]
) -> dict[tuple[Kind, Key], str]:
    """The removers of records that the document would add, by the audit.

    Nothing is looked for of a kind of which nothing was ever removed.
    """
    found: dict[tuple[Kind, Key], str] = {}
    for kind in RELATIONS:
        missing = await in_thread_if_many(
            partial(_list_missing, kind, document, current, ids), _count_entries(document)
        )
        actions = REMOVALS[kind]
        if not missing or not await registry.audit.latest(AuditQuery(actions=actions), limit=1):
            continue
        async for key in in_turns(missing):
            for event in await registry.audit.latest(AuditQuery(object="/".join(key), actions=actions), limit=1):
                found[kind, key] = event.actor
    return found


def _list_missing(kind: Kind, document: DirectoryDocument, current: Current, ids: Mapping[str, str]) -> list[Key]:
    """The keys of records that the document would add."""
    keys = {record_key(entry, ids) for entry in document.entries_of(kind).values() if _knows_user(entry, ids)}
    return sorted(keys - current.records_of(kind).keys())


async def _read_everything(registry: Registry) -> tuple[Records, AllSources]:
    records, sources = _make_empty(), _make_empty()
    for kind, record in _EVERY.items():
        async for found in registry.directory.scan_sourced(record):
            _add(records, sources, kind, found.record.key, found)
    return records, sources


async def _read_named(
    registry: Registry, document: DirectoryDocument, ids: Mapping[str, str]
) -> tuple[Records, AllSources]:
    keys = await in_thread_if_many(lambda: _list_keys(document, ids), _count_entries(document))
    records, sources = _make_empty(), _make_empty()
    for kind, record in _EVERY.items():
        read = await registry.directory.sourced(record, keys[kind])
        async for key, found in in_turns(read.items()):
            _add(records, sources, kind, key, found)
    async for between in in_turns(_list_parties(document)):
        pages = read_pages(registry.directory, ThirdPartyGrant, between, at_once=_GRANTS_AT_ONCE)
        async for grants in pages:
            for grant in grants:
                records["grant"].setdefault(grant.key, grant)
    await _add_levels(registry, document, records, ids)
    return records, sources


def _list_parties(document: DirectoryDocument) -> list[dict[str, str]]:
    """Client entity, third party and service of a document's third-party rows."""
    identity = SECTIONS["third_party.assignments"].identity
    rows = [dict(zip(identity, key, strict=True)) for key in document.entries_of("third-party row")]
    named = {tuple(row[name] for name in _BETWEEN) for row in rows}
    return [dict(zip(_BETWEEN, each, strict=True)) for each in sorted(named)]


def _list_keys(document: DirectoryDocument, ids: Mapping[str, str]) -> dict[Kind, list[Key]]:
    """The keys of records that a document needs, by kind."""
    keys: dict[Kind, set[Key]] = {kind: set() for kind in KINDS}
    for entries in document.entries.values():
        for entry in filter(lambda each: _knows_user(each, ids), entries.values()):
            key = record_key(entry, ids)
            for kind, named in ((entry.kind, key), *keys_named(entry.kind, key, entry.fields)):
                keys[kind].add(named)
    return {kind: sorted(every) for kind, every in keys.items()}


def _count_entries(document: DirectoryDocument) -> int:
    return sum(len(entries) for entries in document.entries.values())


def _make_empty() -> dict[Kind, dict[Key, Any]]:
    return {kind: {} for kind in KINDS}


def _add(records: Records, sources: AllSources, kind: Kind, key: Key, found: SourcedRecord[Any]) -> None:
    records[kind][key] = found.record
    if found.sources != UNKNOWN:
        sources[kind][key] = found.sources


async def _add_levels(
    registry: Registry,
    document: DirectoryDocument,
    records: dict[Kind, dict[Key, KeyedRecord]],
    ids: Mapping[str, str],
) -> None:
    """Add everybody with a level, if the file may take one.

    With the state of person and membership, at the entities concerned.
    """
    people: set[Key] = set()
    entities = {entity_id for _, entity_id in document.entries_of("administrator")}
    entities |= {
        key[1] for key, entry in document.entries_of("membership").items() if entry.fields.get("enabled") is False
    }
    entities |= {
        key[0]
        for key, entry in document.entries_of("entity").items()
        if entry.fields.get("approvals", NOTHING) != NOTHING
    }
    for (name,), entry in document.entries_of("user").items():
        if entry.fields.get("enabled") is False and name in ids:
            entities |= {held.entity_id for held in await registry.directory.administered(ids[name])}
    for entity_id in sorted(entities):
        for held in await registry.directory.administrators(entity_id):
            records["administrator"][held.record.key] = held.record
    if document.entries_of("operator") or document.entries_of("user"):
        for found in await registry.directory.operators("operator"):
            records["operator"][found.record.key] = found.record
            people.add(found.record.key)
    memberships = set(records["administrator"]) - set(records["membership"])
    people |= {key[:1] for key in records["administrator"]}
    records["membership"] |= await registry.directory.read(Membership, sorted(memberships))
    records["user"] |= await registry.directory.read(User, sorted(people - set(records["user"])))


def _knows_user(entry: DocumentEntry, ids: Mapping[str, str]) -> bool:
    return entry.kind not in OF_PEOPLE or entry.key[0] in ids


def _complete_clients(document: DirectoryDocument, current: Current, rules: RegistrationRules) -> DirectoryDocument:
    """The document with what new clients get, and public keys only."""
    clients = {}
    for key, entry in document.entries_of("client").items():
        fields = entry.fields if key in current.records_of("client") else new_client(rules, entry.fields)
        if fields.get("jwks") is not None:
            fields = {**fields, "jwks": public_key_set(str(fields["jwks"]))}
        clients[key] = msgspec.structs.replace(entry, fields=fields)
    return msgspec.structs.replace(document, entries={**document.entries, "client": clients})


def _remark_keys(document: DirectoryDocument) -> list[FileProblem]:
    remarks = []
    for entry in document.entries_of("client").values():
        if entry.fields.get("jwks") is None:
            continue
        try:
            problems = parse_client_key_set(str(entry.fields["jwks"])).problems
        except KeySetError:
            continue  # the check of the client has refused it already
        remarks += [FileProblem(entry.line_of("jwks"), f"jwks: {problem}") for problem in problems]
    return remarks


async def _hash_passwords(
    document: DirectoryDocument, current: Current, ids: Mapping[str, str], passwords: Passwords
) -> DirectoryDocument:
    entries = dict(document.entries_of("credentials"))
    plain = [key for key, entry in entries.items() if "password" in entry.fields]
    _refuse_guessable(document, current, ids, passwords)
    for start in range(0, len(plain), HASHED_AT_ONCE):
        keys = plain[start : start + HASHED_AT_ONCE]
        known = [current.records_of("credentials").get((ids[key[0]],)) for key in keys]
        hashed = await asyncio.gather(
            *(_hash_password(entries[key], held, passwords) for key, held in zip(keys, known, strict=True))
        )
        entries |= dict(zip(keys, hashed, strict=True))
    return msgspec.structs.replace(document, entries={**document.entries, "credentials": entries})


def _refuse_guessable(
    document: DirectoryDocument, current: Current, ids: Mapping[str, str], passwords: Passwords
) -> None:
    problems = []
    for key, entry in document.entries_of("credentials").items():
        known = getattr(current.records_of("user").get((ids[key[0]],)), "name", "")
        name = str(document.entries_of("user")[key].fields.get("name", known))
        typed = str(entry.fields.get("password", ""))
        try:
            if typed:
                require_allowed_password(typed, user_name=key[0], name=name, blocklist=passwords.guessable())
        except PasswordRefused as error:
            problems.append(FileProblem(entry.line_of("password"), f"password of {entry.key[0]}: {error}"))
    if problems:
        raise DirectoryError(document.file, problems)


async def _hash_password(entry: DocumentEntry, known: KeyedRecord | None, passwords: Passwords) -> DocumentEntry:
    """The entry with its password hashed.

    Removed if it would not change.
    """
    fields = {member: value for member, value in entry.fields.items() if member != "password"}
    typed = str(entry.fields["password"])
    if isinstance(known, Credentials) and known.password_set_by != "directory":
        return msgspec.structs.replace(entry, fields=fields)
    held = known.password_hash if isinstance(known, Credentials) else None
    if held is None or not await passwords.verify(held, typed, source=COMMAND_LINE):
        fields["password_hash"] = await passwords.hash(typed, source=COMMAND_LINE)
    return msgspec.structs.replace(entry, fields=fields)


def _describe(prepared: Plan, *, written: bool) -> ApplyResult:
    return ApplyResult(
        differences=tuple(difference(change, prepared.user_names) for change in prepared.changes),
        warnings=prepared.warnings,
        written=written,
        kept=tuple(kept_record(each, prepared.user_names) for each in prepared.kept),
    )
