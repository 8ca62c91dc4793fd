"""The page that gives a person the roles of a colleague (D54, D55)."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import role_assignment
from corpid.texts import phrase
from corpid.web.directory.access import (
    COPY,
    address,
    choosing,
    explain_no_effect,
    explain_refusal,
    held_line,
    submit_roles,
    this_person,
    to_person,
)
from corpid.web.directory.access_views import CopiedRole, CopyAccess
from corpid.web.directory.choose_person import choose_person
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.writing import names_shown
from corpid.web.pages import access_texts
from corpid.web.sites import FormResult, Section

if TYPE_CHECKING:
    from corpid.flows.directory.members import Member
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import Assignment, Service
    from corpid.texts import Phrase
    from corpid.web.pages.views import View

_BOX: Final = "copy-"
_FROM: Final = "from"
_MOST: Final = 50
"""roles of one page: a form has at most a hundred fields"""


class _Copies(NamedTuple):
    more: bool
    """whether the colleague has more roles than were looked at"""
    found: list[tuple[Assignment, Service, Change]]
    held: list[tuple[Assignment, Service]]


async def copy(at: PortalContext) -> View:
    """The choice of a colleague, then of their roles. Raises NotFound."""
    given = {**at.query, **at.form}
    person = await this_person(at, given.get("person", ""))
    why = await _refused(at, person)
    if why is not None or not given.get(_FROM):
        choice = await choose_person(
            at,
            COPY,
            choosing(at, COPY, field=_FROM, person=given["person"]),
            frame=frame(at, section="people", up=to_person(at, person)),
            heading=phrase("Copy access for {name}", name=person.name),
            asked=phrase("Whose access?"),
            kept=(("person", given["person"]),),
        )
        return replace(choice, refused=why)
    colleague = await this_person(at, given[_FROM])
    copies = await _copies(at, person, colleague)
    entity, today, name = at.entity.name, at.context.day, person.name
    changes = [change for _, _, change in copies.found[:_MOST]]
    registry = at.context.provider.registry
    return CopyAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person, colleague)),
        action=portal_path(at.web, COPY),
        kept=(("person", given["person"]), (_FROM, given[_FROM])),
        colleague=colleague.name,
        another=address(at, COPY, person=given["person"]),
        roles=tuple(
            CopiedRole(
                name=box(row, at.context.today),
                sentence=access_texts.sentence(name, row, service, entity, today),
                details=access_texts.details(row),
                chosen=box(row, at.context.today) in at.form,
            )
            for row, service, _ in copies.found[:_MOST]
        ),
        held=tuple(held_line(name, row, service, at.entity, today) for row, service in copies.held[:_MOST]),
        more=len(copies.found) > _MOST,
        not_all=copies.more,
        needs_approval=bool(changes) and await role_assignment.needs_approval(registry, at.actor, changes),
        reason=given.get("reason", ""),
        notes=(*at.notes, *explain_no_effect(person)),
        errors=at.errors,
        back=to_person(at, person),
    )


async def _refused(at: PortalContext, person: Member) -> Phrase | None:
    services = await role_assignment.list_services(at.context.provider.registry, at.actor, at.entity)
    if not services:
        return phrase("There is no service at which you give access.")
    return await explain_refusal(at, person, services[0])


async def _copies(at: PortalContext, person: Member, colleague: Member) -> _Copies:
    """The roles that the person would get, and those that they have."""
    registry, today = at.context.provider.registry, at.context.today
    known = {each.service_id for each in await role_assignment.list_services(registry, at.actor, at.entity)}
    found, held = list[tuple["Assignment", "Service", "Change"]](), list[tuple["Assignment", "Service"]]()
    held_by_colleague = await role_assignment.list_roles(registry, at.actor, colleague.user.user_id)
    for role in held_by_colleague.found:
        row = role_assignment.copy_role(role.row, role.service, user_id=person.user.user_id, today=today)
        if row is None or row.service_id not in known:
            continue
        was = await role_assignment.find_stored_role(registry, row)
        if was is not None and was.end_date >= today:
            held.append((was, role.service))
        else:
            found.append((row, role.service, role_assignment.plan_role(was, row)))
    return _Copies(bool(held_by_colleague.after), found, held)


def box(row: Assignment, today: str) -> str:
    """The name of a role's box.

    Another one if anything else is copied; one that has begun begins today.
    """
    copied = msgspec.structs.replace(row, user_id="", start_date=row.start_date if row.start_date > today else "")
    return _BOX + sha256(msgspec.json.encode(copied)).hexdigest()[:12]


async def give_copies(at: PortalContext) -> FormResult:
    """Give the roles that were ticked. Raises InvalidInput, NotFound."""
    person = await this_person(at, at.form.get("person", ""))
    colleague = await this_person(at, at.form.get(_FROM, ""))
    why = await _refused(at, person)
    if why is not None:
        raise InvalidInput(why)
    copies = await _copies(at, person, colleague)
    chosen = [change for row, _, change in copies.found if box(row, at.context.today) in at.form]
    if not chosen:
        raise InvalidInput(
            phrase("Choose what to copy."), field=box(copies.found[0][0], at.context.today) if copies.found else ""
        )
    return await submit_roles(at, person, chosen, "access-given", shown=[colleague])


SECTION: Final = Section[PortalContext](
    pages={COPY: PortalPage(view=copy, submit=give_copies, fresh=True, needs=("write", "assignment"))},
    fields=frozenset({"person", _FROM, "reason"}),
    filters=frozenset({"person", _FROM}),
    prefixes=(_BOX,),
)
