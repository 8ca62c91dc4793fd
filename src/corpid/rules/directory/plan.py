"""The plan of a directory file: checks, changes and removals.

Additive: a member that the file does not name keeps its value, a record that it does not name
stays; only pruning removes, and only within the sections that the file has. A file is the operator's own: it may take
an entity's last owner, with a warning, and never the last operator.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

import msgspec

from corpid.rules.authentication.records import Credentials
from corpid.rules.directory.document import (
    KINDS,
    LEVELS,
    NAMES_USERS,
    SECTIONS,
    Current,
    DirectoryDocument,
    DocumentEntry,
    Key,
    Kind,
)
from corpid.rules.directory.memberships import of_nobody
from corpid.rules.directory.names import mixed_scripts
from corpid.rules.directory.nodes import SHOWN, DirectoryError, FileProblem
from corpid.rules.directory.records import (
    RECORDS,
    Administrator,
    Assignment,
    Change,
    Entity,
    Membership,
    Operator,
    Service,
    ThirdPartyAssignment,
    ThirdPartyGrant,
    User,
    Verb,
    names_user,
)
from corpid.rules.directory.sources import ABSENT, Ownership, RetainedRecord
from corpid.rules.directory.third_parties import without_grant
from corpid.rules.directory.values import stored_value, unfit_parameter
from corpid.rules.fields import KeyedRecord, fields_of, key_fields
from corpid.rules.oauth.records import Client
from corpid.rules.readers import quote_value, suggestion

if TYPE_CHECKING:
    Wanted: TypeAlias = Mapping[Kind, Mapping[Key, tuple[DocumentEntry, KeyedRecord]]]
    """kind → the document's entries, by key"""
    Named: TypeAlias = Mapping[Kind, set[Key]]
    """kind → keys that a document names"""
    Removed: TypeAlias = dict[Kind, frozenset[Key]]
    Row: TypeAlias = Assignment | ThirdPartyGrant | ThirdPartyAssignment

R = TypeVar("R", bound="Row")
CheckClient: TypeAlias = "Callable[[KeyedRecord], Iterable[tuple[str, str]]]"
"""the rules of client registration: member and reason of everything wrong"""
_NEEDED: Final[Mapping[Kind, tuple[tuple[str, str], ...]]] = {
    section.kind: tuple((name, key.name) for name, key in section.keys.items() if key.needed)
    for section in SECTIONS.values()
    if section.identifier
}
_TYPES: Final[Mapping[Kind, type[KeyedRecord]]] = {**RECORDS, "client": Client}
OF_PEOPLE: Final[frozenset[Kind]] = frozenset({"user", *NAMES_USERS})
"""kinds whose keys begin with a person"""
ALL_BUT_LEVELS: Final = frozenset(KINDS) - LEVELS
"""the kinds that `--prune` removes; `--prune-administrators` removes the others (D65)"""


def _list_dependencies(record: type[KeyedRecord]) -> Iterator[tuple[Kind, tuple[str, ...]]]:
    declared = fields_of(record)
    if names_user(record) and not declared["user_id"].refers:
        yield from (("user", ("user_id",)), ("entity", ("entity_id",)), ("membership", ("user_id", "entity_id")))
    for name, field in declared.items():
        if field.refers:
            yield SECTIONS[field.refers.partition(".")[0]].kind, (name,)


_DEPENDS: Final[Mapping[Kind, tuple[tuple[Kind, tuple[str, ...]], ...]]] = {
    kind: tuple(_list_dependencies(_TYPES[kind])) for kind in KINDS
}
"""kind → the records without which one of it means nothing, each by the members that name it; in order"""
_PRUNE_FLAG: Final = "--prune-administrators"
APPROVERS: Final = 2
"""people who can approve, without whom an entity's administrators cannot demand it (D55)"""
_PARAMETER_ROWS: Final[tuple[Kind, ...]] = ("assignment", "grant", "third-party row")


class PlanFindings:
    """Problems, which reject the file, and warnings, which do not."""

    def __init__(self) -> None:
        self.problems: list[FileProblem] = []
        self.warnings: list[FileProblem] = []

    def note_problem(self, entry: DocumentEntry, member: str, reason: str) -> None:
        self.problems.append(FileProblem(entry.line_of(member), reason))

    def note_warning(self, entry: DocumentEntry, member: str, reason: str) -> None:
        self.warnings.append(FileProblem(entry.line_of(member), reason))


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in the order of writing, with remarks for people."""

    changes: tuple[Change, ...]
    warnings: tuple[FileProblem, ...] = ()
    kept: tuple[RetainedRecord, ...] = ()
    """what a document would change or remove, and leaves to others"""
    user_names: Mapping[str, str] = {}
    """user identifier → user name, of the people whom it is about"""


def plan(
    document: DirectoryDocument,
    current: Current,
    user_ids: Mapping[str, str],
    *,
    check_client: CheckClient,
    prune: frozenset[Kind] = frozenset(),
    claims: Ownership | None = None,
) -> Plan:
    """Compare a file with the directory.

    `current` holds what the file names or refers to with those who may be the last of their level, and with `prune`
    everything; `user_ids` is user name → identifier. `prune` are kinds of which what the file does not name goes.
    `claims` say what of it is others'; without them everything may be changed, as by a command. Plain passwords were
    hashed or dropped before. Raises DirectoryError with every problem found. D51, D53, D65, R-14, R-21.
    """
    problems: list[FileProblem] = []
    wanted: dict[Kind, dict[Key, tuple[DocumentEntry, KeyedRecord]]] = {}
    for kind in KINDS:
        wanted[kind] = {}
        for entry in document.entries_of(kind).values():
            if kind in NAMES_USERS and entry.key[0] not in user_ids:
                hint = suggestion(entry.key[0], user_ids) if len(problems) < SHOWN else ""
                reason = f"there is no user {quote_value(entry.key[0])}, here or in the directory{hint}"
                problems.append(FileProblem(entry.line, reason))
                continue
            key = record_key(entry, user_ids)
            existing = current.records_of(kind).get(key)
            problems += _missing(entry) if existing is None else []
            if not problems:
                record = _record(entry, key, existing)
                problems += of_nobody(entry, key, existing, record, current)
                wanted[kind][key] = (entry, record)
    if problems:
        raise DirectoryError(document.file, problems)
    _store_values(wanted, current)
    named = {kind: set(records) for kind, records in wanted.items()}
    others = _find_others(wanted, current, claims)
    taken, kept = _settle(wanted, current, claims, others)
    removed, unremoved = _removals(document, current, user_ids, named, wanted, prune, claims, others)
    gone = removed.get("service", frozenset())
    for key, (entry, record) in wanted["administrator"].items():
        wanted["administrator"][key] = (entry, without_services(record, gone))
    found = check(wanted, current, removed, check_client)
    directory = PlannedDirectory(wanted, current, removed)
    found.problems += [] if prune & LEVELS else find_unasked_removals(directory, removed)
    found.problems += lost_operators(directory)
    if found.problems:
        raise DirectoryError(document.file, found.problems)
    changes = [*_upserts(wanted, current, taken), *_narrowed(wanted, current, removed), *_deletions(removed, current)]
    warnings = {
        *found.warnings,
        *entities_without_owner(directory),
        *entities_without_approvers(directory),
    }
    return Plan(
        changes=tuple(_seen(change, claims) for change in changes),
        warnings=tuple(sorted(warnings)),
        kept=(*kept, *unremoved),
    )


def check(
    wanted: Wanted, current: Current, removed: Mapping[Kind, frozenset[Key]], check_client: CheckClient
) -> PlanFindings:
    """Check a file's records against the resulting directory.

    Source: R-14, R-20, R-21
    """
    checking = _PlanChecker(wanted, current, removed)
    for records in wanted.values():
        for entry, record in records.values():
            checking.judge(entry, record)
    for entry, client in wanted["client"].values():
        checking.client(entry, client, check_client)
    return checking.found


class _PlanChecker:
    def __init__(self, wanted: Wanted, current: Current, removed: Mapping[Kind, frozenset[Key]]) -> None:
        self.found = PlanFindings()
        self._wanted = wanted
        self._directory = PlannedDirectory(wanted, current, removed)
        self._grants: defaultdict[Key, list[ThirdPartyGrant]] = defaultdict(list)
        self._ended: defaultdict[Key, list[ThirdPartyGrant]] = defaultdict(list)
        for key, record in {
            **current.records_of("grant"),
            **{key: record for key, (_, record) in wanted["grant"].items()},
        }.items():
            if isinstance(record, ThirdPartyGrant):
                (self._ended if key in removed.get("grant", ()) else self._grants)[key[:3]].append(record)

    def judge(self, entry: DocumentEntry, record: KeyedRecord) -> None:
        """Apply the rules of the record's kind."""
        match record:
            case Entity():
                self._named(entry, record.name)
            case Service():
                for reason in _undescribable(record):
                    self.found.note_problem(entry, "role_descriptions", reason)
            case Membership():
                self._there(entry, "entity", (record.entity_id,), "entity_id")
            case Administrator():
                self._administrator(entry, record)
            case Assignment():
                self._member(entry, record)
                self._row(entry, record, blank_role=False)
            case ThirdPartyGrant():
                self._grant(entry, record)
            case ThirdPartyAssignment():
                self._member(entry, record)
                self._there(entry, "entity", (record.client_entity_id,), "client_entity_id")
                self._row(entry, record, blank_role=False)
                self._inside(entry, record)
            case _:
                pass

    def client(self, entry: DocumentEntry, record: KeyedRecord, check_client: CheckClient) -> None:
        """Apply the rules of registration, and look for the client's services."""
        self._named(entry, str(getattr(record, "name", "")))
        for service_id in getattr(record, "services", ()) if "services" in entry.fields else ():
            self._there(entry, "service", (service_id,), "services")
        for member, reason in check_client(record):
            self.found.note_problem(entry, member, f"{member}: {reason}")

    def _there(self, entry: DocumentEntry, kind: Kind, key: Key, member: str) -> None:
        if self._directory.record_after(kind, key) is None:
            few = len(self.found.problems) < SHOWN
            hint = suggestion(key[0], {other[0] for other in self._wanted[kind]}) if few else ""
            self.found.note_problem(
                entry, member, f"there is no {kind} {quote_value(key[0])}, here or in the directory{hint}"
            )

    def _named(self, entry: DocumentEntry, name: str) -> None:
        scripts = mixed_scripts(name)
        if scripts:
            mixture = ", ".join(sorted(scripts))
            self.found.note_warning(
                entry, "name", f"the name {quote_value(name)} mixes scripts ({mixture}): is it what it looks like?"
            )

    def _administrator(self, entry: DocumentEntry, record: Administrator) -> None:
        self._there(entry, "entity", (record.entity_id,), "entity_id")
        self._member(entry, record)
        named = entry.fields.get("services", ())
        if record.level != "sub_administrator" and named:
            reason = f"services: {record.level} has every service: only a sub_administrator has a list of services"
            self.found.note_problem(entry, "services", reason)
        for service_id in named if isinstance(named, tuple) else ():
            self._there(entry, "service", (service_id,), "services")

    def _member(self, entry: DocumentEntry, row: Administrator | Assignment | ThirdPartyAssignment) -> None:
        if self._directory.record_after("membership", (row.user_id, row.entity_id)) is None:
            reason = f"{entry.key[0]} does not act for {row.entity_id}: add it to the memberships of {entry.key[0]}"
            self.found.note_problem(entry, "user_id", reason)

    def _grant(self, entry: DocumentEntry, grant: ThirdPartyGrant) -> None:
        self._there(entry, "entity", (grant.client_entity_id,), "client_entity_id")
        self._there(entry, "entity", (grant.entity_id,), "entity_id")
        if grant.client_entity_id == grant.entity_id:
            self.found.note_problem(entry, "entity_id", "an entity cannot be its own third party")
        self._row(entry, grant, blank_role=True)

    def _row(self, entry: DocumentEntry, row: Row, *, blank_role: bool) -> None:
        if row.start_date > row.end_date:
            self.found.note_problem(
                entry, "end_date", f"the row ends on {row.end_date}, before it starts on {row.start_date}"
            )
        service = self._directory.record_after("service", (row.service_id,))
        if not isinstance(service, Service):
            self._there(entry, "service", (row.service_id,), "service_id")
            return
        self._role(entry, row, service, blank=blank_role)
        self._parameters(entry, row, service)
        if service.sub_entity == "none" and row.sub_entity:
            self.found.note_problem(entry, "sub_entity", f"sub_entity: {service.service_id} has no sub-entities")
        if isinstance(row, Assignment):
            return
        if not service.third_parties:
            self.found.note_problem(entry, "service_id", f"{service.service_id} does not allow third parties")

    def _role(self, entry: DocumentEntry, row: Row, service: Service, *, blank: bool) -> None:
        if row.role in service.roles or (not row.role and (blank or not service.roles)):
            return
        roles = f"its roles are {', '.join(service.roles)}" if service.roles else "it has no roles"
        named = f"role: {quote_value(row.role)} is no role of" if row.role else "role: a role is required at"
        self.found.note_problem(
            entry, "role", f"{named} {service.service_id}; {roles}{suggestion(row.role, service.roles)}"
        )

    def _parameters(self, entry: DocumentEntry, row: Row, service: Service) -> None:
        defined = {definition.name: definition for definition in service.parameters}
        for parameter in row.parameters:
            definition = defined.get(parameter.name)
            if definition is None:
                hint = suggestion(parameter.name, defined)
                reason = f"{service.service_id} defines no parameter {quote_value(parameter.name)}{hint}"
                self.found.note_problem(entry, "parameters", f"parameters: {reason}")
            elif why := unfit_parameter(definition.kind, parameter.value):
                self.found.note_problem(entry, "parameters", f"parameters: {parameter.name}: {why}")
        if isinstance(row, ThirdPartyGrant):
            return
        if service.sub_entity == "mandatory" and not row.sub_entity:
            self._unset(entry, "sub_entity", "the mandatory sub_entity")
        set_names = {parameter.name for parameter in row.parameters if parameter.value}
        for name in (d.name for d in service.parameters if d.mandatory and d.name not in set_names):
            self._unset(entry, "parameters", f"the mandatory parameter {quote_value(name)}")

    def _unset(self, entry: DocumentEntry, member: str, what: str) -> None:
        self.found.note_warning(entry, member, f"{what} is not set: relying parties will read ERROR_MISSING_VALUE")

    def _inside(self, entry: DocumentEntry, row: ThirdPartyAssignment) -> None:
        parties = (row.client_entity_id, row.entity_id, row.service_id)
        grants = self._grants[parties]
        if any(grant.covers(row) for grant in grants):
            return
        granted = f"what {row.client_entity_id} granted to {row.entity_id} for {row.service_id}"
        if not grants:
            self.found.note_problem(entry, "client_entity_id", f"there is no grant: {granted} is nothing")
            return
        if any(grant.state == "offered" and grant.fits(row) for grant in grants):
            there = self._directory.record_before("third-party row", row.key) == row
            stays = there and not any(grant.fits(row) for grant in self._ended[parties])
            report = self.found.note_warning if stays else self.found.note_problem
            why = f"{row.entity_id} has not accepted what {row.client_entity_id} offers for {row.service_id}"
            report(entry, "client_entity_id", f"the row has no effect: {why}")
            return
        spans = [f"{grant.start_date} to {grant.end_date}" for grant in grants if grant.allows(row)]
        why = f"; it was granted for {' and '.join(spans)}" if spans else ": role, sub-entity or parameters differ"
        member = "end_date" if spans else "role"
        self.found.note_problem(entry, member, f"the row is outside {granted}{why}")


def _settle(
    wanted: dict[Kind, dict[Key, tuple[DocumentEntry, KeyedRecord]]],
    current: Current,
    claims: Ownership | None,
    others: AbstractSet[Key],
) -> tuple[dict[tuple[Kind, Key], dict[str, str]], list[RetainedRecord]]:
    """Take records of others, and of accounts not meant, out of `wanted`.

    Returns the members taken from others, by record, and the records that are left to them. A record that stays as it
    is leaves `wanted`: nothing is judged that the document does not decide.
    """
    taken: dict[tuple[Kind, Key], dict[str, str]] = {}
    kept: list[RetainedRecord] = []
    if claims is None:
        return taken, kept
    left_out: set[tuple[Kind, Key]] = set()
    for kind, records in wanted.items():
        for key, (entry, record) in list(records.items()):
            existing, by = current.records_of(kind).get(key), claims.remover(kind, key)
            if kind in OF_PEOPLE and key[:1] in others:
                verb: Verb = "add" if existing is None else "change"
                if existing != record or kind == "user":
                    kept.append(
                        RetainedRecord(verb=verb, kind=kind, key=key, by=(), members=("email",), line=entry.line)
                    )
                del records[key]
                continue
            if by or not left_out.isdisjoint(_needs(kind, record)):
                left_out |= {(kind, key), (kind, key[:3])}  # of a grant the parties and the service
                if existing is None:
                    kept.append(RetainedRecord(verb="add", kind=kind, key=key, by=(by,) if by else (), line=entry.line))
                del records[key]
                continue
            if existing is None:
                continue
            settled = claims.limit_record(entry, key, existing, record)
            taken[kind, key] = settled.taken
            kept += settled.kept
            records[key] = (entry, settled.record)
            if settled.kept and settled.record == existing:
                del records[key]
    return taken, kept


def _find_others(wanted: Wanted, current: Current, claims: Ownership | None) -> set[Key]:
    """The accounts of user names by which a document means somebody else.

    Not those to which a file has given something before. Source: D65, D68
    """
    if claims is None:
        return set()
    entries, users = wanted["user"], current.records_of("user")
    named = {key[:1] for kind in OF_PEOPLE for key in wanted[kind]}
    known = {key[:1] for kind in OF_PEOPLE - {"user"} for key in wanted[kind] if claims.gave(kind, key)}
    return {
        key for key in named - known
        if claims.differs_from(entries[key][0] if key in entries else None, users.get(key))
    }  # fmt: skip


def _needs(kind: Kind, record: KeyedRecord) -> Iterable[tuple[Kind, Key]]:
    if kind != "client":  # which stays when its services go
        yield from keys_named(kind, record.key, msgspec.structs.asdict(record))
    if isinstance(record, ThirdPartyAssignment):
        yield "grant", (record.client_entity_id, record.entity_id, record.service_id)


def _seen(change: Change, claims: Ownership | None) -> Change:
    if claims is None or change.kind == "credentials":  # of factors their own members say whose they are (D44)
        return change
    seen = ABSENT if change.before is None else claims.sources_of(change.kind, change.key)
    return msgspec.structs.replace(change, seen=seen)


def record_key(entry: DocumentEntry, user_ids: Mapping[str, str]) -> Key:
    """The key of an entry's record, by the user's identifier.

    The entry has the user's name in its place. Raises KeyError. Source: R-12.4
    """
    if entry.kind in OF_PEOPLE:
        return (user_ids[entry.key[0]], *entry.key[1:])
    return entry.key


def _missing(entry: DocumentEntry) -> list[FileProblem]:
    needed = list(_NEEDED.get(entry.kind, ()))
    if entry.kind == "entity" and entry.fields.get("type", "UEN") != "UEN":
        needed.append(("registration_number", "registration_number"))
    lacking = [name for name, member in needed if member not in entry.fields]
    if not lacking:
        return []
    return [FileProblem(entry.line, f"the {entry.kind} {' '.join(entry.key)} is new and lacks {', '.join(lacking)}")]


def _record(entry: DocumentEntry, key: Key, existing: KeyedRecord | None) -> KeyedRecord:
    fields = dict(entry.fields)
    if entry.kind == "user":
        fields["user_name"] = entry.key[0]
    if entry.kind == "credentials":
        known = existing if isinstance(existing, Credentials) else Credentials(user_id=key[0])
        return with_factors(known, fields)
    if entry.kind == "grant":
        fields.setdefault("state", "accepted")  # a file speaks for both sides (D56)
    if existing is not None:
        record = msgspec.structs.replace(existing, **fields)
        if isinstance(record, Administrator) and record.level != "sub_administrator":
            return msgspec.structs.replace(record, services=())  # a later lower level begins without any (D53)
        if isinstance(existing, Service) and isinstance(record, Service):
            gone = set(existing.roles) - set(record.roles)
            described = tuple(each for each in record.role_descriptions if each.name not in gone)
            return msgspec.structs.replace(record, role_descriptions=described)
        return record
    if entry.kind == "entity":
        fields.setdefault("registration_number", key[0])
    kind = _TYPES[entry.kind]
    return kind(**{**fields, **dict(zip(key_fields(kind), key, strict=True))})


def with_factors(known: Credentials, fields: Mapping[str, object]) -> Credentials:
    """Credentials after a file named factors.

    A factor that a person or an operator has set since stays. The hash of a file is remembered by its own hash, so that
    a later strengthening of the stored one is not undone by the same file. Source: D44, D45
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


def _undescribable(service: Service) -> Iterator[str]:
    """The reasons why described roles are wrong: the service lacks them."""
    roles = f"its roles are {', '.join(service.roles)}" if service.roles else "it has no roles"
    for described in service.role_descriptions:
        if described.name not in service.roles:
            hint = suggestion(described.name, service.roles)
            yield f"role_descriptions: {quote_value(described.name)} is no role of {service.service_id}; {roles}{hint}"


def _upserts(
    wanted: Wanted,
    current: Current,
    taken: Mapping[tuple[Kind, Key], dict[str, str]],
) -> Iterable[Change]:
    for kind in KINDS:
        for key, (_, record) in wanted[kind].items():
            existing, from_others = current.records_of(kind).get(key), taken.get((kind, key), {})
            if existing is None:
                yield Change(None, record)
            elif existing != record or from_others:
                yield Change(existing, record, taken=from_others)


def _narrowed(
    wanted: Wanted,
    current: Current,
    removed: Mapping[Kind, frozenset[Key]],
) -> Iterable[Change]:
    """Sub-administrators not in the file whose list loses a service."""
    gone = removed.get("service", frozenset())
    for key, record in current.records_of("administrator").items() if gone else ():
        becomes = without_services(record, gone)
        named = key in wanted["administrator"] or key in removed.get("administrator", ())
        if becomes != record and not named:
            yield Change(record, becomes)


def _deletions(removed: Mapping[Kind, frozenset[Key]], current: Current) -> Iterable[Change]:
    for kind in reversed(KINDS):
        for key in sorted(removed.get(kind, ())):
            yield Change(current.records_of(kind)[key], None)


def _removals(
    document: DirectoryDocument,
    current: Current,
    user_ids: Mapping[str, str],
    named: Named,
    wanted: Wanted,
    prune: frozenset[Kind],
    claims: Ownership | None,
    others: AbstractSet[Key],
) -> tuple[Removed, list[RetainedRecord]]:
    """The keys to remove, by kind, and the records left to others.

    `current` holds the whole directory; of other kinds than `prune` goes only what depends on a removed record. What
    others wrote stays, with everything that it rests on; the roles under a removed grant go with it.
    """
    removed: Removed = {}
    if not prune:
        return removed, []
    for kind in document.complete & prune:
        removed[kind] = frozenset(current.records_of(kind).keys() - named[kind])
    listed = {user_ids[name] for name in document.listed_members} if "membership" in prune else set()
    listed -= {user_id for (user_id,) in others}
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
            waiting += _needs(kind, record)
    return held


def keys_named(kind: Kind, key: Key, members: Mapping[str, object]) -> Iterator[tuple[Kind, Key]]:
    """The records that one names.

    Those that it ends with, and the services of a list. `members` may be some of the record's. Source: R-14, R-21
    """
    named = {**members, **dict(zip(key_fields(_TYPES[kind]), key, strict=True))}
    for on, by in _DEPENDS[kind]:
        yield on, tuple(str(named[member]) for member in by)
    listed = named.get("services")
    if isinstance(listed, tuple):
        yield from (("service", (service_id,)) for service_id in listed)


class PlannedDirectory:
    """The directory before and after the file."""

    def __init__(self, wanted: Wanted, current: Current, removed: Mapping[Kind, frozenset[Key]]) -> None:
        self._wanted = wanted
        self._current = current
        self._removed = removed

    def record_before(self, kind: Kind, key: Key) -> KeyedRecord | None:
        return self._current.records_of(kind).get(key)

    def record_after(self, kind: Kind, key: Key) -> KeyedRecord | None:
        """A record as it will be; None if there will be none."""
        if key in self._wanted[kind]:
            return self._wanted[kind][key][1]
        return None if key in self._removed.get(kind, ()) else self._current.records_of(kind).get(key)

    def removes(self, kind: Kind, key: Key) -> bool:
        """Return whether the file's plan removes a record."""
        return key in self._removed.get(kind, ())

    def owners(self) -> tuple[dict[str, set[Key]], dict[str, set[Key]]]:
        """Owners who can act, by entity, before and after."""
        was: defaultdict[str, set[Key]] = defaultdict(set)
        becomes: defaultdict[str, set[Key]] = defaultdict(set)
        for key in self._keys("administrator"):
            for found, state in ((was, self.record_before), (becomes, self.record_after)):
                if _is_owner(state("administrator", key)) and _can_act(
                    state("user", key[:1]), state("membership", key)
                ):
                    found[key[1]].add(key)
        return dict(was), dict(becomes)

    def operators(self) -> tuple[set[Key], set[Key]]:
        """Operators who can act, with every right, before and after."""
        was, becomes = (
            {key for key in self._keys("operator") if _is_full(state("operator", key)) and _can_act(state("user", key))}
            for state in (self.record_before, self.record_after)
        )
        return was, becomes

    def approvers(self, entity_id: str) -> int:
        """Return how many administrators of an entity can approve, after."""
        return sum(
            _approves(self.record_after("administrator", key))
            and _can_act(self.record_after("user", key[:1]), self.record_after("membership", key))
            for key in self._keys("administrator")
            if key[1] == entity_id
        )

    def named_records(self, kind: Kind) -> Iterable[Key]:
        return self._wanted[kind]

    def line_of(self, kind: Kind, key: Key) -> int:
        """The line of a record that the file names."""
        return self._wanted[kind][key][0].line

    def line(self, key: Key) -> int:
        """The line about a person's level; 0 if there is none."""
        named: tuple[tuple[Kind, Key], ...] = (
            ("administrator", key), ("operator", key), ("membership", key), ("user", key[:1]),
        )  # fmt: skip
        return next((self._wanted[kind][each][0].line for kind, each in named if each in self._wanted[kind]), 0)

    def _keys(self, kind: Kind) -> Iterable[Key]:
        return {*self._wanted[kind], *self._current.records_of(kind)}


def _can_act(*records: KeyedRecord | None) -> bool:
    return all(isinstance(record, User | Membership) and record.enabled for record in records)


def _is_owner(record: KeyedRecord | None) -> bool:
    return isinstance(record, Administrator) and record.level == "owner"


def _approves(record: KeyedRecord | None) -> bool:
    return isinstance(record, Administrator) and record.approves


def _is_full(record: KeyedRecord | None) -> bool:
    return isinstance(record, Operator) and record.level == "operator"


def entities_without_owner(directory: PlannedDirectory) -> list[FileProblem]:
    """Warnings about entities that lose their last owner.

    Source: D54
    """
    was, becomes = directory.owners()
    lost = sorted(entity for entity in was.keys() - becomes.keys() if not directory.removes("entity", (entity,)))
    reason = "will have no owner who can act: appoint another one in administrators"
    return [FileProblem(max(map(directory.line, was[entity])), f"the entity {entity} {reason}") for entity in lost]


def entities_without_approvers(directory: PlannedDirectory) -> list[FileProblem]:
    """Warnings about entities without enough approvers.

    Source: D55
    """
    found = []
    for key in directory.named_records("entity"):
        was, becomes = directory.record_before("entity", key), directory.record_after("entity", key)
        demanded = getattr(becomes, "approvals", "none")
        if (
            demanded != getattr(was, "approvals", "none")
            and demanded != "none"
            and directory.approvers(key[0]) < APPROVERS
        ):
            reason = f"the entity {key[0]} has fewer than two people who can approve: operators must approve instead"
            found.append(FileProblem(directory.line_of("entity", key), reason))
    return found


def lost_operators(directory: PlannedDirectory) -> list[FileProblem]:
    """The problem of a file after which no operator could act.

    Source: D53
    """
    was, becomes = directory.operators()
    if not was or becomes:
        return []
    reason = "no operator who can act would remain: appoint another one in operators, with the level operator"
    return [FileProblem(max(map(directory.line, was)), reason)]


def find_unasked_removals(directory: PlannedDirectory, removed: Removed) -> list[FileProblem]:
    """Problems of levels that pruning would remove unasked.

    Source: D65
    """
    administrators = [
        f"--prune would end the administration of {key[1]} by {name}: keep {name} and the membership, or add {_PRUNE_FLAG}"
        for key in sorted(removed.get("administrator", ()))
        for name in [_name_user(directory, key)]
    ]
    operators = [
        f"--prune would remove {name}, who is an operator: keep {name} in users, or add {_PRUNE_FLAG}"
        for key in sorted(removed.get("operator", ()))
        for name in [_name_user(directory, key)]
    ]
    return [FileProblem(0, reason) for reason in (*administrators, *operators)]


def _name_user(directory: PlannedDirectory, key: Key) -> str:
    return str(getattr(directory.record_before("user", key[:1]), "user_name", key[0]))


def without_services(record: KeyedRecord, gone: frozenset[Key]) -> KeyedRecord:
    """A sub-administrator without the services that are removed.

    A service of the same identifier that is made later is another one. Source: D53
    """
    if not isinstance(record, Administrator) or not isinstance(record.services, tuple):
        return record
    left = tuple(service_id for service_id in record.services if (service_id,) not in gone)
    return record if left == record.services else msgspec.structs.replace(record, services=left)


def _store_values(
    wanted: Mapping[Kind, MutableMapping[Key, tuple[DocumentEntry, KeyedRecord]]], current: Current
) -> None:
    """Put the values of parameters into their stored form."""
    for kind in _PARAMETER_ROWS:
        for key, (entry, row) in wanted[kind].items():
            if isinstance(row, Assignment | ThirdPartyGrant | ThirdPartyAssignment) and row.parameters:
                wished = wanted["service"].get((row.service_id,))
                service = wished[1] if wished is not None else current.records_of("service").get((row.service_id,))
                if isinstance(service, Service):
                    wanted[kind][key] = (entry, with_stored_values(row, service))


def with_stored_values(row: R, service: Service) -> R:
    """A row whose parameters have their values in stored form. Source: D75"""
    kinds = {each.name: each.kind for each in service.parameters}
    values = tuple(
        msgspec.structs.replace(each, value=stored_value(kinds.get(each.name, "text"), each.value))
        for each in row.parameters
    )
    return msgspec.structs.replace(row, parameters=values)
