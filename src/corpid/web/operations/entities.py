"""Organisations in the console: list, one, new, changed, its owners (D53, D54, R-12.4)."""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import quote

from msgspec import to_builtins
from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import appointments, invitations
from corpid.flows.directory.finding import find_entity
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import EntityMember, list_members, list_records
from corpid.flows.directory.single_records import set_enabled, update_record
from corpid.flows.directory.write import Refused
from corpid.flows.operations.console import find_open_invitation, load_entity
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.lists import ENTITIES
from corpid.rules.directory.member_details import InvalidDetails, identity, shown_name
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, APPROVALS, ENTITY_STATUSES, Entity, MemberDetails
from corpid.rules.directory.sections import SECTIONS
from corpid.rules.directory.values import NO_END
from corpid.rules.fields import fields_of
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.texts import counted, phrase
from corpid.web.operations import views
from corpid.web.operations.page_context import (
    AT_ONCE,
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    console_path,
    frame,
    is_current,
    path_if_allowed,
    question,
    section_link,
    show_list,
    step_of,
)
from corpid.web.operations.people import person_path
from corpid.web.operations.views import StateLabel
from corpid.web.pages.errors import reason_of
from corpid.web.pages.layout import Field, FormView, Link
from corpid.web.pages.record_forms import RecordForm, form_of
from corpid.web.sites import NOTHING_DIFFERENT, EditConflict, FormResult, InvalidForm, NotFound, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.lists import Appointment
    from corpid.flows.operations.console import EntityDetails
    from corpid.rules.directory.queries import StoredMember
    from corpid.rules.directory.records import ThirdPartyGrant
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

NEW: Final = "new-organisation"
"""the page's path: any name below `entities` could be an organisation's identifier"""
_FEW: Final = 20
"""third parties on an organisation's page"""
_NEW: Final = form_of(Entity, "entity_id", "name", "type", "registration_number", "country", "status")
_EDITED: Final = form_of(Entity, "name", *(key for key in SECTIONS["entities"].keys if key not in {"name", "enabled"}))
"""the name first, the others in the order of their declaration; an organisation is disabled on a page of its own"""
OWNER: Final = RecordForm(
    {
        "owner_name": replace(fields_of(MemberDetails)["name"], form_label=phrase("Name of the owner")),
        "owner_email": replace(fields_of(MemberDetails)["email"], form_label=phrase("E-mail address of the owner")),
    }
)
_MEMBER, _INVITED, _NOBODY = "member", "invited", "nobody"


_WAYS: Final = (("name", phrase("Name")), ("number", phrase("Registration number")), ("id", phrase("Identifier")))
_CHANGED: Final = phrase(
    "Somebody else has changed this organisation meanwhile. Nothing of your change was saved: this is the organisation "
    "as it is now."
)


class EntityForm(FormView, frozen=True, kw_only=True):
    """The facts of an organisation. Fields: its members, reason."""

    template: ClassVar[str] = "console/edit_organisation.html"
    heading: ClassVar[Phrase] = phrase("Change the organisation")

    identifier: str
    fields: tuple[Field, ...]


def entity_path(web: WebContext, entity_id: str, page: str = "") -> str:
    """The address path of an organisation's page."""
    return console_path(web, entity_page_path(entity_id, page))


def entity_page_path(entity_id: str, page: str = "") -> str:
    """The path of an organisation's page in the console."""
    return f"entities/{quote(entity_id, safe='')}" + (f"/{page}" if page else "")


async def show_entities(at: ConsoleContext) -> View:
    """A page of organisations, narrowed by what is searched (R-12.4)."""

    def line(entity: Entity) -> views.Line:
        texts = (entity.registration_number or entity.entity_id, ENTITY_STATUSES[entity.status])
        url = entity_path(at.web, entity.entity_id)
        return views.Line(url=url, name=entity.name, texts=texts, state=views.active(entity.enabled))

    new = path_if_allowed(at, NEW)
    return await show_list(
        at, "entities", partial(list_records, at.registry, at.actor, ENTITIES), line, heading=phrase("Organisations"),
        columns=(phrase("Name"), phrase("Registration number"), phrase("Status"), phrase("State")),
        label=phrase("Name, registration number or identifier"), ways=_WAYS, none=phrase("There are no organisations yet."),
        not_found=phrase("No organisation is found. Check the spelling."),
        add=Link(url=new, text=phrase("Add an organisation")) if new else None,
    )  # fmt: skip


async def entity_of(at: ConsoleContext) -> Entity:
    """The organisation of the page. Raises NotFound, access.Forbidden."""
    return await await_found(find_entity(at.registry, at.page.split("/")[1], actor=at.actor))


async def show_entity(at: ConsoleContext) -> View:
    """One organisation: facts, administrators, third parties."""
    found = await await_found(load_entity(at.registry, at.page.split("/")[1], actor=at.actor, limit=AT_ONCE, few=_FEW))
    entity = found.entity
    return views.OrganisationView(
        frame=frame(at, section="entities", up=section_link(at, "entities")),
        heading=phrase("Organisation: {name}", name=entity.name),
        name=entity.name,
        state=views.active(entity.enabled),
        facts=_list_facts(found),
        no_owner=not found.has_owner,
        actions=tuple(_list_actions(at, entity)),
        administrators=tuple(_administrator(at, each) for each in found.administrators.found),
        more_administrators=bool(found.administrators.after),
        third_parties=tuple(_party(at, each, each.entity_id, found.names) for each in found.third_parties.found),
        more_third_parties=bool(found.third_parties.after),
        clients=tuple(_party(at, each, each.client_entity_id, found.names) for each in found.clients.found),
        more_clients=bool(found.clients.after),
    )


def _list_facts(found: EntityDetails) -> tuple[views.Fact, ...]:
    entity, count = found.entity, found.people
    return (
        (phrase("Identifier"), entity.entity_id),
        (NUMBERS[entity.type], entity.registration_number or phrase("None")),
        (phrase("Country"), entity.country),
        (phrase("Status"), ENTITY_STATUSES[entity.status]),
        (phrase("Approvals"), APPROVALS[entity.approvals]),
        (phrase("People"), counted(count, "{count} person", "{count} people")),
    )


def _list_actions(at: ConsoleContext, entity: Entity) -> list[Link]:
    links = [Link(url=entity_path(at.web, entity.entity_id, "people"), text=phrase("Its people"))]
    switch = ("disable", phrase("Disable")) if entity.enabled else ("enable", phrase("Enable"))
    for page, text in (("owner", phrase("Appoint an owner")), ("edit", phrase("Change")), switch):
        if url := path_if_allowed(at, entity_page_path(entity.entity_id, page)):
            links.append(Link(url=url, text=text))
    return links


def _administrator(at: ConsoleContext, each: Appointment) -> views.AdministratorLine:
    membership, user, level = each.membership, each.user, each.administrator
    invited = membership.invited
    active = user.enabled and membership.enabled
    resend = f"invitation/{quote(membership.membership_id, safe='')}"
    return views.AdministratorLine(
        url="" if invited else person_path(at.web, user.user_id),
        name=(membership.name or membership.email) if invited else user.name,
        level=ADMINISTRATOR_LEVELS[level.level],
        services=(level.services if isinstance(level.services, str) else ", ".join(level.services))
        if level.level == "sub_administrator"
        else "",
        state=StateLabel(text=phrase("Invited"), tone="warning") if invited else views.active(active),
        resend=path_if_allowed(at, entity_page_path(membership.entity_id, resend)) if invited else "",
    )


def _party(at: ConsoleContext, grant: ThirdPartyGrant, other: str, names: Mapping[str, str]) -> views.PartyLine:
    return views.PartyLine(
        url=entity_path(at.web, other),
        name=names.get(other, other),
        service=grant.service_id,
        role=grant.role,
        until=None if grant.end_date == NO_END else date.fromisoformat(grant.end_date),
        state=StateLabel(text=phrase("Accepted"))
        if grant.state == "accepted"
        else StateLabel(text=phrase("Offered"), tone="warning"),
    )


async def show_members(at: ConsoleContext) -> View:
    """The people of an organisation, by user name."""
    entity = await entity_of(at)
    return await show_list(
        at, entity_page_path(entity.entity_id, "people"),
        partial(list_members, at.registry, at.actor, entity.entity_id), partial(_member, at),
        heading=phrase("People of {name}", name=entity.name),
        columns=(phrase("User name"), phrase("Name"), phrase("Administers as"), phrase("State")),
        label=phrase("Name, user name or e-mail address"), none=phrase("Nobody belongs to this organisation yet."),
        not_found=phrase("Nobody is found. Check the spelling."),
        up=Link(url=entity_path(at.web, entity.entity_id), text=phrase("Back")),
    )  # fmt: skip


def _member(at: ConsoleContext, each: EntityMember) -> views.Line:
    invited = each.membership.invited
    level = ADMINISTRATOR_LEVELS[each.level] if each.level else ""  # type: ignore[index]
    active = each.membership.enabled and each.user.enabled
    return views.Line(
        url=path_if_allowed(
            at,
            entity_page_path(each.membership.entity_id, f"invitation/{quote(each.membership.membership_id, safe='')}"),
        )
        if invited
        else person_path(at.web, each.user.user_id),
        name=identity(each.membership, each.user),
        texts=(each.membership.name if invited else each.user.name, level),
        state=StateLabel(text=phrase("Invited"), tone="warning") if invited else views.active(active),
    )


# --- disable and enable


async def show_switch(at: ConsoleContext) -> View:
    """The confirmation of disabling or enabling, with its reason."""
    entity = await entity_of(at)
    disables = at.page.endswith("/disable")
    paragraphs = (
        (
            phrase("Nobody can act for it any more, in any service. People, access and roles stay recorded."),
            phrase("You can enable it again."),
        )
        if disables
        else (phrase("Its people can act for it again, with the access that they had."),)
    )
    return question(
        at,
        "entities",
        Link(url=entity_path(at.web, entity.entity_id), text=phrase("Back")),
        phrase("Disable {name}?", name=entity.name) if disables else phrase("Enable {name}?", name=entity.name),
        paragraphs,
        phrase("Disable") if disables else phrase("Enable"),
        destroys=disables,
    )


async def switch_entity(at: ConsoleContext) -> FormResult:
    """Disable or enable the organisation. Raises InvalidInput, NotFound."""
    entity = await entity_of(at)
    enables = at.page.endswith("/enable")
    actor = actor_with_reason(at)
    try:
        await set_enabled(at.registry, "entity", {"entity_id": entity.entity_id}, enabled=enables, actor=actor)
    except Refused:
        raise InvalidInput(phrase("Somebody has done this already. Open the organisation again.")) from None
    return FormResult("entity-enable" if enables else "entity-disable", entity_page_path(entity.entity_id))


# --- invitations


async def _load_invitation(at: ConsoleContext) -> tuple[Entity, StoredMember]:
    entity = await entity_of(at)
    found = await find_open_invitation(at.registry, entity.entity_id, at.page.split("/")[3], actor=at.actor)
    if found is None:
        raise NotFound
    return entity, found


async def show_invitation(at: ConsoleContext) -> View:
    """The confirmation of sending an invitation again."""
    entity, member = await _load_invitation(at)
    membership = member.membership
    return question(
        at,
        "entities",
        Link(url=entity_path(at.web, entity.entity_id), text=phrase("Back")),
        phrase("Send the invitation again"),
        (
            phrase(
                "{name} was invited to {organisation}, and has not accepted yet.",
                name=shown_name(membership, member.user),
                organisation=entity.name,
            ),
            phrase("The e-mail goes to {email}. The earlier link stops working.", email=membership.email),
        ),
        phrase("Send again"),
    )


async def send_invitation(at: ConsoleContext) -> FormResult:
    """Send the invitation again. Raises InvalidInput, NotFound, Forbidden."""
    entity, member = await _load_invitation(at)
    membership = member.membership
    actor = actor_with_reason(at)
    if not membership.email:
        raise InvalidInput(phrase("The invitation has no e-mail address to go to."))
    if not at.provider.mail.works:
        raise InvalidInput(phrase("This deployment sends no e-mails."))
    if abs(membership.invitation_sent_at) > at.context.now - RESEND_SECONDS:
        raise InvalidInput(
            phrase("It was sent less than {count} minutes ago. Wait a little.", count=RESEND_SECONDS // MINUTE)
        )
    limit = InvitationLimit.for_request(at.context)
    await invitations.send_invitation_again(at.registry, limit, membership, actor=actor, now=at.context.now)
    return FormResult("invitation-sent", entity_page_path(entity.entity_id))


async def show_new(at: ConsoleContext) -> View:
    """The form of a new organisation and its first owner."""
    back = console_path(at.web, "entities")
    return views.NewOrganisation(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Organisations"))),
        fields=_NEW.show(_NEW.read(at.form) if at.form else {"type": "UEN", "status": "Registered"}),
        owner=OWNER.show(OWNER.read(at.form)),
        mail_works=at.provider.mail.works,
    )


async def add_entity(at: ConsoleContext) -> FormResult:
    """Add an organisation and invite its first owner: both or neither."""
    members, invited = _NEW.read(at.form), OWNER.read(at.form)
    errors = _NEW.find_errors(members)
    if any(invited.values()):
        errors += OWNER.find_errors(invited, required=True)
    if errors:
        raise InvalidForm(*errors)
    actor = actor_with_reason(at)
    entity_id = members.pop("entity_id")
    owner = MemberDetails(**invited) if any(invited.values()) else None
    try:
        await appointments.add_entity_with_owner(
            at.registry, at.provider.passwords, entity_id, members, owner,
            actor=actor, now=at.context.now, new_id=at.web.new_user_id,
        )  # fmt: skip
    except InvalidDetails as error:
        raise InvalidInput(phrase("Check the owner's name and address: {reason}.", reason=str(error))) from None
    except (Refused, Conflict) as refused:
        if await _exists(at, entity_id):
            raise InvalidInput(
                phrase("There is an organisation with this identifier already."), field="entity_id"
            ) from None
        raise InvalidInput(phrase("It was not added: {reason}.", reason=reason_of(refused))) from None
    return FormResult("entity-add", entity_page_path(entity_id))


async def _exists(at: ConsoleContext, entity_id: str) -> bool:
    try:
        await appointments.list_owners(at.registry, entity_id, actor=at.actor)
    except Refused:
        return False
    return True


async def show_owner(at: ConsoleContext) -> View:
    """The form that appoints an owner, also in place of another."""
    entity = await entity_of(at)
    held = await appointments.list_owners(at.registry, entity.entity_id, actor=at.actor)
    back = entity_path(at.web, entity.entity_id)
    return views.AppointOwner(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Back"))),
        organisation=entity.name,
        owners=(
            *((user_id, name, "") for user_id, name in held.items()),
            (_NOBODY, phrase("Nobody: every present owner stays"), ""),
        )
        if held
        else (),
        ways=(
            (_INVITED, phrase("Invite somebody by e-mail"), ""),
            (_MEMBER, phrase("A person who already belongs to the organisation"), ""),
        ),
        fields=OWNER.show(OWNER.read(at.form)),
        typed={name: at.form.get(name, "").strip() for name in ("way", "user_name", "instead_of", REASON)},
        mail_works=at.provider.mail.works,
    )


async def appoint_owner(at: ConsoleContext) -> FormResult:
    """Appoint an owner. Raises InvalidInput, InvalidForm, NotFound, Forbidden."""
    entity = await entity_of(at)
    way, user_name, instead_of = (at.form.get(name, "").strip() for name in ("way", "user_name", "instead_of"))
    owner: str | MemberDetails
    if way == _MEMBER:
        if not user_name:
            raise InvalidInput(phrase("Enter the person's user name."), field="user_name")
        owner = user_name
    elif way == _INVITED:
        invited = OWNER.read(at.form)
        if errors := OWNER.find_errors(invited, required=True):
            raise InvalidForm(*errors)
        owner = MemberDetails(**invited)
    else:
        raise InvalidInput(phrase("Choose who becomes an owner."), field="way")
    if not instead_of and await appointments.list_owners(at.registry, entity.entity_id, actor=at.actor):
        raise InvalidInput(phrase("Choose an owner, or nobody."), field="instead_of")
    actor = actor_with_reason(at)
    try:
        await appointments.appoint_owner(
            at.registry, entity.entity_id, owner, instead_of="" if instead_of == _NOBODY else instead_of,
            actor=actor, now=at.context.now, new_id=at.web.new_user_id,
        )  # fmt: skip
    except InvalidDetails as error:
        raise InvalidInput(phrase("Check the owner's name and address: {reason}.", reason=str(error))) from None
    except Forbidden as refused:
        raise InvalidInput(phrase("You may not do this: {reason}.", reason=refused.reason)) from None
    except (Refused, Conflict) as refused:
        raise InvalidInput(phrase("It was not done: {reason}.", reason=reason_of(refused))) from None
    return FormResult("owner-appointed", entity_page_path(entity.entity_id))


async def show_edit(at: ConsoleContext) -> View:
    """The form, with what was typed or what is stored."""
    entity = await entity_of(at)
    back = entity_path(at.web, entity.entity_id)
    return EntityForm(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Back")), step_name=step_of(at, entity)),
        identifier=entity.entity_id,
        fields=_EDITED.show(_EDITED.read(at.form) if at.form else to_builtins(entity)),
    )


async def edit_entity(at: ConsoleContext) -> FormResult:
    """Change the facts. Raises InvalidInput, InvalidForm, EditConflict, NotFound, Forbidden."""
    entity = await entity_of(at)
    if not is_current(at, entity):
        raise EditConflict(_CHANGED)
    typed = _EDITED.read(at.form)
    if errors := _EDITED.find_errors(typed):
        raise InvalidForm(*errors)
    members: dict[str, object] = {
        name: value if value != getattr(entity, name) else None for name, value in typed.items()
    }
    if all(value is None for value in members.values()):
        raise InvalidInput(NOTHING_DIFFERENT)
    actor = actor_with_reason(at)
    try:
        await update_record(
            at.registry, at.provider.passwords, "entity", {"entity_id": entity.entity_id}, members,
            actor=actor, was=entity,
        )  # fmt: skip
    except Conflict:
        raise EditConflict(_CHANGED) from None
    except Refused as refused:
        raise InvalidInput(phrase("It was not changed: {reason}.", reason=reason_of(refused))) from None
    return FormResult("entity-edit", entity_page_path(entity.entity_id))


def _one(page: str = "") -> re.Pattern[str]:
    """The paths of a page about one organisation."""
    return re.compile(rf"entities/[^/]+{page}")


_WRITING: Final = ("write", "entity")
SECTION: Final = Section[ConsoleContext](
    pages={
        "entities": ConsolePage(view=show_entities),
        NEW: ConsolePage(view=show_new, submit=add_entity, fresh=True, needs=_WRITING),
    },
    named_pages={
        _one(): ConsolePage(view=show_entity),
        _one("/people"): ConsolePage(view=show_members),
        _one("/(disable|enable)"): ConsolePage(view=show_switch, submit=switch_entity, fresh=True, needs=_WRITING),
        _one("/invitation/[^/]+"): ConsolePage(
            view=show_invitation, submit=send_invitation, fresh=True, needs=("write", "invitation")
        ),
        _one("/owner"): ConsolePage(
            view=show_owner, submit=appoint_owner, fresh=True, needs=("write", "administrator")
        ),
        _one("/edit"): ConsolePage(view=show_edit, submit=edit_entity, fresh=True, needs=_WRITING),
    },
    fields=frozenset(
        {*_NEW.fields, *_EDITED.fields, *OWNER.fields, "way", "user_name", "instead_of", "decision", REASON}
    ),
    filters=frozenset({"by", "search", "after", "before"}),
    changes={
        "entity-add": phrase("The organisation is added."),
        "entity-edit": phrase("The organisation is changed."),
        "entity-disable": phrase("The organisation is disabled."),
        "entity-enable": phrase("The organisation is enabled."),
        "owner-appointed": phrase("The owner is appointed."),
        "invitation-sent": phrase("The invitation is on its way."),
    },
)
