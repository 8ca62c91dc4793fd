"""Tables of an entity's people and roles: planned, then written.

People are added or invited. What needs approval is requested. Source: D55, D60
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from corpid.flows.directory.apply import prepare_document
from corpid.flows.directory.lists import find_entity
from corpid.flows.directory.members import (
    AmbiguousName,
    find_member,
    other_address,
    plan_invitation,
    translate_refusals,
)
from corpid.flows.directory.person_names import digest_names, name_as_known
from corpid.flows.directory.role_assignment import list_services
from corpid.flows.directory.write import (
    IdentifierConflict,
    RequestDetails,
    authorise_changes,
    check_changes,
    cut_parts,
    needs_approval,
    write_changes,
    write_parts,
)
from corpid.rules.directory.access import Actor, EntityAdministrator, Forbidden, Object, authorise
from corpid.rules.directory.differences import OTHER_PERSON
from corpid.rules.directory.memberships import UNREACHABLE, InvalidDetails, Member, is_unreachable
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.nodes import DirectoryError, FileProblem
from corpid.rules.directory.records import (
    Assignment,
    Change,
    ChangeRequest,
    Entity,
    MemberDetails,
    Membership,
    Precondition,
    Service,
    User,
)
from corpid.rules.directory.role_forms import ENDLESS, ON_DAY, RoleForm, faults, form_of, row_of
from corpid.rules.directory.sources import means_another
from corpid.rules.directory.tables import AccessLine, parse_access, parse_members, parse_people
from corpid.texts import Phrase, phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import date

    from corpid.flows.directory.invitations import InvitationLimit
    from corpid.outbound.passwords import Passwords
    from corpid.rules.directory.document import DirectoryDocument
    from corpid.stores.sql.registry import Registry

    Report: TypeAlias = Callable[[Literal["checked", "imported"], int, int], None]
    """the result for a number of people, of a total"""

PEOPLE_AT_ONCE: Final = 100
"""people of one transaction: themselves and their memberships"""


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
    """People and memberships that were added, or would be."""

    people: int
    """in the table"""
    added: int
    memberships: int
    remarks: tuple[FileProblem, ...]
    written: bool


async def import_people(
    registry: Registry,
    passwords: Passwords,
    content: bytes,
    *,
    file: str,
    entity_id: str,
    actor: Actor,
    new_user_id: Callable[[], str],
    report: Report,
    dry_run: bool = False,
) -> ImportResult:
    """Add the people of a table (CSV) and their memberships.

    Who is there already gets the membership and is not changed otherwise, which is remarked on. Everything is checked
    before the first change; then a hundred people are one transaction, so an interrupted import is finished by the same
    table again. `file` names it in errors, `new_user_id` gives a UUID. Raises DirectoryError with every problem,
    write.Refused if there is no such entity, access.Forbidden; Conflict and StoreUnavailable, after which the
    transactions before stay. Source: D51, docs/directory.md
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="user"))
    document = parse_people(content, file, entity_id=entity_id)
    total = len(document.entries_of("user"))
    parts: list[list[Change]] = []
    problems: list[FileProblem] = []
    remarks: list[FileProblem] = []
    for number, part in enumerate(_parts(document), start=1):
        try:
            prepared = await prepare_document(registry, passwords, part, new_user_id=new_user_id)
        except DirectoryError as error:
            problems += error.problems
            continue
        problems += await _find_others(registry, part)
        remarks += [*prepared.warnings, *_others(part, prepared.changes)]
        parts.append([change for change in prepared.changes if change.verb == "add"])
        report("checked", min(number * PEOPLE_AT_ONCE, total), total)
    if problems:
        raise DirectoryError(file, problems)
    if not dry_run:
        async for number, _ in write_parts(registry, actor, parts, planned=True, batch=new_user_id()):
            report("imported", min(number * PEOPLE_AT_ONCE, total), total)
    kinds = [change.kind for part in parts for change in part]
    return ImportResult(
        people=total,
        added=kinds.count("user"),
        memberships=kinds.count("membership"),
        remarks=tuple(sorted(remarks)),
        written=bool(kinds) and not dry_run,
    )


async def import_members(
    registry: Registry,
    content: bytes,
    *,
    file: str,
    entity_id: str,
    send: bool,
    actor: Actor,
    now: float,
    new_id: Callable[[], str],
    report: Report,
    dry_run: bool = False,
) -> ImportResult:
    """Invite the people of a table (CSV) to an entity.

    A user name that a member has already is skipped, so an interrupted import is finished by the same table again.
    Everything is checked before the first change; then a hundred invitations are one transaction. E-mails are sent
    later, if `send`. For operators' commands, whose invitations are not counted. Raises DirectoryError with every
    problem, write.Refused if there is no such entity, access.Forbidden; Conflict and StoreUnavailable, after which
    the transactions before stay. Source: D60, D61, docs/directory.md
    """
    await find_entity(registry, entity_id, actor=actor)
    authorise(actor, "read", Object(kind="user"))
    rows = parse_members(content, file)
    changes: list[Change] = []
    problems: list[FileProblem] = []
    unreachable: list[FileProblem] = []
    for number, (line, details) in enumerate(rows, start=1):
        change = plan_invitation(details, entity_id, now=now, new_id=new_id, send=send)
        try:
            await check_changes(registry, actor, [change])
        except IdentifierConflict as taken:
            if taken.member != "user_name":
                problems.append(FileProblem(line, str(taken)))
            elif reason := await _find_other(registry, entity_id, details):
                problems.append(FileProblem(line, reason))
            continue
        changes.append(change)
        if is_unreachable(change.after):
            unreachable.append(FileProblem(line, f"{details.user_name}: {UNREACHABLE}"))
        if number % PEOPLE_AT_ONCE == 0 or number == len(rows):
            report("checked", number, len(rows))
            await asyncio.sleep(0)
    if problems:
        raise DirectoryError(file, problems)
    if dry_run:
        await authorise_changes(registry, actor, changes)
    else:
        parts = cut_parts(changes, PEOPLE_AT_ONCE)
        async for number, _ in write_parts(registry, actor, parts, planned=True, batch=new_id()):
            report("imported", min(number * PEOPLE_AT_ONCE, len(changes)), len(changes))
    return ImportResult(
        people=len(rows), added=0, memberships=len(changes), remarks=tuple(unreachable),
        written=bool(changes) and not dry_run,
    )  # fmt: skip


def _parts(document: DirectoryDocument) -> Iterator[DirectoryDocument]:
    """The document of each hundred people."""
    users, memberships = ([*document.entries_of(kind).items()] for kind in ("user", "membership"))
    for start in range(0, len(users), PEOPLE_AT_ONCE):
        end = start + PEOPLE_AT_ONCE
        yield msgspec.structs.replace(
            document, entries={"user": dict(users[start:end]), "membership": dict(memberships[start:end])}
        )


async def _find_others(registry: Registry, document: DirectoryDocument) -> list[FileProblem]:
    """Rows whose user name is the account of somebody else (D68)."""
    entries = document.entries_of("user")
    named = {key: await registry.directory.user_by_name(key[0]) for key in entries}
    found = await registry.directory.sourced(User, [user.key for user in named.values() if user is not None])
    return [
        FileProblem(entries[key].line, f"{key[0]}: {OTHER_PERSON}")
        for key, user in named.items()
        if user is not None and user.key in found and means_another(entries[key], user, found[user.key].sources)
    ]


async def _find_other(registry: Registry, entity_id: str, details: MemberDetails) -> Phrase | str:
    """The reason why a row is not about the member it names.

    Empty if it is. Source: D68
    """
    try:
        found = await find_member(registry, entity_id, details.user_name)
    except AmbiguousName as several:
        return str(several)
    return other_address(found) if found is not None and not found.has_address(details.email) else ""


def _others(document: DirectoryDocument, changes: tuple[Change, ...]) -> Iterator[FileProblem]:
    """Remarks on people who are there already and otherwise."""
    for change in changes:
        if change.kind == "user" and change.verb == "change" and change.after is not None:
            name = str(getattr(change.after, "user_name", ""))
            names = change.after.__struct_fields__
            differing = [each for each in names if getattr(change.before, each) != getattr(change.after, each)]
            line = document.entries_of("user")[(name,)].line
            yield FileProblem(line, f"{name} is there already, with another {' and '.join(differing)}, which stays")


Verb = Literal["invite", "give", "change", "nothing"]
_ROLE_CHARACTERS: Final = 200
"""of a service's roles, which a problem lists if they have no more"""


class ImportPlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a line of the table."""

    line: int
    verb: Verb
    person: Member
    row: Assignment | None = None
    service: Service | None = None


class ImportPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of a table."""

    lines: tuple[ImportPlanLine, ...]
    changes: tuple[Change, ...]
    needs_approval: bool

    @property
    def names(self) -> str:
        """A digest of who is meant in each line, and what for.

        Whom the table invites is only in the table. Source: D68
        """
        invited = {each.person.user.user_id for each in self.lines if each.verb == "invite"}
        return digest_names(
            (
                each.line,
                None
                if each.person.user.user_id in invited
                else name_as_known(each.person.user, each.person.membership),
                each.verb,
                msgspec.structs.replace(each.row, user_id="") if each.row is not None else None,
            )
            for each in self.lines
        )


class _LineRefused(Exception):
    """A line that cannot be carried out, with the reasons."""

    def __init__(self, *reasons: str) -> None:
        super().__init__(*reasons)
        self.reasons = reasons


@dataclass(kw_only=True)
class _ImportPlanner:
    """The people and roles of a table, line by line."""

    registry: Registry
    actor: EntityAdministrator
    services: Mapping[str, Service]
    now: float
    today: date
    new_id: Callable[[], str]
    lines: list[ImportPlanLine] = field(default_factory=list)
    invited: list[Change] = field(default_factory=list)
    roles: list[Change] = field(default_factory=list)
    problems: list[FileProblem] = field(default_factory=list)
    people: dict[str, Member] = field(default_factory=dict)
    """by what a line says: accounts differ whose names fold alike"""
    invitees: dict[str, Member] = field(default_factory=dict)
    """by folded name, which an entity gives once"""
    rows: dict[tuple[str, ...], int] = field(default_factory=dict)

    async def add(self, line: AccessLine) -> None:
        """Plan one line, or note why it cannot be."""
        reasons: Iterable[str] = ()
        try:
            await self._plan(line)
        except _LineRefused as refused:
            reasons = refused.reasons
        except InvalidDetails as error:
            reasons = [f"{member}: {sentence}" for member, sentence in error.faults]
        except (AmbiguousName, IdentifierConflict) as error:
            reasons = [str(error)]
        except Forbidden as error:
            reasons = [error.reason]
        self.problems += [FileProblem(line.line, reason) for reason in reasons]

    async def _plan(self, line: AccessLine) -> None:
        person = await self._find_person(line)
        if not person.has_address(line.cells.get("email", "")):
            raise _LineRefused(other_address(person))
        named = line.cells.get("service")
        if not named:
            if not any(each.person is person for each in self.lines):
                self.lines.append(ImportPlanLine(line=line.line, verb="nothing", person=person))
            return
        by_name = (each for each in self.services.values() if fold_text(each.name) == fold_text(named))
        service = self.services.get(named) or next(by_name, None)
        if service is None:
            raise _LineRefused(phrase("There is no service {name} here.", name=named))
        defined = {each.name for each in service.parameters}
        unknown = [name for name, value in line.parameters.items() if value and name not in defined]
        if unknown:
            raise _LineRefused(phrase("{service} has no parameter {name}.", service=service.name, name=unknown[0]))
        await self._plan_role(line, person, service)

    async def _find_person(self, line: AccessLine) -> Member:
        user_name = line.cells["user_name"]
        if user_name not in self.people:
            found = await find_member(self.registry, self.actor.entity_id, user_name)
            self.people[user_name] = found or self.invitees.get(fold_text(user_name)) or await self._invite(line)
        return self.people[user_name]

    async def _invite(self, line: AccessLine) -> Member:
        cells = line.cells
        if not cells.get("name"):
            raise _LineRefused(
                phrase("Nobody here has this user name. To invite the person, fill in name and e-mail address.")
            )
        details = MemberDetails(user_name=cells["user_name"], name=cells["name"], email=cells.get("email", ""))
        change = plan_invitation(details, self.actor.entity_id, now=self.now, new_id=self.new_id)
        membership = change.after
        assert isinstance(membership, Membership)  # noqa: S101 - of an invitation
        await needs_approval(self.registry, self.actor, [change])
        self.invited.append(change)
        nobody = User(user_id=membership.user_id, user_name="", name="", enabled=False, placeholder=True)
        found = Member(membership=membership, user=nobody)
        self.lines.append(ImportPlanLine(line=line.line, verb="invite", person=found))
        self.invitees[fold_text(cells["user_name"])] = found
        return found

    async def _plan_role(self, line: AccessLine, person: Member, service: Service) -> None:
        user_id, entity_id = person.membership.user_id, self.actor.entity_id
        role, part = line.cells.get("role", ""), line.cells.get("sub_entity", "")
        if role and not service.roles:
            raise _LineRefused(phrase("{service} has no role {role}.", service=service.name, role=role))
        if part and service.sub_entity == "none":
            raise _LineRefused(
                phrase(
                    "Access at {service} is for the whole organisation. Leave sub_entity empty.", service=service.name
                )
            )
        named = Assignment(
            user_id=user_id, entity_id=entity_id, service_id=service.service_id, role=role, sub_entity=part
        )
        was = await self.registry.directory.find(Assignment, *named.key)
        held = was if was and was.end_date >= self.today.isoformat() else None
        form = _form(line, service, held)
        wrong = faults(form, self.today)
        if wrong:
            raise _LineRefused(*(_no_such_role(form) if member == "role" else text for member, text in wrong))
        row = row_of(form, user_id=user_id, entity_id=entity_id, today=self.today, was=held)
        if row.key in self.rows:
            raise _LineRefused(phrase("This role is already in line {line}.", line=self.rows[row.key]))
        self.rows[row.key] = line.line
        verb: Verb = "nothing"
        if was != row:
            change = Change(was, row)
            await authorise_changes(self.registry, self.actor, [change])
            self.roles.append(change)
            verb = "change" if was else "give"
        self.lines.append(ImportPlanLine(line=line.line, verb=verb, person=person, row=row, service=service))


def _no_such_role(form: RoleForm) -> Phrase:
    """Name the wrong role, and the service's roles if few."""
    service, role = form.service, form.role
    if sum(map(len, service.roles)) > _ROLE_CHARACTERS:
        if role:
            return phrase("{service} has no role {role}.", service=service.name, role=role)
        return phrase("Fill in the role at {service}.", service=service.name)
    if role:
        return phrase(
            "{service} has no role {role}. It has these: {roles}.", service=service.name, role=role, roles=service.roles
        )
    return phrase("Fill in the role. {service} has these: {roles}.", service=service.name, roles=service.roles)


def _form(line: AccessLine, service: Service, was: Assignment | None) -> RoleForm:
    """A line as a form, over the role as it is."""
    form = form_of(was, service) if was is not None else RoleForm(service=service, end=ENDLESS)
    cells = line.cells
    start, end = cells.get("start_date", ""), cells.get("end_date", "")
    return msgspec.structs.replace(
        form,
        role=cells.get("role", ""),
        sub_entity=cells.get("sub_entity", ""),
        parameters={**form.parameters, **{name: value for name, value in line.parameters.items() if value}},
        start=ON_DAY if start else form.start,
        start_date=start or form.start_date,
        end=ON_DAY if end else form.end,
        end_date=end or form.end_date,
    )


async def plan_import(
    registry: Registry,
    actor: EntityAdministrator,
    entity: Entity,
    text: str,
    *,
    now: float,
    today: date,
    new_id: Callable[[], str],
) -> ImportPlan:
    """Plan a table of people and roles; nothing is written.

    Who is not there yet is invited, with the roles. Raises DirectoryError with every problem by line, Refused,
    access.Forbidden, StoreUnavailable. Source: D55, D60
    """
    lines = parse_access(text)
    services = {each.service_id: each for each in await list_services(registry, actor, entity)}
    planning = _ImportPlanner(registry=registry, actor=actor, services=services, now=now, today=today, new_id=new_id)
    for line in lines:
        await planning.add(line)
    if planning.problems:
        raise DirectoryError("", sorted(planning.problems, key=lambda each: each.line))
    changes = (*planning.invited, *planning.roles)
    needs = bool(changes) and bool((await authorise_changes(registry, actor, changes)).needing)
    return ImportPlan(lines=tuple(planning.lines), changes=changes, needs_approval=needs)


async def submit_import(
    registry: Registry,
    limit: InvitationLimit,
    actor: EntityAdministrator,
    plan: ImportPlan,
    asking: RequestDetails,
) -> ChangeRequest | None:
    """Write what was planned, or request it: all or nothing.

    Returns the request, None if the changes were written. Raises TooManyInvitations, NoReason,
    IdentifierConflict, Refused, access.Forbidden, Conflict, StoreUnavailable. Source: D55, D60
    """
    new = {change.key for change in plan.changes if change.kind == "membership"}
    there = {each.person.membership.key: each.person.membership for each in plan.lines}
    seen = [Precondition(Membership, key, membership) for key, membership in there.items() if key not in new]
    with translate_refusals():
        return await write_changes(
            registry, actor, plan.changes, asking=asking, seen=seen,
            once_checked=lambda: limit.count_changes(actor, plan.changes, now=asking.now),
        )  # fmt: skip
