"""Organisations in the console: list, one, new, changed, its owners (D53, D54, R-12.4)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins
from msgspec.structs import replace

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import appointments, invitations
from corpid.flows.directory.finding import find_entity
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import EntityMember, list_records, list_with_records
from corpid.flows.directory.single_records import set_enabled, update_record
from corpid.flows.directory.write import Refused
from corpid.flows.operations.console import find_open_invitation, load_entity
from corpid.rules.audit_records import AuditQuery
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.changes import Conflict
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.lists import ENTITIES, MEMBERS
from corpid.rules.directory.member_details import InvalidDetails, identity, shown_name
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, APPROVALS, ENTITY_STATUSES, Entity, MemberDetails
from corpid.rules.directory.sections import SECTIONS
from corpid.rules.fields import fields_of
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.texts import counted, phrase
from corpid.web.operations.audit import recent_entries
from corpid.web.operations.page_context import (
    AT_ONCE,
    KEPT_BY_AUDIT,
    ONLY_FIRST,
    REASON,
    ConsoleContext,
    ConsolePage,
    actor_with_reason,
    console_path,
    frame,
    is_current,
    path_if_allowed,
    question,
    record_link,
    record_page,
    section_link,
    show_list,
    step_of,
)
from corpid.web.operations.people import person_path
from corpid.web.pages.components import (
    INVITED,
    Actions,
    Cell,
    Facts,
    Fields,
    Form,
    Heading,
    Label,
    Page,
    Paragraph,
    Radios,
    Value,
    enabled_label,
    last_day,
    table,
)
from corpid.web.pages.errors import reason_of
from corpid.web.pages.layout import Field, Link
from corpid.web.pages.record_forms import RecordForm, form_of
from corpid.web.sites import NOTHING_DIFFERENT, EditConflict, FormResult, InvalidForm, NotFound, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.lists import Appointment
    from corpid.flows.operations.console import EntityDetails
    from corpid.rules.directory.queries import Member
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
_OF_PARTIES: Final = (
    phrase("Organisation"), phrase("Service"), phrase("Role"), phrase("Until"), phrase("State"),
)  # fmt: skip


_WAYS: Final = (("name", phrase("Name")), ("number", phrase("Registration number")), ("id", phrase("Identifier")))
_CHANGED: Final = phrase(
    "Somebody else has changed this organisation in the meantime. Your changes were not saved: this is the "
    "organisation as it is now."
)


def entity_path(web: WebContext, entity_id: str, page: str = "") -> str:
    """The address path of an organisation's page."""
    return console_path(web, entity_page_path(entity_id, page))


def entity_page_path(entity_id: str, page: str = "") -> str:
    """The path of an organisation's page in the console."""
    return record_page("entities", entity_id, page)


async def show_entities(at: ConsoleContext) -> View:
    """A page of organisations, narrowed by what is searched (R-12.4)."""

    def row(entity: Entity) -> tuple[Value, ...]:
        link = record_link(at, "entities", entity.entity_id, entity.name)
        number = entity.registration_number or entity.entity_id
        return link, number, ENTITY_STATUSES[entity.status], enabled_label(entity.enabled)

    new = path_if_allowed(at, NEW)
    return await show_list(
        at, "entities", partial(list_records, at.registry, at.actor, ENTITIES), row, heading=phrase("Organisations"),
        columns=(phrase("Name"), phrase("Registration number"), phrase("Status"), phrase("State")),
        label=phrase("Name, registration number or identifier"), ways=_WAYS, none=phrase("There are no organisations yet."),
        not_found=phrase("No organisation found. Check the spelling."),
        add=Link(url=new, text=phrase("Add an organisation")) if new else None,
    )  # fmt: skip


async def entity_of(at: ConsoleContext) -> Entity:
    """The organisation of the page. Raises NotFound, access.Forbidden."""
    return await await_found(find_entity(at.registry, at.page.split("/")[1], actor=at.actor))


async def show_entity(at: ConsoleContext) -> View:
    """One organisation: facts, administrators, third parties."""
    found = await await_found(load_entity(at.registry, at.page.split("/")[1], actor=at.actor, limit=AT_ONCE, few=_FEW))
    entity = found.entity
    administrators, third_parties, clients = found.administrators, found.third_parties, found.clients
    return Page(
        frame=frame(at, section="entities", up=section_link(at, "entities")),
        heading=phrase("Organisation: {name}", name=entity.name),
        name=entity.name,
        parts=(
            Paragraph(text=enabled_label(entity.enabled)),
            None
            if found.has_owner
            else Paragraph(
                text=phrase("No owner can act for this organisation at present. Appoint one."), look="summary"
            ),
            Facts(facts=_list_facts(found)),
            Actions(links=tuple(_list_actions(at, entity))),
            Heading(text=phrase("Administrators")),
            table(
                phrase("They decide who may act for the organisation."),
                (phrase("Name"), phrase("Level"), phrase("Services"), phrase("State")),
                (_administrator(at, each) for each in administrators.found),
                empty=phrase("Nobody administers this organisation."),
                more=ONLY_FIRST if administrators.after else None,
            ),
            Heading(text=phrase("Third parties")),
            table(
                phrase("They may act for this organisation."),
                _OF_PARTIES,
                (_party(at, each, each.entity_id, found.names) for each in third_parties.found),
                empty=None if clients.found else phrase("There are none."),
                more=ONLY_FIRST if third_parties.after else None,
            ),
            table(
                phrase("The organisation may act for these."),
                _OF_PARTIES,
                (_party(at, each, each.client_entity_id, found.names) for each in clients.found),
                more=ONLY_FIRST if clients.after else None,
            ),
            Heading(text=phrase("History")),
            *await recent_entries(at, AuditQuery(entity_id=entity.entity_id), {"entity": entity.entity_id}),
        ),
    )


def _list_facts(found: EntityDetails) -> tuple[tuple[Phrase, Value], ...]:
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


def _administrator(at: ConsoleContext, each: Appointment) -> tuple[Value, ...]:
    membership, user, level = each.membership, each.user, each.administrator
    invited = membership.invited
    active = user.enabled and membership.enabled
    resend = record_page("invitation", membership.membership_id)
    name = shown_name(membership, user)
    url = path_if_allowed(at, entity_page_path(membership.entity_id, resend)) if invited else ""
    services = level.services if level.level == "sub_administrator" else "all"
    return (
        name if invited else Link(url=person_path(at.web, user.user_id), text=name),
        ADMINISTRATOR_LEVELS[level.level],
        phrase("All") if isinstance(services, str) else ", ".join(services),
        Cell(
            values=(INVITED if invited else enabled_label(active),)
            + ((Link(url=url, text=phrase("Send again"), about=name),) if url else ())
        ),
    )


def _party(at: ConsoleContext, grant: ThirdPartyGrant, other: str, names: Mapping[str, str]) -> tuple[Value, ...]:
    return (
        record_link(at, "entities", other, names.get(other, other)),
        record_link(at, "services", grant.service_id, grant.service_id),
        grant.role or phrase("Any role"),
        last_day(grant.end_date),
        Label(phrase("Active")) if grant.state == "accepted" else Label(phrase("Offered"), "warning"),
    )


async def show_members(at: ConsoleContext) -> View:
    """The people of an organisation, by user name."""
    entity = await entity_of(at)
    return await show_list(
        at, entity_page_path(entity.entity_id, "people"),
        partial(
            list_with_records, at.registry, at.actor, MEMBERS, {"entity": entity.entity_id}, order="user_name"
        ),
        partial(_member, at),
        heading=phrase("People of {name}", name=entity.name),
        columns=(phrase("User name"), phrase("Name"), phrase("Administers as"), phrase("State")),
        label=phrase("Name, user name or e-mail address"), none=phrase("Nobody belongs to this organisation yet."),
        not_found=phrase("Nobody found. Check the spelling."),
        up=Link(url=entity_path(at.web, entity.entity_id), text=phrase("Back")),
    )  # fmt: skip


def _member(at: ConsoleContext, each: EntityMember) -> tuple[Value, ...]:
    membership, user = each.membership, each.user
    resend = entity_page_path(membership.entity_id, record_page("invitation", membership.membership_id))
    url = path_if_allowed(at, resend) if membership.invited else person_path(at.web, user.user_id)
    name = identity(membership, user)
    return (
        Link(url=url, text=name) if url else name,
        membership.name if membership.invited else user.name,
        ADMINISTRATOR_LEVELS[each.level] if each.level else None,  # type: ignore[index]
        INVITED if membership.invited else enabled_label(membership.enabled and user.enabled),
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
        raise InvalidInput(phrase("Somebody has already done this. Open the organisation again.")) from None
    return FormResult("entity-enable" if enables else "entity-disable", entity_page_path(entity.entity_id))


# --- invitations


async def _load_invitation(at: ConsoleContext) -> tuple[Entity, Member]:
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
    return Page(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Organisations"))),
        heading=phrase("Add an organisation"),
        parts=(
            Form(
                parts=(
                    Fields(
                        fields=_NEW.show(_NEW.read(at.form) if at.form else {"type": "UEN", "status": "Registered"})
                    ),
                    Heading(text=phrase("First owner")),
                    Paragraph(
                        text=phrase(
                            "The owner decides who may act for the organisation. Leave both fields empty to appoint "
                            "one later."
                        ),
                        look="hint",
                    ),
                    _invitations_wait(at),
                    Fields(fields=OWNER.show(OWNER.read(at.form))),
                ),
                reason=KEPT_BY_AUDIT,
                button=phrase("Add the organisation"),
            ),
        ),
    )


def _invitations_wait(at: ConsoleContext) -> Paragraph | None:
    if at.provider.mail.works:
        return None
    return Paragraph(text=phrase("This deployment sends no e-mails: the invitation waits until it does."), look="hint")


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
                phrase("There is already an organisation with this identifier."), field="entity_id"
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
    typed = {name: at.form.get(name, "").strip() for name in ("way", "user_name", "instead_of")}
    ways = (
        (_INVITED, phrase("Invite somebody by e-mail"), None),
        (_MEMBER, phrase("A person who already belongs to the organisation"), None),
    )
    replaced = (
        *((user_id, name, None) for user_id, name in held.items()),
        (_NOBODY, phrase("Nobody: all current owners stay"), None),
    )
    return Page(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Back"))),
        heading=phrase("Appoint an owner"),
        parts=(
            Paragraph(
                text=phrase(
                    "An owner of {name} decides who may act for it, and who administers it. Make sure that the person "
                    "is entitled to this.",
                    name=entity.name,
                )
            ),
            Form(
                parts=(
                    Radios(name="way", legend=phrase("Who becomes an owner?"), options=ways, value=typed["way"]),
                    _invitations_wait(at),
                    Heading(text=phrase("To invite somebody")),
                    Fields(fields=OWNER.show(OWNER.read(at.form))),
                    Heading(text=phrase("For a person who already belongs to it")),
                    Fields(fields=(Field(name="user_name", label=phrase("User name"), value=typed["user_name"]),)),
                    Heading(text=phrase("In place of an owner")) if held else None,
                    Radios(
                        name="instead_of",
                        legend=phrase("Who stops being an owner?"),
                        options=replaced,
                        value=typed["instead_of"],
                        hint=phrase(
                            "The person stays a member, with the same roles, and no longer administers the organisation."
                        ),
                    )
                    if held
                    else None,
                ),
                reason=KEPT_BY_AUDIT,
                button=phrase("Appoint the owner"),
            ),
        ),
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
        raise InvalidInput(phrase("You cannot do this: {reason}.", reason=refused.reason)) from None
    except (Refused, Conflict) as refused:
        raise InvalidInput(phrase("It was not done: {reason}.", reason=reason_of(refused))) from None
    return FormResult("owner-appointed", entity_page_path(entity.entity_id))


async def show_edit(at: ConsoleContext) -> View:
    """The form, with what was typed or what is stored."""
    entity = await entity_of(at)
    back = entity_path(at.web, entity.entity_id)
    return Page(
        frame=frame(at, section="entities", up=Link(url=back, text=phrase("Back")), step_name=step_of(at, entity)),
        heading=phrase("Change the organisation"),
        parts=(
            Paragraph(text=phrase("Identifier: {identifier}. It never changes.", identifier=entity.entity_id)),
            Form(
                parts=(Fields(fields=_EDITED.show(_EDITED.read(at.form) if at.form else to_builtins(entity))),),
                reason=KEPT_BY_AUDIT,
                button=phrase("Save"),
            ),
        ),
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
        "entity-add": phrase("The organisation has been added."),
        "entity-edit": phrase("The organisation has been changed."),
        "entity-disable": phrase("The organisation has been disabled."),
        "entity-enable": phrase("The organisation has been enabled."),
        "owner-appointed": phrase("The owner has been appointed."),
        "invitation-sent": phrase("The invitation is on its way."),
    },
)
