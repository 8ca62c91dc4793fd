"""Pages that give a person access, and the shared parts of access (D53, D54, D55)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import role_assignment
from corpid.flows.directory.members import find_one_member
from corpid.flows.directory.write import Refused
from corpid.rules.directory.access_conditions import SOMEBODY_ELSE, WITHIN_REACH
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.role_forms import faults, row_of
from corpid.texts import phrase
from corpid.web.directory.access_views import AccessConfirmation, GiveAccess
from corpid.web.directory.choose_person import PERSON_CHOSEN, choose_person
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.writing import await_change, check_names, names_shown, reason, saved_or_requested
from corpid.web.pages import access_texts, role_fields
from corpid.web.pages.layout import Link
from corpid.web.pages.refusals import refusal_of
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import date

    from corpid.flows.directory.members import Member
    from corpid.flows.directory.role_assignment import HeldRole
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import Assignment, Entity, Service
    from corpid.rules.directory.role_forms import RoleForm
    from corpid.texts import Phrase
    from corpid.web.directory.access_views import HeldLine
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.role_fields import RoleFields
    from corpid.web.pages.views import View

NEW: Final = "access/new"
CHANGE: Final = "access/change"
REMOVE: Final = "access/remove"
COPY: Final = "access/copy"
IMPORT: Final = "access/import"
PERSON: Final = "person"
"""the page of a person, which names the membership"""
_SERVICES: Final = 12
"""that are listed without a search"""
_HELD: Final = 12
"""roles that are listed before a form"""
CHECK: Final = "check"
"""the field of a form that is complete"""


# --- a person and a service


async def this_person(at: PortalContext, membership_id: str) -> Member:
    """The member that an address names. Raises NotFound."""
    found = await find_one_member(at.context.provider.registry, at.actor, membership_id)
    if found is None:
        raise NotFound
    return found


async def explain_refusal(at: PortalContext, found: Member, service: Service) -> Phrase | None:
    """Why the reader cannot change a person's access; None if they can (D53, D54)."""
    why = await role_assignment.explain_refusal(at.context.provider.registry, at.actor, found, service)
    if not why:
        return None
    if why == SOMEBODY_ELSE.reason:
        return own_access(at.entity)
    if why == WITHIN_REACH.reason:
        return administers(found.name, at.entity)
    return phrase("The reason: {reason}.", reason=why)


def own_access(entity: Entity) -> Phrase:
    """The refusal of a change to the reader's own access. Source: D54"""
    return phrase("You cannot change your own access. Another administrator of {entity} can do it.", entity=entity.name)


def administers(name: str, entity: Entity) -> Phrase:
    """The refusal of a change to an administrator's access. Source: D54"""
    return phrase("{name} administers {entity}. Only an owner can change this access.", name=name, entity=entity.name)


def address(at: PortalContext, page: str, **values: str) -> str:
    """The address of a page with a query."""
    query = urlencode({name: value for name, value in values.items() if value})
    return portal_path(at.web, page) + (f"?{query}" if query else "")


def to_person(at: PortalContext, found: Member) -> Link:
    return Link(
        url=portal_path(at.web, f"{PERSON}/{found.membership.membership_id}"),
        text=phrase("{name}", name=found.name),
    )


def choosing(at: PortalContext, page: str, *, field: str = PERSON_CHOSEN, **kept: str) -> Callable[[Member], str]:
    """The addresses of a page with the chosen person in `field`."""
    return lambda found: address(at, page, **kept, **{field: found.membership.membership_id})


# --- giving


async def new(at: PortalContext) -> View:
    """The page that gives access, one step at a time."""
    given = {**at.query, **at.form}
    registry = at.context.provider.registry
    if not given.get("person"):
        return await choose_person(
            at,
            NEW,
            choosing(at, NEW),
            frame=frame(at, section="people"),
            heading=GiveAccess.heading,
            asked=phrase("Who gets access?"),
            links=(Link(url=portal_path(at.web, IMPORT), text=phrase("Give access to several people at once")),),
        )
    person = await this_person(at, given["person"])
    services = await role_assignment.list_services(registry, at.actor, at.entity)
    view = GiveAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person)),
        action=portal_path(at.web, NEW),
        kept=(("person", given["person"]),),
        chosen=((phrase("Person"), person.name, portal_path(at.web, NEW)),),
        notes=at.notes,
        errors=at.errors,
        back=to_person(at, person),
    )
    if not services:
        return replace(view, refused=_no_service(at))
    why = await explain_refusal(at, person, services[0])
    if why is not None:
        return replace(view, refused=why)
    wanted = services[0].service_id if len(services) == 1 else given.get("service", "")
    service = next((each for each in services if each.service_id == wanted), None)
    held = await _held(at, person)
    if service is None:
        view = _with_held(view, [line for _, line in held])
        copy = Link(url=address(at, COPY, person=given["person"]), text=phrase("Copy a colleague's access instead"))
        return replace(_with_services(view, services, given), links=(copy,))
    return await _details(at, view, person, service, given, held, several=len(services) > 1)


async def _held(at: PortalContext, person: Member) -> list[tuple[HeldRole, HeldLine]]:
    """The present roles of a person that the reader may see."""
    found = await role_assignment.list_roles(at.context.provider.registry, at.actor, person.user.user_id)
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
    registry, context = at.context.provider.registry, at.context
    used = await role_assignment.list_values_in_use(registry, at.actor, form.service, today=context.today)
    return role_fields.build_fields(form, context.day, always=always, used=used)


def _no_service(at: PortalContext) -> Phrase:
    if at.actor.level == "sub_administrator":
        return phrase("You administer no service that {entity} may use. Ask an owner.", entity=at.entity.name)
    return phrase("There is no service that {entity} may use.", entity=at.entity.name)


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
    today = at.context.day
    form = role_fields.read(given, service)
    wrong = faults(form, today) if given.get(CHECK) == "all" else ()
    elsewhere = address(at, NEW, person=given["person"]) if several else ""
    here = [line for role, line in held if role.row.service_id == service.service_id]
    view = replace(
        _with_held(view, here),
        kept=(*view.kept, ("service", service.service_id)),
        chosen=(*view.chosen, (phrase("Service"), service.name, elsewhere)),
        errors=at.errors or role_fields.errors_of(wrong),
    )
    if given.get(CHECK) != "all" or wrong:
        return replace(view, fields=await build_fields(at, form))
    row = row_of(form, user_id=person.user.user_id, entity_id=at.entity.entity_id, today=today)
    registry = at.context.provider.registry
    was = await role_assignment.find_stored_role(registry, row)
    if was is not None and was.end_date >= at.context.today:
        there = Link(url=f"{portal_path(at.web, CHANGE)}/{object_id(was.key)}", text=phrase("Change this access"))
        errors = ((_role_field(service), _already(person)),)
        return replace(view, errors=errors, fields=await build_fields(at, form), links=(there,))
    try:
        needs = await role_assignment.needs_approval(registry, at.actor, [role_assignment.plan_role(was, row)])
    except Refused as error:
        return replace(view, errors=(("", refusal_of(error)),), fields=await build_fields(at, form))
    kept = (*view.kept, *role_fields.to_hidden_fields(form), (CHECK, "all"))
    return replace(
        view,
        confirm=AccessConfirmation(
            sentence=access_texts.sentence(person.name, row, service, at.entity.name, today),
            details=access_texts.details(row),
            kept=kept,
            needs_approval=needs,
            reason=given.get("reason", ""),
            again=address(at, NEW, **{name: value for name, value in kept if name != CHECK}),
        ),
        notes=(*view.notes, *explain_no_effect(person)),
    )


def _role_field(service: Service) -> str:
    return "role" if service.roles else ""


def _already(person: Member) -> Phrase:
    return phrase("{name} has this role already. Change it instead.", name=person.name)


def explain_no_effect(person: Member) -> tuple[Phrase, ...]:
    """Why access has no effect yet, if it has none."""
    if person.membership.invited:
        return (phrase("It has no effect until {name} accepts the invitation.", name=person.name),)
    if not person.membership.enabled:
        return (phrase("It has no effect while {name} is suspended.", name=person.name),)
    return ()


async def give(at: PortalContext) -> FormResult:
    """Give the access that was confirmed. Raises InvalidInput, NotFound."""
    form = at.form
    person = await this_person(at, form.get("person", ""))
    services = await role_assignment.list_services(at.context.provider.registry, at.actor, at.entity)
    service = next((each for each in services if each.service_id == form.get("service")), None)
    if service is None:
        raise InvalidInput(phrase("Choose a service."), field="service")
    typed = role_fields.read(form, service)
    for field, text in role_fields.errors_of(faults(typed, at.context.day)):
        raise InvalidInput(text, field=field)
    row = row_of(typed, user_id=person.user.user_id, entity_id=at.entity.entity_id, today=at.context.day)
    was = await role_assignment.find_stored_role(at.context.provider.registry, row)
    if was is not None and was.end_date >= at.context.today:
        raise InvalidInput(_already(person), field=_role_field(service))
    return await submit_roles(at, person, [role_assignment.plan_role(was, row)], "access-given")


async def submit_roles(
    at: PortalContext, person: Member, changes: Sequence[Change], done: str, *, shown: Sequence[Member] = ()
) -> FormResult:
    """Write changes of a person's roles or request them.

    Says which, on the person's page. `shown` are further people whom the form showed. Raises InvalidInput, also if it
    was shown for somebody else. Source: D68
    """
    check_names(at, names_shown(person, *shown))
    submitting = role_assignment.submit_role_changes(
        at.context.provider.registry,
        at.actor,
        person.membership,
        changes,
        reason=reason(at),
        now=at.context.now,
        unique=at.context.provider.new_id(),
    )
    request = await await_change(at, submitting)
    return saved_or_requested(request, FormResult(done, f"{PERSON}/{person.membership.membership_id}"))


SECTION: Final = Section[PortalContext](
    pages={NEW: PortalPage(view=new, submit=give, fresh=True, needs=("write", "assignment"))},
    fields=role_fields.FIELDS | {"person", "service", "reason", CHECK},
    filters=role_fields.FIELDS | {"person", "service", "find"},
    prefixes=(role_fields.PARAMETER,),
    changes={
        "access-given": phrase("The access has been given."),
        "access-changed": phrase("The access has been changed."),
        "access-removed": phrase("The access has been taken away."),
    },
)
