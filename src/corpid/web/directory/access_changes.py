"""Pages that change a person's role, or take it away (D53, D54, D55)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import role_assignment
from corpid.flows.directory.role_assignment import UnknownRole
from corpid.flows.directory.write import Refused
from corpid.rules.directory.role_forms import faults, form_of, row_of
from corpid.texts import phrase
from corpid.web.directory.access import (
    CHANGE,
    CHECK,
    REMOVE,
    address,
    build_fields,
    explain_no_effect,
    explain_refusal,
    submit_roles,
    to_person,
)
from corpid.web.directory.access_views import AccessConfirmation, ChangeAccess, RemoveAccess
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.writing import names_shown
from corpid.web.pages import access_texts, role_fields
from corpid.web.pages.refusals import refusal_of
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.members import Member
    from corpid.flows.directory.role_assignment import HeldRole
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.role_forms import RoleForm
    from corpid.web.pages.layout import FieldError
    from corpid.web.pages.views import View


async def _this_role(at: PortalContext) -> tuple[HeldRole, Member]:
    identifier = at.page.rpartition("/")[2]
    try:
        return await role_assignment.load_role(at.context.provider.registry, at.actor, identifier)
    except UnknownRole:
        raise NotFound from None


async def change(at: PortalContext) -> View:
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
        errors=at.errors,
        remove=f"{portal_path(at.web, REMOVE)}/{role.id}",
        back=to_person(at, person),
    )
    why = await explain_refusal(at, person, role.service)
    if why is not None:
        return replace(view, refused=why)
    form = _changed_form(role, given)
    wrong = faults(form, today) if given.get(CHECK) == "all" else ()
    always = form_of(role.row, role.service).start != form.start

    async def ask(errors: tuple[FieldError, ...]) -> View:
        return replace(view, fields=await build_fields(at, form, always=always), errors=errors)

    if given.get(CHECK) != "all" or wrong:
        return await ask(at.errors or role_fields.errors_of(wrong))
    becomes = row_of(form, user_id=role.row.user_id, entity_id=role.row.entity_id, today=today, ref=role.row.ref)
    try:
        changes = await _changes(at, role, form)
        needs = await role_assignment.needs_approval(at.context.provider.registry, at.actor, changes)
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
            again=address(at, at.page, **{name: value for name, value in kept if name != CHECK}),
            was=view.was,
            was_details=view.was_details,
        ),
    )


def _changed_form(role: HeldRole, given: Mapping[str, str]) -> RoleForm:
    as_it_is = form_of(role.row, role.service)
    if given.get(CHECK) == "all":  # what was emptied is not sent
        return role_fields.read(given, role.service)
    return role_fields.read(given, role.service, otherwise=as_it_is)


async def _changes(at: PortalContext, role: HeldRole, form: RoleForm) -> list[Change]:
    """The changes that make a role what was typed."""
    becomes = row_of(
        form, user_id=role.row.user_id, entity_id=role.row.entity_id, today=at.context.day, ref=role.row.ref
    )
    found = role_assignment.plan_replacement(role.row, becomes)
    if not found:
        raise InvalidInput(phrase("Nothing would change. Change something, or go back."))
    another = await role_assignment.find_stored_role(at.context.provider.registry, becomes)
    if another is not None and another.key != role.row.key:
        raise InvalidInput(phrase("This person has that role already."), field="role")
    return found


async def save(at: PortalContext) -> FormResult:
    """Change the role as it was confirmed. Raises InvalidInput, NotFound."""
    role, person = await _this_role(at)
    form = role_fields.read(at.form, role.service)
    for field, text in role_fields.errors_of(faults(form, at.context.day)):
        raise InvalidInput(text, field=field)
    changes = await _changes(at, role, form)
    return await submit_roles(at, person, changes, "access-changed")


async def remove(at: PortalContext) -> View:
    """The question whether a role is to be taken away."""
    role, person = await _this_role(at)
    why = await explain_refusal(at, person, role.service)
    needs = False
    if why is None:
        needs = await role_assignment.needs_approval(
            at.context.provider.registry, at.actor, [role_assignment.plan_role_end(role.row)]
        )
    return RemoveAccess(
        frame=frame(at, section="people", up=to_person(at, person), names=names_shown(person)),
        action=portal_path(at.web, at.page),
        was=access_texts.sentence(person.name, role.row, role.service, at.entity.name, at.context.day),
        was_details=access_texts.details(role.row),
        loses=phrase("{name} can then no longer do this. Other access of {name} stays as it is.", name=person.name),
        refused=why,
        needs_approval=needs,
        reason=at.form.get("reason", ""),
        notes=at.notes,
        errors=at.errors,
        back=to_person(at, person),
    )


async def take_away(at: PortalContext) -> FormResult:
    """Take a role away. Raises InvalidInput, NotFound."""
    role, person = await _this_role(at)
    return await submit_roles(at, person, [role_assignment.plan_role_end(role.row)], "access-removed")


_ID: Final = "[A-Za-z0-9_-]{1,1000}"
SECTION: Final = Section[PortalContext](
    named_pages={
        re.compile(f"{CHANGE}/{_ID}"): PortalPage(view=change, submit=save, fresh=True, needs=("write", "assignment")),
        re.compile(f"{REMOVE}/{_ID}"): PortalPage(
            view=remove, submit=take_away, fresh=True, needs=("delete", "assignment")
        ),
    },
    filters=role_fields.FIELDS,
    prefixes=(role_fields.PARAMETER,),
)
