"""A table of an entity's people and roles: planned, then written.

What needs approval is requested. Source: D55, D60
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import msgspec

from corpid.flows.directory import approvals, role_assignment
from corpid.flows.directory.members import AmbiguousName, find_member
from corpid.flows.directory.person_names import known_name, names_digest
from corpid.flows.directory.provisioning import (
    IdentifierConflict,
    InvalidDetails,
    Member,
    MemberDetails,
    invitation,
    refuse_taken,
    store_refusals,
)
from corpid.flows.directory.write import Refused, authorise_changes
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_file import parse_access
from corpid.rules.directory.changes import Precondition
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.nodes import DirectoryError, Problem
from corpid.rules.directory.plan import Change
from corpid.rules.directory.records import Assignment, Membership, Service, User
from corpid.rules.directory.role_forms import ENDLESS, ON_DAY, RoleForm, faults, form_of, row_of
from corpid.texts import phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import date

    from corpid.flows.directory.invitation_limits import InvitationLimit
    from corpid.rules.directory.access_file import AccessLine
    from corpid.rules.directory.actors import EntityAdministrator
    from corpid.rules.directory.records import ChangeRequest, Entity
    from corpid.stores.sql.registry import Registry
    from corpid.texts import Phrase

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
        """A digest of who is meant in each line.

        Whom the table invites is only in the table. Source: D68
        """
        invited = {each.person.user.user_id for each in self.lines if each.verb == "invite"}
        return names_digest(
            (
                each.line,
                None if each.person.user.user_id in invited else known_name(each.person.user, each.person.membership),
                each.row.key[1:] if each.row is not None else (),
            )
            for each in self.lines
        )


class _ImportPlanner:
    """The people and roles of a table, line by line."""

    def __init__(
        self, registry: Registry, actor: EntityAdministrator, services: Mapping[str, Service], *, now: float, today: date,
        new_id: Callable[[], str],
    ) -> None:  # fmt: skip
        self.lines: list[ImportPlanLine] = []
        self.invited: list[Change] = []
        self.roles: list[Change] = []
        self.problems: list[Problem] = []
        self._registry = registry
        self._actor = actor
        self._services = services
        self._now = now
        self._today = today
        self._new_id = new_id
        self._people: dict[str, Member] = {}
        """by what a line says: accounts differ whose names fold alike"""
        self._invitees: dict[str, Member] = {}
        """by folded name, which an entity gives once"""
        self._rows: dict[tuple[str, ...], int] = {}

    async def add(self, line: AccessLine) -> None:
        """Plan one line, or note why it cannot be."""
        person = await self._person(line)
        if person is None:
            return
        if not line.cells.get("service"):
            if not any(each.person is person for each in self.lines):
                self.lines.append(ImportPlanLine(line=line.line, verb="nothing", person=person))
            return
        service = self._services.get(line.cells["service"]) or self._by_name(line.cells["service"])
        if service is None:
            self._wrong(line, phrase("There is no service {name} here.", name=line.cells["service"]))
            return
        unknown = [name for name, value in line.parameters.items() if value and name not in _names(service)]
        if unknown:
            self._wrong(line, phrase("{service} has no parameter {name}.", service=service.name, name=unknown[0]))
            return
        await self._role(line, person, service)

    def _by_name(self, name: str) -> Service | None:
        return next((each for each in self._services.values() if fold_text(each.name) == fold_text(name)), None)

    async def _person(self, line: AccessLine) -> Member | None:
        user_name = line.cells["user_name"]
        if user_name not in self._people:
            try:
                found = await find_member(self._registry, self._actor.entity_id, user_name)
            except AmbiguousName as error:
                self._wrong(line, str(error))
                return None
            found = found or self._invitees.get(fold_text(user_name)) or await self._invited(line)
            if found is None:
                return None
            self._people[user_name] = found
        return self._people[user_name]

    async def _invited(self, line: AccessLine) -> Member | None:
        cells = line.cells
        if not cells.get("name"):
            self._wrong(
                line, phrase("Nobody here has this user name. To invite the person, fill in name and e-mail address.")
            )
            return None
        details = MemberDetails(user_name=cells["user_name"], name=cells["name"], email=cells.get("email", ""))
        try:
            change = invitation(
                details, self._actor.entity_id, now=self._now, new_id=self._new_id, enabled=True, send=True
            )
            membership = change.becomes
            assert isinstance(membership, Membership)  # noqa: S101 - of an invitation
            await refuse_taken(self._registry, membership)
            await authorise_changes(self._registry, self._actor, [change])
        except InvalidDetails as error:
            self.problems += [Problem(line.line, f"{member}: {sentence}") for member, sentence in error.faults]
            return None
        except IdentifierConflict as error:
            self._wrong(line, str(error))
            return None
        except Forbidden as error:
            self._wrong(line, error.reason)
            return None
        self.invited.append(change)
        nobody = User(user_id=membership.user_id, user_name="", name="", enabled=False, placeholder=True)
        found = Member(membership=membership, user=nobody)
        self.lines.append(ImportPlanLine(line=line.line, verb="invite", person=found))
        self._invitees[fold_text(cells["user_name"])] = found
        return found

    async def _role(self, line: AccessLine, person: Member, service: Service) -> None:
        user_id, entity_id = person.membership.user_id, self._actor.entity_id
        named = Assignment(
            user_id=user_id, entity_id=entity_id, service_id=service.service_id,
            role=line.cells.get("role", ""), sub_entity=line.cells.get("sub_entity", ""),
        )  # fmt: skip
        was = await role_assignment.find_stored_role(self._registry, named)
        form = _form(line, service, was if was and was.end_date >= self._today.isoformat() else None)
        wrong = faults(form, self._today)
        if wrong:
            self.problems += [
                Problem(line.line, _no_such_role(form) if member == "role" else text) for member, text in wrong
            ]
            return
        row = row_of(form, user_id=user_id, entity_id=entity_id, today=self._today)
        if row.key in self._rows:
            self._wrong(line, phrase("The same role as in line {line}.", line=self._rows[row.key]))
            return
        self._rows[row.key] = line.line
        if was == row:
            self.lines.append(ImportPlanLine(line=line.line, verb="nothing", person=person, row=row, service=service))
            return
        change = role_assignment.plan_role(was, row)
        try:
            await authorise_changes(self._registry, self._actor, [change])
        except Forbidden as error:
            self._wrong(line, error.reason)
            return
        self.roles.append(change)
        verb: Verb = "change" if was else "give"
        self.lines.append(ImportPlanLine(line=line.line, verb=verb, person=person, row=row, service=service))

    def _wrong(self, line: AccessLine, reason: str) -> None:
        self.problems.append(Problem(line.line, reason))


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


def _names(service: Service) -> set[str]:
    return {each.name for each in service.parameters}


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
    services = {each.service_id: each for each in await role_assignment.services(registry, actor, entity)}
    planning = _ImportPlanner(registry, actor, services, now=now, today=today, new_id=new_id)
    for line in lines:
        await planning.add(line)
    if planning.problems:
        raise DirectoryError("", sorted(planning.problems, key=lambda each: each.line))
    changes = (*planning.invited, *planning.roles)
    needs = bool(changes) and bool((await authorise_changes(registry, actor, changes)).needing)
    return ImportPlan(lines=tuple(planning.lines), changes=changes, needs_approval=needs)


async def submit(
    registry: Registry,
    limit: InvitationLimit,
    actor: EntityAdministrator,
    plan: ImportPlan,
    *,
    reason: str,
    now: float,
    unique: str,
) -> ChangeRequest | None:
    """Write what was planned, or request it: all or nothing.

    Returns the request, None if the changes were written. Raises TooManyInvitations, approvals.NoReason,
    IdentifierConflict, Refused, access.Forbidden, Conflict, StoreUnavailable. Source: D55, D60
    """
    problems = await approvals.unfitting(registry, plan.changes)
    if problems:
        raise Refused("the rules do not allow this:", *(f"  {problem}" for problem in problems))
    if plan.needs_approval:
        approvals.check_reason(reason)
    for change in plan.changes:
        if isinstance(change.becomes, Membership):
            await limit.count(actor, actor.entity_id, change.becomes.email, now=now)
    seen = [
        Precondition(Assignment if change.kind == "assignment" else Membership, change.key, change.was)  # type: ignore[arg-type]
        for change in plan.changes
    ]
    new = {change.key for change in plan.changes if change.kind == "membership"}
    there = {each.person.membership.key: each.person.membership for each in plan.lines}
    seen += [Precondition(Membership, key, membership) for key, membership in there.items() if key not in new]
    with store_refusals():
        return await approvals.submit(registry, actor, plan.changes, reason=reason, now=now, unique=unique, seen=seen)
