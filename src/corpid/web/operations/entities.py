"""Organisations in the console: list, one, new, changed, its owners (D53, D54, R-12.4)."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import to_builtins
from msgspec.structs import replace

from corpid.flows.directory import appointments, invitations
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import Appointment, EntityMember, find_entity, list_records, list_with_records
from corpid.flows.directory.single_records import set_enabled
from corpid.flows.directory.write import Refused
from corpid.flows.operations.console import EntityDetails, find_open_invitation, load_entity
from corpid.rules.audit import AuditQuery
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.access_texts import state
from corpid.rules.directory.document import SECTIONS
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.lists import ENTITIES, MEMBERS
from corpid.rules.directory.memberships import InvalidDetails, Member, identity, shown_name
from corpid.rules.directory.names import canonical, label_identity
from corpid.rules.directory.records import (
    ADMINISTRATOR_LEVELS,
    APPROVALS,
    ENTITY_STATUSES,
    Conflict,
    Entity,
    MemberDetails,
    ThirdPartyGrant,
)
from corpid.rules.fields import fields_of
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.texts import InvalidInput, Phrase, counted, phrase
from corpid.web.operations.audit import recent_entries
from corpid.web.operations.page_context import (
    AT_ONCE,
    KEPT_BY_AUDIT,
    LIST_FILTERS,
    ONLY_FIRST,
    REASON,
    ConsoleContext,
    ConsolePage,
    check_current,
    record_page,
    save_record,
    show_list,
)
from corpid.web.pages.components import (
    Actions,
    Cell,
    Facts,
    Field,
    Form,
    Group,
    Heading,
    Label,
    Link,
    Paragraph,
    Radios,
    Value,
    View,
    enabled_label,
    last_day,
    state_label,
    table,
)
from corpid.web.pages.errors import reason_of
from corpid.web.pages.record_forms import RecordForm, form_of
from corpid.web.sites import (
    NOTHING_DIFFERENT,
    Check,
    FormResult,
    InvalidForm,
    NotFound,
    Section,
    await_found,
    check_page,
)

if TYPE_CHECKING:
    from starlette.responses import Response

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
_OF_OWNER: Final = ("way", "user_name", "instead_of", *OWNER.fields)
"""the fields of the form that appoints one"""
_OF_PARTIES: Final = (
    phrase("Organisation"), phrase("Service"), phrase("Role"), phrase("Until"), phrase("State"),
)  # fmt: skip


_CHANGED: Final = phrase(
    "Somebody else has changed this organisation in the meantime. Your changes were not saved: this is the "
    "organisation as it is now."
)


def entity_path(at: ConsoleContext, entity_id: str, page: str = "") -> str:
    """The address path of an organisation's page."""
    return at.path(entity_page_path(entity_id, page))


def entity_page_path(entity_id: str, page: str = "") -> str:
    """The path of an organisation's page in the console."""
    return record_page("entities", entity_id, page)


async def show_entities(at: ConsoleContext) -> View | Response:
    """A page of organisations, narrowed by what is searched (R-12.4)."""

    def row(entity: Entity) -> tuple[Value, ...]:
        link = at.record_link("entities", entity.entity_id, entity.name)
        number = entity.registration_number or entity.entity_id
        return link, number, ENTITY_STATUSES[entity.status], enabled_label(entity.enabled)

    return await show_list(
        at, "entities", ENTITIES, partial(list_records, at.registry, at.actor, ENTITIES), row,
        heading=phrase("Organisations"),
        columns=(
            (phrase("Name"), "name"), (phrase("Registration number"), "number"), (phrase("Status"), ""),
            (phrase("State"), ""),
        ),
        label=phrase("Name, registration number or identifier"), none=phrase("There are no organisations yet."),
        not_found=phrase("No organisation found. Check the spelling."),
        add=at.allowed_link(NEW, phrase("Add an organisation")),
    )  # fmt: skip


async def entity_of(at: ConsoleContext) -> Entity:
    """The organisation of the page. Raises NotFound, access.Forbidden."""
    return await await_found(find_entity(at.registry, at.page.split("/")[1], actor=at.actor))


async def show_entity(at: ConsoleContext) -> View:
    """One organisation: facts, administrators, third parties."""
    found = await await_found(load_entity(at.registry, at.page.split("/")[1], actor=at.actor, limit=AT_ONCE, few=_FEW))
    entity = found.entity
    administrators, third_parties, clients = found.administrators, found.third_parties, found.clients
    return at.build_page(
        phrase("Organisation: {name}", name=entity.name),
        enabled_label(entity.enabled),
        None
        if found.has_owner
        else Paragraph(phrase("No owner can act for this organisation at present. Appoint one."), look="summary"),
        Actions(tuple(_list_actions(at, entity))),
        Group(
            look="beside",
            parts=(
                Facts(_list_facts(found)),
                Group(
                    look="stack",
                    parts=(
                        Heading(phrase("History")),
                        *await recent_entries(at, AuditQuery(entity_id=entity.entity_id), {"entity": entity.entity_id}),
                    ),
                ),
            ),
        ),
        Heading(phrase("Administrators")),
        table(
            phrase("They decide who may act for the organisation."),
            (phrase("Name"), phrase("Level"), phrase("Services"), phrase("State")),
            (_administrator(at, each) for each in administrators.found),
            empty=phrase("Nobody administers this organisation."),
            more=ONLY_FIRST if administrators.after else None,
        ),
        Heading(phrase("Third parties")),
        table(
            phrase("They may act for this organisation."),
            _OF_PARTIES,
            (_party(at, found, each, each.entity_id) for each in third_parties.found),
            empty=None if clients.found else phrase("There are none."),
            more=ONLY_FIRST if third_parties.after else None,
        ),
        table(
            phrase("The organisation may act for these."),
            _OF_PARTIES,
            (_party(at, found, each, each.client_entity_id) for each in clients.found),
            more=ONLY_FIRST if clients.after else None,
        ),
        name=entity.name,
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
    links = [Link(url=entity_path(at, entity.entity_id, "people"), text=phrase("Its people"))]
    switch = ("disable", phrase("Disable")) if entity.enabled else ("enable", phrase("Enable"))
    pages = (("owner", phrase("Appoint an owner")), ("edit", phrase("Change")), switch)
    found = (at.allowed_link(entity_page_path(entity.entity_id, page), text) for page, text in pages)
    return [*links, *filter(None, found)]


def _administrator(at: ConsoleContext, each: Appointment) -> tuple[Value, ...]:
    membership, user, level = each.membership, each.user, each.administrator
    invited = membership.invited
    resend = record_page("invitation", membership.membership_id)
    name = shown_name(membership, user)
    again = (
        at.allowed_link(entity_page_path(membership.entity_id, resend), phrase("Send again"), name) if invited else None
    )
    services = level.services if level.level == "sub_administrator" else "all"
    return (
        name if invited else at.record_link("people", user.user_id, name),
        ADMINISTRATOR_LEVELS[level.level],
        phrase("All") if isinstance(services, str) else ", ".join(services),
        Cell(values=(state_label(Member(user=user, membership=membership).state), *((again,) if again else ()))),
    )


def _party(at: ConsoleContext, found: EntityDetails, grant: ThirdPartyGrant, other: str) -> tuple[Value, ...]:
    any_role = None if grant.service_id in found.without_roles else phrase("Any role")
    return (
        at.record_link("entities", other, found.names.get(other, other)),
        at.record_link("services", grant.service_id, grant.service_id),
        grant.role or any_role,
        last_day(grant.end_date),
        Label(phrase("Offered"), "warning")
        if grant.state == "offered"
        else Label(state(grant, at.context.day) or phrase("Active")),
    )


async def show_members(at: ConsoleContext) -> View | Response:
    """The people of an organisation, by user name."""
    entity = await entity_of(at)
    return await show_list(
        at, entity_page_path(entity.entity_id, "people"), MEMBERS,
        partial(list_with_records, at.registry, at.actor, MEMBERS, {"entity": entity.entity_id}),
        partial(_member, at),
        heading=phrase("People of {name}", name=entity.name),
        columns=(
            (phrase("User name"), "user_name"), (phrase("Name"), ""), (phrase("Administers as"), ""),
            (phrase("State"), ""),
        ),
        label=phrase("Name, user name or e-mail address"), none=phrase("Nobody belongs to this organisation yet."),
        not_found=phrase("Nobody found. Check the spelling."),
        up=Link(url=entity_path(at, entity.entity_id), text=phrase("Back")),
    )  # fmt: skip


def _member(at: ConsoleContext, each: EntityMember) -> tuple[Value, ...]:
    membership, user = each.membership, each.user
    resend = entity_page_path(membership.entity_id, record_page("invitation", membership.membership_id))
    name = identity(membership, user)
    link = at.allowed_link(resend, name) if membership.invited else at.record_link("people", user.user_id, name)
    return (
        link or name,
        membership.name if membership.invited else user.name,
        ADMINISTRATOR_LEVELS[each.level] if each.level else None,  # type: ignore[index]
        state_label(each.state),
    )


# --- disable and enable


async def ask_switch(at: ConsoleContext) -> Check:
    """The check before an organisation is disabled or enabled. Raises NotFound."""
    entity = await entity_of(at)
    switch = at.page.rpartition("/")[2]
    disables = switch == "disable"

    async def change() -> None:
        actor = at.actor_with_reason()
        try:
            await set_enabled(at.registry, "entity", {"entity_id": entity.entity_id}, enabled=not disables, actor=actor)
        except Refused:
            raise InvalidInput(phrase("Somebody has already done this. Open the organisation again.")) from None

    return Check(
        heading=phrase("Disable {name}?", name=entity.name) if disables else phrase("Enable {name}?", name=entity.name),
        parts=(
            phrase("Nobody can act for it any more, in any service. People, access and roles stay recorded."),
            phrase("You can enable it again."),
        )
        if disables
        else (phrase("Its people can act for it again, with the access that they had."),),
        button=phrase("Disable") if disables else phrase("Enable"),
        danger=disables,
        up=_back(at, entity),
        change=change,
        done=FormResult(f"entity-{switch}", entity_page_path(entity.entity_id)),
    )


def _back(at: ConsoleContext, entity: Entity) -> Link:
    return Link(url=entity_path(at, entity.entity_id), text=phrase("Back"))


async def ask_invitation(at: ConsoleContext) -> Check:
    """The check before an invitation is sent again. Raises NotFound, Forbidden."""
    entity = await entity_of(at)
    found = await find_open_invitation(at.registry, entity.entity_id, at.page.split("/")[3], actor=at.actor)
    if found is None:
        raise NotFound
    membership = found.membership

    async def send() -> None:
        actor = at.actor_with_reason()
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

    return Check(
        heading=phrase("Send the invitation again"),
        parts=(
            phrase(
                "{name} was invited to {organisation}, and has not accepted yet.",
                name=shown_name(membership, found.user),
                organisation=entity.name,
            ),
            phrase("The e-mail goes to {email}. The earlier link stops working.", email=membership.email),
        ),
        button=phrase("Send again"),
        names=None,
        up=_back(at, entity),
        change=send,
        done=FormResult("invitation-sent", entity_page_path(entity.entity_id)),
    )


async def show_new(at: ConsoleContext) -> View:
    """The form of a new organisation and its first owner."""
    back = at.path("entities")
    return at.build_page(
        phrase("Add an organisation"),
        Form(
            parts=(
                *_NEW.show(_NEW.read(at.form) if at.form else {"type": "UEN", "status": "Registered"}),
                Heading(phrase("First owner")),
                Paragraph(
                    phrase(
                        "The owner decides who may act for the organisation. Leave both fields empty to appoint "
                        "one later."
                    ),
                    look="hint",
                ),
                _invitations_wait(at),
                *OWNER.show(OWNER.read(at.form)),
            ),
            reason=KEPT_BY_AUDIT,
            button=phrase("Add the organisation"),
        ),
        up=Link(url=back, text=phrase("Organisations")),
    )


def _invitations_wait(at: ConsoleContext) -> Paragraph | None:
    if at.provider.mail.works:
        return None
    return Paragraph(phrase("This deployment sends no e-mails: the invitation waits until it does."), look="hint")


async def add_entity(at: ConsoleContext) -> FormResult:
    """Add an organisation and invite its first owner: both or neither."""
    members, invited = _NEW.read(at.form), OWNER.read(at.form)
    errors = _NEW.find_errors(members)
    if any(invited.values()):
        errors += OWNER.find_errors(invited, required=True)
    if errors:
        raise InvalidForm(*errors)
    actor = at.actor_with_reason()
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
    back = entity_path(at, entity.entity_id)
    typed = {name: at.form.get(name, "").strip() for name in ("way", "user_name", "instead_of")}
    ways = (
        (_INVITED, phrase("Invite somebody by e-mail"), None),
        (_MEMBER, phrase("A person who already belongs to the organisation"), None),
    )
    replaced = (
        *((user_id, name, None) for user_id, name in held.items()),
        (_NOBODY, phrase("Nobody: all current owners stay"), None),
    )
    return at.build_page(
        phrase("Appoint an owner"),
        phrase(
            "An owner of {name} decides who may act for it, and who administers it. Make sure that the person "
            "is entitled to this.",
            name=entity.name,
        ),
        Form(
            parts=(
                Radios(name="way", legend=phrase("Who becomes an owner?"), options=ways, value=typed["way"]),
                _invitations_wait(at),
                Heading(phrase("To invite somebody")),
                *OWNER.show(OWNER.read(at.form)),
                Heading(phrase("For a person who already belongs to it")),
                Field(name="user_name", label=phrase("User name"), value=typed["user_name"]),
                Heading(phrase("In place of an owner")) if held else None,
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
            button=phrase("Continue"),
        ),
        up=Link(url=back, text=phrase("Back")),
    )


class _NewOwner(NamedTuple):
    """A new owner, and the one in whose place."""

    owner: Member | MemberDetails
    """a member, or somebody to invite"""
    replaced: str
    """the user identifier of the owner who stops being one; empty: nobody"""
    replaced_name: str


async def _read_owner(at: ConsoleContext, entity: Entity) -> _NewOwner:
    """The owner whom the form names. Raises InvalidInput, InvalidForm, Forbidden."""
    way, user_name, instead_of = (at.form.get(name, "").strip() for name in ("way", "user_name", "instead_of"))
    owner: Member | MemberDetails
    if way == _MEMBER:
        if not user_name:
            raise InvalidInput(phrase("Enter the person's user name."), field="user_name")
        try:
            owner = await appointments.find_new_owner(at.registry, entity.entity_id, user_name, actor=at.actor)
        except Refused as refused:
            sentence = phrase("It was not done: {reason}.", reason=reason_of(refused))
            raise InvalidInput(sentence, field="user_name") from None
    elif way == _INVITED:
        invited = OWNER.read(at.form)
        if errors := OWNER.find_errors(invited, required=True):
            raise InvalidForm(*errors)
        owner = MemberDetails(**invited)
    else:
        raise InvalidInput(phrase("Choose who becomes an owner."), field="way")
    held = await appointments.list_owners(at.registry, entity.entity_id, actor=at.actor)
    if not instead_of and held:
        raise InvalidInput(phrase("Choose an owner, or nobody."), field="instead_of")
    replaced = "" if instead_of == _NOBODY else instead_of
    if replaced and replaced not in held:
        raise InvalidInput(phrase("This person is no longer an owner. Choose again."), field="instead_of")
    return _NewOwner(owner, replaced, held.get(replaced, ""))


async def ask_owner(at: ConsoleContext) -> Check:
    """The check that says who becomes an owner (D68).

    Raises InvalidInput, InvalidForm, NotFound, Forbidden.
    """
    entity = await entity_of(at)
    read = await _read_owner(at, entity)
    owner, back = read.owner, entity_path(at, entity.entity_id)
    if isinstance(owner, Member):
        name, facts = owner.name, _known_of(at, owner)
    else:
        name = label_identity(owner.email.lower(), owner.name, invited=True)
        facts = ((phrase("E-mail address"), owner.email.lower()), (phrase("Name, as you entered it"), owner.name))
    kept = [(field, at.form[field]) for field in _OF_OWNER if at.form.get(field)]
    replaced = phrase(
        "{name} stays a member, with the same roles, and no longer administers the organisation.",
        name=read.replaced_name,
    )
    return Check(
        heading=phrase("Appoint {name} as an owner of {entity}?", name=name, entity=entity.name),
        parts=(
            phrase("An owner decides who may act for the organisation, and who administers it."),
            Facts(facts),
            replaced if read.replaced else None,
            phrase("If you mean somebody else, cancel: nothing has changed yet."),
        ),
        hidden=tuple(kept),
        button=phrase("Appoint the owner"),
        names=None,
        up=Link(url=back, text=phrase("Back")),
        change=lambda: _appoint(at, entity, read),
        done=FormResult("owner-appointed", entity_page_path(entity.entity_id)),
    )


def _known_of(at: ConsoleContext, owner: Member) -> tuple[tuple[Phrase, Value], ...]:
    """The names of a member, and who wrote each."""
    membership, user = owner.membership, owner.user
    by_entity, own = phrase("written by the organisation"), phrase("written by the person")
    facts: list[tuple[Phrase, Value]] = [
        (phrase("What you entered"), at.form["user_name"].strip()),
        (phrase("User name of the account"), at.record_link("people", user.user_id, owner.identity)),
        (phrase("Name"), Cell(values=(owner.name_alone,), notes=(by_entity if membership.name else own,))),
        (phrase("E-mail address of the account"), user.email or phrase("None")),
    ]
    if membership.user_name and canonical(membership.user_name) != owner.identity:
        called = Cell(values=(membership.user_name,), notes=(by_entity,))
        facts.append((phrase("User name in the organisation"), called))
    return tuple(facts)


async def _appoint(at: ConsoleContext, entity: Entity, read: _NewOwner) -> None:
    """Appoint whom the check showed. Raises InvalidInput."""
    actor = at.actor_with_reason()
    try:
        await appointments.appoint_owner(
            at.registry, entity.entity_id, read.owner, instead_of=read.replaced,
            actor=actor, now=at.context.now, new_id=at.web.new_user_id,
        )  # fmt: skip
    except InvalidDetails as error:
        raise InvalidInput(phrase("Check the owner's name and address: {reason}.", reason=str(error))) from None
    except Forbidden as refused:
        raise InvalidInput(phrase("You cannot do this: {reason}.", reason=refused.reason)) from None
    except (Refused, Conflict) as refused:
        raise InvalidInput(phrase("It was not done: {reason}.", reason=reason_of(refused))) from None


async def show_edit(at: ConsoleContext) -> View:
    """The form, with what was typed or what is stored."""
    entity = await entity_of(at)
    back = entity_path(at, entity.entity_id)
    return at.build_page(
        phrase("Change the organisation"),
        phrase("Identifier: {identifier}. It never changes.", identifier=entity.entity_id),
        Form(
            parts=(*_EDITED.show(_EDITED.read(at.form) if at.form else to_builtins(entity)),),
            reason=KEPT_BY_AUDIT,
            button=phrase("Save"),
        ),
        up=Link(url=back, text=phrase("Back")),
        step_name=at.step_of(entity),
    )


async def edit_entity(at: ConsoleContext) -> FormResult:
    """Change the facts. Raises InvalidInput, InvalidForm, EditConflict, NotFound, Forbidden."""
    entity = await entity_of(at)
    check_current(at, entity, _CHANGED)
    typed = _EDITED.read(at.form)
    if errors := _EDITED.find_errors(typed):
        raise InvalidForm(*errors)
    members: dict[str, object] = {
        name: value if value != getattr(entity, name) else None for name, value in typed.items()
    }
    if all(value is None for value in members.values()):
        raise InvalidInput(NOTHING_DIFFERENT)
    await save_record(at, "entity", entity, members, _CHANGED)
    return FormResult("entity-edit", entity_page_path(entity.entity_id))


def _one(page: str = "") -> re.Pattern[str]:
    """The paths of a page about one organisation."""
    return re.compile(rf"entities/[^/]+{page}")


_WRITING: Final = ("write", "entity")
SECTION: Final = Section[ConsoleContext](
    name="entities",
    pages={
        "entities": ConsolePage(view=show_entities),
        NEW: ConsolePage(view=show_new, submit=add_entity, fresh=True, needs=_WRITING),
    },
    named_pages={
        _one(): ConsolePage(view=show_entity),
        _one("/people"): ConsolePage(view=show_members),
        _one("/(disable|enable)"): check_page(ask_switch, needs=_WRITING),
        _one("/invitation/[^/]+"): check_page(ask_invitation, needs=("write", "invitation")),
        _one("/owner"): check_page(ask_owner, form=show_owner, needs=("write", "administrator")),
        _one("/edit"): ConsolePage(view=show_edit, submit=edit_entity, fresh=True, needs=_WRITING),
    },
    fields=frozenset({*_NEW.fields, *_EDITED.fields, *_OF_OWNER, "decision", REASON}),
    filters=LIST_FILTERS,
    changes={
        "entity-add": phrase("The organisation has been added."),
        "entity-edit": phrase("The organisation has been changed."),
        "entity-disable": phrase("The organisation has been disabled."),
        "entity-enable": phrase("The organisation has been enabled."),
        "owner-appointed": phrase("The owner has been appointed."),
        "invitation-sent": phrase("The invitation is on its way."),
    },
)
