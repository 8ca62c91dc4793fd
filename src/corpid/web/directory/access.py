"""Access of people: given, changed, taken away, copied, and from a table (D53, D54, D55, D60)."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import import_access, role_assignment
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.members import find_one_member
from corpid.flows.directory.role_assignment import UnknownRole
from corpid.flows.directory.write import Refused, RequestDetails, needs_approval
from corpid.rules.directory import access_texts
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_conditions import SOMEBODY_ELSE, WITHIN_REACH
from corpid.rules.directory.approvals import MOST_CHANGES
from corpid.rules.directory.nodes import DirectoryError
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import Change
from corpid.rules.directory.role_forms import faults, form_of, row_of
from corpid.rules.directory.tables import ACCESS_COLUMNS, MOST_ACCESS_LINES, PARAMETER
from corpid.texts import counted, phrase
from corpid.web.directory.member_texts import REFUSALS, rejected
from corpid.web.directory.page_context import (
    NAMES_CHANGED,
    PortalContext,
    PortalPage,
    check_names,
    frame,
    names_shown,
    portal_path,
    query_address,
    reason,
    saved_or_requested,
    section_link,
    submit_changes,
)
from corpid.web.directory.people import PERSON, PERSON_CHOSEN, choose_person
from corpid.web.pages import role_fields
from corpid.web.pages.errors import refusal_of
from corpid.web.pages.layout import FormView, Link, ViewPart
from corpid.web.sites import ConfirmationRequired, FormResult, InvalidForm, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date

    from corpid.flows.directory.import_access import ImportPlan, ImportPlanLine, Verb
    from corpid.flows.directory.members import Member
    from corpid.flows.directory.role_assignment import HeldRole
    from corpid.rules.directory.records import Assignment, Entity, Service
    from corpid.rules.directory.role_forms import RoleForm
    from corpid.texts import Phrase
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.role_fields import Option, RoleFields
    from corpid.web.pages.views import View

HeldLine = tuple["Phrase", "tuple[Phrase, ...]"]
"""a role that a person has: its sentence and its limits"""
Pairs = tuple[tuple[str, str], ...]
"""hidden fields: name and value"""
NEW: Final = "access/new"
CHANGE: Final = "access/change"
REMOVE: Final = "access/remove"
COPY: Final = "access/copy"
IMPORT: Final = "access/import"
_SERVICES: Final = 12
"""that are listed without a search"""
_HELD: Final = 12
"""roles that are listed before a form"""
CHECK: Final = "check"
"""the field of a form that is complete"""
_BOX: Final = "copy-"
_FROM: Final = "from"
_MOST_COPIED: Final = 50
"""roles of one page: a form has at most a hundred fields"""
MOST_CHARACTERS: Final = 20_000
_PEOPLE: Final = "people"
_DOES: Final[Mapping[Verb, Phrase]] = {
    "invite": phrase("Invite"),
    "give": phrase("Give"),
    "change": phrase("Change"),
    "nothing": phrase("No change"),
}


class GiveAccess(FormView, frozen=True, kw_only=True):
    """A person's new access: service, role and days, one after the other."""

    template: ClassVar[str] = "manage/give_access.html"
    heading: ClassVar[Phrase] = phrase("Give access")

    kept: Pairs
    """what was chosen before"""
    chosen: tuple[tuple[Phrase, str, str], ...]
    """what was chosen, by name, value and where to change it"""
    held: tuple[HeldLine, ...] = ()
    """what the person has already; at the service, once it is chosen"""
    holds_more: bool = False
    refused: Phrase | None = None
    """why nothing can be given"""
    services: tuple[Option, ...] = ()
    service: str = ""
    find: str = ""
    searchable: bool = False
    fields: RoleFields | None = None
    confirm: AccessConfirmation | None = None
    back: Link
    links: tuple[Link, ...] = ()


class AccessConfirmation(ViewPart, frozen=True, kw_only=True):
    """A change in a sentence, to be confirmed."""

    sentence: Phrase
    details: tuple[Phrase, ...]
    kept: Pairs
    needs_approval: bool
    reason: str
    again: str
    """where to change what was typed"""
    was: Phrase | None = None
    was_details: tuple[Phrase, ...] = ()


class ChangeAccess(FormView, frozen=True, kw_only=True):
    """A role to be changed: fields, then both sentences."""

    template: ClassVar[str] = "manage/change_access.html"
    heading: ClassVar[Phrase] = phrase("Change access")

    was: Phrase
    was_details: tuple[Phrase, ...]
    refused: Phrase | None = None
    fields: RoleFields | None = None
    confirm: AccessConfirmation | None = None
    remove: str
    back: Link


class RemoveAccess(FormView, frozen=True, kw_only=True):
    """A role to be taken away."""

    template: ClassVar[str] = "manage/remove_access.html"
    heading: ClassVar[Phrase] = phrase("Remove this access?")

    was: Phrase
    was_details: tuple[Phrase, ...]
    loses: Phrase
    refused: Phrase | None = None
    needs_approval: bool
    back: Link


class CopiedRole(ViewPart, frozen=True, kw_only=True):
    """A role that can be copied: its box and its sentence."""

    name: str
    sentence: Phrase
    details: tuple[Phrase, ...]
    chosen: bool


class CopyAccess(FormView, frozen=True, kw_only=True):
    """The roles of a colleague, to be given to a person."""

    template: ClassVar[str] = "manage/copy_access.html"
    heading: ClassVar[Phrase] = phrase("Copy a colleague's access")

    kept: Pairs
    colleague: str
    another: str
    """where to choose another colleague"""
    roles: tuple[CopiedRole, ...]
    held: tuple[HeldLine, ...]
    """what the person has already"""
    more: bool
    not_all: bool = False
    """whether the colleague has more roles than this page looks at"""
    needs_approval: bool
    back: Link


class ImportedLine(ViewPart, frozen=True, kw_only=True):
    """The effect of a line of a table."""

    number: int
    does: Phrase
    sentence: Phrase
    details: tuple[Phrase, ...]


class ImportAccess(FormView, frozen=True, kw_only=True):
    """A table of people and roles: pasted, looked at, confirmed."""

    template: ClassVar[str] = "manage/import_access.html"
    heading: ClassVar[Phrase] = phrase("Give access with a table")

    table: str
    columns: tuple[str, ...]
    most_lines: int
    problems: tuple[tuple[int, str], ...]
    """line and what is wrong there"""
    lines: tuple[ImportedLine, ...]
    changes: Phrase | None
    """how many there would be; None before the table was sent"""
    is_change: bool
    needs_approval: bool


# --- a person and a service


async def this_person(at: PortalContext, membership_id: str) -> Member:
    """The member that an address names. Raises NotFound."""
    found = await find_one_member(at.registry, at.actor, membership_id)
    if found is None:
        raise NotFound
    return found


async def explain_refusal(at: PortalContext, found: Member, service: Service) -> Phrase | None:
    """Why the reader cannot change a person's access; None if they can (D53, D54)."""
    why = await role_assignment.explain_refusal(at.registry, at.actor, found, service)
    if not why:
        return None
    if why == SOMEBODY_ELSE.reason:
        return own_access(at.entity)
    if why == WITHIN_REACH.reason:
        return administers(found.name, at.entity)
    return phrase("You cannot do this: {reason}.", reason=why)


def own_access(entity: Entity) -> Phrase:
    """The refusal of a change to the reader's own access. Source: D54"""
    return phrase("You cannot change your own access. Another administrator of {entity} can do it.", entity=entity.name)


def administers(name: str, entity: Entity) -> Phrase:
    """The refusal of a change to an administrator's access. Source: D54"""
    return phrase("{name} administers {entity}. Only an owner can change this access.", name=name, entity=entity.name)


def to_person(at: PortalContext, found: Member) -> Link:
    return Link(
        url=portal_path(at.web, f"{PERSON}/{found.membership.membership_id}"), text=phrase("{name}", name=found.name)
    )


def person_address(at: PortalContext, page: str, *, field: str = PERSON_CHOSEN, **kept: str) -> Callable[[Member], str]:
    """The addresses of a page with the chosen person in `field`."""
    return lambda found: query_address(at, page, **kept, **{field: found.membership.membership_id})


# --- giving


async def show_new(at: PortalContext) -> View:
    """The page that gives access, one step at a time."""
    given = {**at.query, **at.form}
    if not given.get("person"):
        return await choose_person(
            at,
            NEW,
            person_address(at, NEW),
            frame=frame(at, section="people"),
            heading=GiveAccess.heading,
            asked=phrase("Who gets access?"),
            links=(Link(url=portal_path(at.web, IMPORT), text=phrase("Give access to several people at once")),),
        )
    person = await this_person(at, given["person"])
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    view = GiveAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person)),
        action=portal_path(at.web, NEW),
        kept=(("person", given["person"]),),
        chosen=((phrase("Person"), person.name, portal_path(at.web, NEW)),),
        back=to_person(at, person),
    )
    if not services:
        return replace(
            view,
            refused=phrase(
                "You do not administer any service that {entity} may use. Ask an owner.", entity=at.entity.name
            )
            if at.actor.level == "sub_administrator"
            else phrase("There is no service that {entity} may use.", entity=at.entity.name),
        )
    why = await explain_refusal(at, person, services[0])
    if why is not None:
        return replace(view, refused=why)
    wanted = services[0].service_id if len(services) == 1 else given.get("service", "")
    service = next((each for each in services if each.service_id == wanted), None)
    held = await _held(at, person)
    if service is None:
        view = _with_held(view, [line for _, line in held])
        copy = Link(
            url=query_address(at, COPY, person=given["person"]), text=phrase("Copy a colleague's access instead")
        )
        return replace(_with_services(view, services, given), links=(copy,))
    return await _details(at, view, person, service, given, held, several=len(services) > 1)


async def _held(at: PortalContext, person: Member) -> list[tuple[HeldRole, HeldLine]]:
    """The present roles of a person that the reader may see."""
    found = await role_assignment.list_roles(at.registry, at.actor, person.user.user_id)
    return [
        (each, held_line(person.name, each.row, each.service, at.entity, at.context.day))
        for each in found.found
        if each.row.end_date >= at.context.today
    ]


def _with_held(view: GiveAccess, held: Sequence[HeldLine]) -> GiveAccess:
    return replace(view, held=tuple(held[:_HELD]), holds_more=len(held) > _HELD)


def held_line(name: str, row: Assignment, service: Service, entity: Entity, today: date) -> HeldLine:
    """A role that somebody has, as its line in a list."""
    return access_texts.sentence(name, row, service, entity.name, today), access_texts.details(row)


async def build_fields(at: PortalContext, form: RoleForm, *, always: bool = False) -> RoleFields:
    """The fields of a role, with values that the entity uses.

    `always` as in `role_fields.build_fields`.
    """
    used = await role_assignment.list_values_in_use(at.registry, at.actor, form.service, today=at.context.today)
    return role_fields.build_fields(form, at.context.day, always=always, used=used)


def _with_services(view: GiveAccess, services: Sequence[Service], given: Mapping[str, str]) -> GiveAccess:
    find = given.get("find", "").strip().casefold()
    found = [each for each in services if find in f"{each.name} {each.service_id}".casefold()]
    errors: tuple[FieldError, ...] = view.errors
    if given.get(CHECK) == "service" and not errors:
        errors = (("service", phrase("Choose a service.")),)
    return replace(
        view,
        services=tuple((each.service_id, each.name, each.description) for each in found),
        service=given.get("service", ""),
        find=given.get("find", ""),
        searchable=len(services) > _SERVICES,
        errors=errors if found else (),
    )


async def _details(
    at: PortalContext,
    view: GiveAccess,
    person: Member,
    service: Service,
    given: Mapping[str, str],
    held: Sequence[tuple[HeldRole, HeldLine]],
    *,
    several: bool,
) -> GiveAccess:
    form = role_fields.read(given, service)
    wrong = faults(form, at.context.day) if given.get(CHECK) == "all" else ()
    elsewhere = query_address(at, NEW, person=given["person"]) if several else ""
    here = [line for role, line in held if role.row.service_id == service.service_id]
    view = replace(
        _with_held(view, here),
        kept=(*view.kept, ("service", service.service_id)),
        chosen=(*view.chosen, (phrase("Service"), service.name, elsewhere)),
        errors=at.errors or role_fields.errors_of(wrong),
    )
    if given.get(CHECK) != "all" or wrong:
        return replace(view, fields=await build_fields(at, form))
    row = row_of(form, user_id=person.user.user_id, entity_id=at.entity.entity_id, today=at.context.day)
    was = await role_assignment.find_stored_role(at.registry, row)
    if was is not None and was.end_date >= at.context.today:
        there = Link(url=f"{portal_path(at.web, CHANGE)}/{object_id(was.key)}", text=phrase("Change this access"))
        errors = ((_role_field(service), _already(person)),)
        return replace(view, errors=errors, fields=await build_fields(at, form), links=(there,))
    try:
        needs = await needs_approval(at.registry, at.actor, [Change(was, row)])
    except Refused as error:
        return replace(view, errors=(("", refusal_of(error)),), fields=await build_fields(at, form))
    kept = (*view.kept, *role_fields.to_hidden_fields(form), (CHECK, "all"))
    return replace(
        view,
        confirm=AccessConfirmation(
            sentence=access_texts.sentence(person.name, row, service, at.entity.name, at.context.day),
            details=access_texts.details(row),
            kept=kept,
            needs_approval=needs,
            reason=given.get("reason", ""),
            again=query_address(at, NEW, **{name: value for name, value in kept if name != CHECK}),
        ),
        notes=(*view.notes, *explain_no_effect(person)),
    )


def _role_field(service: Service) -> str:
    return "role" if service.roles else ""


def _already(person: Member) -> Phrase:
    return phrase("{name} already has this role. Change it instead.", name=person.name)


def explain_no_effect(person: Member) -> tuple[Phrase, ...]:
    """Why access has no effect yet, if it has none."""
    if person.membership.invited:
        return (phrase("It has no effect until {name} accepts the invitation.", name=person.name),)
    if not person.membership.enabled:
        return (phrase("It has no effect while {name} is suspended.", name=person.name),)
    return ()


async def give_access(at: PortalContext) -> FormResult:
    """Give the access that was confirmed. Raises InvalidInput, NotFound."""
    person = await this_person(at, at.form.get("person", ""))
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    service = next((each for each in services if each.service_id == at.form.get("service")), None)
    if service is None:
        raise InvalidInput(phrase("Choose a service."), field="service")
    typed = role_fields.read(at.form, service)
    for field, text in role_fields.errors_of(faults(typed, at.context.day)):
        raise InvalidInput(text, field=field)
    row = row_of(typed, user_id=person.user.user_id, entity_id=at.entity.entity_id, today=at.context.day)
    was = await role_assignment.find_stored_role(at.registry, row)
    if was is not None and was.end_date >= at.context.today:
        raise InvalidInput(_already(person), field=_role_field(service))
    return await submit_roles(at, person, [Change(was, row)], "access-given")


async def submit_roles(
    at: PortalContext, person: Member, changes: Sequence[Change], done: str, *, shown: Sequence[Member] = ()
) -> FormResult:
    """Write changes of a person's roles or request them.

    Says which, on the person's page. `shown` are further people whom the form showed. Raises InvalidInput, also if it
    was shown for somebody else. Source: D68
    """
    check_names(at, names_shown(person, *shown))
    saved = FormResult(done, f"{PERSON}/{person.membership.membership_id}")
    return await submit_changes(at, changes, saved, of=person.membership)


# --- changing a role, or taking it away


async def _this_role(at: PortalContext) -> tuple[HeldRole, Member]:
    identifier = at.page.rpartition("/")[2]
    try:
        return await role_assignment.load_role(at.registry, at.actor, identifier)
    except UnknownRole:
        raise NotFound from None


async def show_change(at: PortalContext) -> View:
    """The page that changes a role, one step at a time."""
    given = {**at.query, **at.form}
    role, person = await _this_role(at)
    today, here = at.context.day, portal_path(at.web, at.page)
    view = ChangeAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person)),
        action=here,
        was=access_texts.sentence(person.name, role.row, role.service, at.entity.name, today),
        was_details=access_texts.details(role.row),
        notes=(*at.notes, *explain_no_effect(person)),
        remove=f"{portal_path(at.web, REMOVE)}/{role.id}",
        back=to_person(at, person),
    )
    why = await explain_refusal(at, person, role.service)
    if why is not None:
        return replace(view, refused=why)
    as_it_is, is_complete = form_of(role.row, role.service), given.get(CHECK) == "all"
    # Of a complete form, what was emptied is not sent.
    form = role_fields.read(given, role.service, otherwise=None if is_complete else as_it_is)
    wrong = faults(form, today) if is_complete else ()
    always = as_it_is.start != form.start

    async def ask(errors: tuple[FieldError, ...]) -> View:
        return replace(view, fields=await build_fields(at, form, always=always), errors=errors)

    if not is_complete or wrong:
        return await ask(at.errors or role_fields.errors_of(wrong))
    becomes = row_of(form, user_id=role.row.user_id, entity_id=role.row.entity_id, today=today, ref=role.row.ref)
    try:
        changes = await _changes(at, role, form)
        needs = await needs_approval(at.registry, at.actor, changes)
    except InvalidInput as rejected:
        return await ask(((rejected.field, rejected.sentence),))
    except Refused as error:
        return await ask((("", refusal_of(error)),))
    kept = (*role_fields.to_hidden_fields(form), (CHECK, "all"))
    return replace(
        view,
        confirm=AccessConfirmation(
            sentence=access_texts.sentence(person.name, becomes, role.service, at.entity.name, today),
            details=access_texts.details(becomes),
            kept=kept,
            needs_approval=needs,
            reason=given.get("reason", ""),
            again=query_address(at, at.page, **{name: value for name, value in kept if name != CHECK}),
            was=view.was,
            was_details=view.was_details,
        ),
    )


async def _changes(at: PortalContext, role: HeldRole, form: RoleForm) -> list[Change]:
    """The changes that make a role what was typed."""
    becomes = row_of(
        form, user_id=role.row.user_id, entity_id=role.row.entity_id, today=at.context.day, ref=role.row.ref
    )
    found = role_assignment.plan_replacement(role.row, becomes)
    if not found:
        raise InvalidInput(phrase("Nothing would change. Change something, or go back."))
    another = await role_assignment.find_stored_role(at.registry, becomes)
    if another is not None and another.key != role.row.key:
        raise InvalidInput(phrase("This person already has that role."), field="role")
    return found


async def change_access(at: PortalContext) -> FormResult:
    """Change the role as it was confirmed. Raises InvalidInput, NotFound."""
    role, person = await _this_role(at)
    form = role_fields.read(at.form, role.service)
    for field, text in role_fields.errors_of(faults(form, at.context.day)):
        raise InvalidInput(text, field=field)
    changes = await _changes(at, role, form)
    return await submit_roles(at, person, changes, "access-changed")


async def show_removal(at: PortalContext) -> View:
    """The question whether a role is to be taken away."""
    role, person = await _this_role(at)
    why = await explain_refusal(at, person, role.service)
    needs = False
    if why is None:
        needs = await needs_approval(at.registry, at.actor, [Change(role.row, None)])
    return RemoveAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person)),
        was=access_texts.sentence(person.name, role.row, role.service, at.entity.name, at.context.day),
        was_details=access_texts.details(role.row),
        loses=phrase(
            "{name} will no longer be able to do this. Other access of {name} stays as it is.", name=person.name
        ),
        refused=why,
        needs_approval=needs,
        back=to_person(at, person),
    )


async def remove_access(at: PortalContext) -> FormResult:
    """Take a role away. Raises InvalidInput, NotFound."""
    role, person = await _this_role(at)
    return await submit_roles(at, person, [Change(role.row, None)], "access-removed")


# --- copying from a colleague


class _Copies(NamedTuple):
    more: bool
    """whether the colleague has more roles than were looked at"""
    found: list[tuple[Assignment, Service, Change]]
    held: list[tuple[Assignment, Service]]


async def show_copy(at: PortalContext) -> View:
    """The choice of a colleague, then of their roles. Raises NotFound."""
    given = {**at.query, **at.form}
    person = await this_person(at, given.get("person", ""))
    why = await _refuse_copy(at, person)
    if why is not None or not given.get(_FROM):
        choice = await choose_person(
            at,
            COPY,
            person_address(at, COPY, field=_FROM, person=given["person"]),
            frame=frame(at, section="people", up=to_person(at, person)),
            heading=phrase("Copy access for {name}", name=person.name),
            asked=phrase("Whose access?"),
            kept=(("person", given["person"]),),
        )
        return replace(choice, refused=why)
    colleague = await this_person(at, given[_FROM])
    copies = await _copies(at, person, colleague)
    entity, today, name = at.entity.name, at.context.day, person.name
    changes = [change for _, _, change in copies.found[:_MOST_COPIED]]
    return CopyAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person, colleague)),
        kept=(("person", given["person"]), (_FROM, given[_FROM])),
        colleague=colleague.name,
        another=query_address(at, COPY, person=given["person"]),
        roles=tuple(
            CopiedRole(
                name=box(row, at.context.today),
                sentence=access_texts.sentence(name, row, service, entity, today),
                details=access_texts.details(row),
                chosen=box(row, at.context.today) in at.form,
            )
            for row, service, _ in copies.found[:_MOST_COPIED]
        ),
        held=tuple(held_line(name, row, service, at.entity, today) for row, service in copies.held[:_MOST_COPIED]),
        more=len(copies.found) > _MOST_COPIED,
        not_all=copies.more,
        needs_approval=bool(changes) and await needs_approval(at.registry, at.actor, changes),
        reason=given.get("reason", ""),
        notes=(*at.notes, *explain_no_effect(person)),
        back=to_person(at, person),
    )


async def _refuse_copy(at: PortalContext, person: Member) -> Phrase | None:
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    if not services:
        return phrase("You cannot give access at any service.")
    return await explain_refusal(at, person, services[0])


async def _copies(at: PortalContext, person: Member, colleague: Member) -> _Copies:
    """The roles that the person would get, and those that they have."""
    known = {each.service_id for each in await role_assignment.list_services(at.registry, at.actor, at.entity)}
    found, held = list[tuple["Assignment", "Service", "Change"]](), list[tuple["Assignment", "Service"]]()
    held_by_colleague = await role_assignment.list_roles(at.registry, at.actor, colleague.user.user_id)
    for role in held_by_colleague.found:
        row = role_assignment.copy_role(role.row, role.service, user_id=person.user.user_id, today=at.context.today)
        if row is None or row.service_id not in known:
            continue
        was = await role_assignment.find_stored_role(at.registry, row)
        if was is not None and was.end_date >= at.context.today:
            held.append((was, role.service))
        else:
            found.append((row, role.service, Change(was, row)))
    return _Copies(bool(held_by_colleague.after), found, held)


def box(row: Assignment, today: str) -> str:
    """The name of a role's box.

    Another one if anything else is copied; one that has begun begins today.
    """
    copied = msgspec.structs.replace(row, user_id="", start_date=row.start_date if row.start_date > today else "")
    return _BOX + sha256(msgspec.json.encode(copied)).hexdigest()[:12]


async def copy_access(at: PortalContext) -> FormResult:
    """Give the roles that were ticked. Raises InvalidInput, NotFound."""
    person = await this_person(at, at.form.get("person", ""))
    colleague = await this_person(at, at.form.get(_FROM, ""))
    why = await _refuse_copy(at, person)
    if why is not None:
        raise InvalidInput(why)
    copies = await _copies(at, person, colleague)
    chosen = [change for row, _, change in copies.found if box(row, at.context.today) in at.form]
    if not chosen:
        raise InvalidInput(
            phrase("Choose what to copy."), field=box(copies.found[0][0], at.context.today) if copies.found else ""
        )
    return await submit_roles(at, person, chosen, "access-given", shown=[colleague])


# --- from a table


async def show_import(at: PortalContext) -> View:
    """The form for a table."""
    return _import_view(at)


def _import_view(
    at: PortalContext,
    *,
    plan: ImportPlan | None = None,
    problems: tuple[tuple[int, str], ...] = (),
    errors: tuple[FieldError, ...] = (),
) -> ImportAccess:
    return ImportAccess(
        frame=frame(at, section="people", up=section_link(at, _PEOPLE), names=plan.names if plan else ""),
        table=at.form.get("table", ""),
        columns=(*ACCESS_COLUMNS, f"{PARAMETER}…"),
        most_lines=MOST_ACCESS_LINES,
        problems=problems,
        lines=tuple(_import_line(at, each) for each in plan.lines) if plan else (),
        changes=None
        if plan is None
        else counted(len(plan.changes), "This makes {count} change.", "This makes {count} changes.")
        if plan.changes
        else phrase("Nothing would change."),
        is_change=bool(plan and plan.changes),
        needs_approval=plan is not None and plan.needs_approval,
        errors=errors,
        back=portal_path(at.web, _PEOPLE),
    )


def _import_line(at: PortalContext, planned: ImportPlanLine) -> ImportedLine:
    name, entity = planned.person.name, at.entity.name
    details: tuple[Phrase, ...] = ()
    sentence = phrase("{name} belongs to {entity}.", name=name, entity=entity)
    if planned.row is not None and planned.service is not None:
        sentence = access_texts.sentence(name, planned.row, planned.service, entity, at.context.day)
        details = access_texts.details(planned.row)
    elif planned.verb == "invite":
        email = planned.person.membership.email
        sentence = phrase("{name} gets an invitation for {entity}.", name=name, entity=entity)
        details = (phrase("{email}", email=email),) if email else (phrase("No e-mail address: no e-mail is sent"),)
    return ImportedLine(number=planned.line, does=_DOES[planned.verb], sentence=sentence, details=details)


async def import_table(at: PortalContext) -> FormResult:
    """Do what a table says, once confirmed. Raises ConfirmationRequired, InvalidForm, InvalidInput."""
    decision = at.form.get("decision", "")
    if decision == "edit":
        raise InvalidForm
    try:
        plan = await _plan_import(at)
    except DirectoryError:
        raise ConfirmationRequired from None
    if decision != "confirm" or not plan.changes:
        raise ConfirmationRequired
    if at.form.get("names", "") != plan.names:
        raise ConfirmationRequired(("", NAMES_CHANGED))
    try:
        request = await import_access.submit_import(
            at.registry,
            InvitationLimit.for_request(at.context),
            at.actor,
            plan,
            RequestDetails(reason(at), at.context.now, at.provider.new_id()),
        )
    except (InvalidInput, *REFUSALS) as error:
        why = error if isinstance(error, InvalidInput) else rejected(error, entity=at.entity)
        field = why.field if why.field == "reason" else ""
        raise ConfirmationRequired((field, why.sentence)) from None
    return saved_or_requested(request, FormResult("access-imported", _PEOPLE))


async def check_import(at: PortalContext) -> View:
    """The changes or the mistakes of the form's table. Raises InvalidInput."""
    try:
        plan = await _plan_import(at)
    except DirectoryError as error:
        problems = tuple((each.line, each.reason) for each in error.problems)
        wrong = counted(
            len(problems),
            "{count} problem in the table. Nothing has been changed.",
            "{count} problems in the table. Nothing has been changed.",
        )
        return _import_view(at, problems=problems, errors=(("table", wrong),))
    return _import_view(at, plan=plan)


async def _plan_import(at: PortalContext) -> ImportPlan:
    """The changes of the table. Raises DirectoryError with its problems, InvalidInput."""
    context, table = at.context, at.form.get("table", "")
    if not table.strip():
        raise InvalidInput(phrase("Paste a table."), field="table")
    if len(table) > MOST_CHARACTERS:
        raise InvalidInput(phrase("Enter at most {limit} characters.", limit=MOST_CHARACTERS), field="table")
    try:
        plan = await import_access.plan_import(
            at.registry, at.actor, at.entity, table, now=context.now, today=context.day,
            new_id=at.web.new_user_id,
        )  # fmt: skip
    except Forbidden as error:
        raise InvalidInput(refusal_of(error), field="table") from None
    if plan.needs_approval and len(plan.changes) > MOST_CHANGES:
        raise InvalidInput(
            phrase(
                "This needs approval, and a request has at most {most} changes. Send fewer lines.", most=MOST_CHANGES
            ),
            field="table",
        )
    return plan


def _path(page: str) -> re.Pattern[str]:
    """The paths of a page about one role."""
    return re.compile(f"{page}/[A-Za-z0-9_-]{{1,1000}}")


_GIVING: Final = ("write", "assignment")
SECTION: Final = Section[PortalContext](
    pages={
        NEW: PortalPage(view=show_new, submit=give_access, fresh=True, needs=_GIVING),
        COPY: PortalPage(view=show_copy, submit=copy_access, fresh=True, needs=_GIVING),
        IMPORT: PortalPage(view=show_import, submit=import_table, check=check_import, fresh=True, needs=_GIVING),
    },
    named_pages={
        _path(CHANGE): PortalPage(view=show_change, submit=change_access, fresh=True, needs=_GIVING),
        _path(REMOVE): PortalPage(view=show_removal, submit=remove_access, fresh=True, needs=("delete", "assignment")),
    },
    fields=role_fields.FIELDS | {"person", "service", "reason", CHECK, _FROM, "table", "decision"},
    filters=role_fields.FIELDS | {"person", "service", "find", _FROM},
    prefixes=(role_fields.PARAMETER, _BOX),
    changes={
        "access-given": phrase("The access has been given."),
        "access-changed": phrase("The access has been changed."),
        "access-removed": phrase("The access has been removed."),
        "access-imported": phrase("The table has been applied."),
    },
)
