"""Organisations in the console: search, one organisation, its owners (D53, D54)."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import entities, invitations, lists
from corpid.flows.directory.finding import entity_named
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.write import Refused
from corpid.flows.operations.console import find_open_invitation, load_entity
from corpid.rules.directory.entity_choice import NUMBERS, STATUSES
from corpid.rules.directory.names import identity, shown_name
from corpid.rules.directory.records import NO_END
from corpid.rules.limits import MINUTE, RESEND_SECONDS
from corpid.texts import counted, phrase
from corpid.web.operations import views
from corpid.web.operations.confirm import question
from corpid.web.operations.page_context import (
    AT_ONCE,
    ConsoleContext,
    ConsolePage,
    console_path,
    frame,
    pager,
    path_if_allowed,
    read_search,
    searched_text,
)
from corpid.web.operations.people import person_path
from corpid.web.operations.reasons import REASON, acting
from corpid.web.operations.views import StateLabel
from corpid.web.pages.access_texts import APPROVALS, LEVELS
from corpid.web.pages.layout import Link
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.lists import Appointment
    from corpid.flows.operations.console import EntityDetails
    from corpid.rules.directory.queries import StoredMember
    from corpid.rules.directory.records import Entity, EntityType, ThirdPartyGrant
    from corpid.texts import Phrase
    from corpid.web.context import WebContext
    from corpid.web.pages.views import View

ONE: Final = r"entities/[^/]+"
NEW: Final = "new-organisation"
"""the page's path: any name below `entities` could be an organisation's identifier"""
_FEW: Final = 20
"""third parties on an organisation's page"""
_WAYS: Final = (
    ("name", phrase("Name")),
    ("number", phrase("Registration number")),
    ("id", phrase("Identifier")),
)
TYPES: Final[Mapping[EntityType, Phrase]] = {
    "UEN": phrase("Registered in this country (UEN)"),
    "NON-UEN": phrase("Foreign (NON-UEN)"),
    "GSTN": phrase("Tax registration only (GSTN)"),
}


def entity_path(web: WebContext, entity_id: str, page: str = "") -> str:
    """The address path of an organisation's page."""
    return console_path(web, entity_page_path(entity_id, page))


def entity_page_path(entity_id: str, page: str = "") -> str:
    """The path of an organisation's page in the console."""
    return f"entities/{quote(entity_id, safe='')}" + (f"/{page}" if page else "")


async def entities_page(at: ConsoleContext) -> View:
    """A page of organisations, narrowed by what is searched (R-12.4)."""
    search, by = read_search(at, _WAYS)
    try:
        page = await _found(at, by, search, at.query.get("after", ""))
    except Refused:
        page = lists.ListPage(found=())
    new = path_if_allowed(at, NEW)
    return views.SearchedList(
        frame=frame(at, section="entities"),
        heading=phrase("Organisations"),
        action=console_path(at.web, "entities"),
        label=phrase("Begins with"),
        ways=_WAYS,
        by=by,
        search=search,
        caption=phrase("Organisations"),
        columns=(phrase("Name"), phrase("Registration number"), phrase("Status"), phrase("State")),
        lines=tuple(
            views.Line(
                url=entity_path(at.web, each.entity_id),
                name=each.name,
                texts=(each.registration_number or each.entity_id, STATUSES[each.status]),
                state=views.active(each.enabled),
            )
            for each in page.found
        ),
        empty=phrase("No organisation is found. Type only the beginning, or search by something else.")
        if search
        else phrase("There are no organisations yet."),
        add=Link(url=new, text=phrase("Add an organisation")) if new else None,
        pager=pager(at, "entities", page.after, search=search, by=by if by != "name" else ""),
        saved=at.saved,
    )


async def _found(at: ConsoleContext, by: str, search: str, after: str) -> lists.ListPage[Entity]:
    registry, actor = at.context.provider.registry, at.actor
    if by == "number":
        return await lists.entities_by_number(registry, actor, number=search, after=after, limit=AT_ONCE)
    if by == "id":
        return await lists.entities(registry, actor, search=search, after=after, limit=AT_ONCE)
    return await lists.entities_by_name(registry, actor, name=search, after=after, limit=AT_ONCE)


def _entity_id(at: ConsoleContext) -> str:
    return at.page.split("/")[1]


async def entity_of(at: ConsoleContext) -> Entity:
    """The organisation of the page. Raises NotFound, access.Forbidden."""
    try:
        return await entity_named(at.context.provider.registry, _entity_id(at), actor=at.actor)
    except Refused:
        raise NotFound from None


async def entity_page(at: ConsoleContext) -> View:
    """One organisation: facts, administrators, third parties."""
    try:
        found = await load_entity(at.context.provider.registry, _entity_id(at), actor=at.actor, limit=AT_ONCE, few=_FEW)
    except Refused:
        raise NotFound from None
    entity = found.entity
    return views.OrganisationView(
        frame=frame(
            at, section="entities", up=Link(url=console_path(at.web, "entities"), text=phrase("Organisations"))
        ),
        heading=phrase("Organisation: {name}", name=entity.name),
        name=entity.name,
        state=views.active(entity.enabled),
        facts=_facts(found),
        no_owner=not found.has_owner,
        actions=tuple(_links_to_actions(at, entity)),
        administrators=tuple(_administrator(at, each) for each in found.administrators.found),
        more_administrators=bool(found.administrators.after),
        third_parties=tuple(_party(at, each, each.entity_id, found.names) for each in found.third_parties.found),
        more_third_parties=bool(found.third_parties.after),
        clients=tuple(_party(at, each, each.client_entity_id, found.names) for each in found.clients.found),
        more_clients=bool(found.clients.after),
        saved=at.saved,
    )


def _facts(found: EntityDetails) -> tuple[views.Fact, ...]:
    entity, count = found.entity, found.people
    return (
        (phrase("Identifier"), entity.entity_id),
        (NUMBERS[entity.type], entity.registration_number or phrase("None")),
        (phrase("Country"), entity.country),
        (phrase("Status"), STATUSES[entity.status]),
        (phrase("Approvals"), APPROVALS[entity.approvals]),
        (phrase("People"), counted(count, "{count} person", "{count} people")),
    )


def _links_to_actions(at: ConsoleContext, entity: Entity) -> list[Link]:
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
        level=LEVELS[level.level],
        services=_services_of(level.services) if level.level == "sub_administrator" else "",
        state=StateLabel(text=phrase("Invited"), tone="warning") if invited else views.active(active),
        resend=path_if_allowed(at, entity_page_path(membership.entity_id, resend)) if invited else "",
    )


def _services_of(services: tuple[str, ...] | str) -> str:
    return services if isinstance(services, str) else ", ".join(services)


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


async def members_page(at: ConsoleContext) -> View:
    """The people of an organisation, by user name."""
    entity = await entity_of(at)
    registry = at.context.provider.registry
    search = searched_text(at)
    try:
        page = await lists.members(
            registry, at.actor, entity.entity_id, search=search, after=at.query.get("after", ""), limit=AT_ONCE
        )
    except Refused:
        page = lists.ListPage(found=())
    path = entity_page_path(entity.entity_id, "people")
    return views.SearchedList(
        frame=frame(at, section="entities", up=Link(url=entity_path(at.web, entity.entity_id), text=phrase("Back"))),
        heading=phrase("People of {name}", name=entity.name),
        action=console_path(at.web, path),
        label=phrase("User name begins with"),
        ways=(),
        by="",
        search=search,
        caption=phrase("People"),
        columns=(phrase("User name"), phrase("Name"), phrase("Administers as"), phrase("State")),
        lines=tuple(_member(at, each) for each in page.found),
        empty=phrase("Nobody is found. Type only the beginning.")
        if search
        else phrase("Nobody belongs to this organisation yet."),
        pager=pager(at, path, page.after, search=search),
        saved=at.saved,
    )


def _member(at: ConsoleContext, each: lists.EntityMember) -> views.Line:
    invited = each.membership.invited
    level = LEVELS[each.level] if each.level else ""  # type: ignore[index]
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


async def switch_page(at: ConsoleContext) -> View:
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


async def switch(at: ConsoleContext) -> FormResult:
    """Disable or enable the organisation. Raises InvalidInput, NotFound."""
    entity = await entity_of(at)
    provider, enables = at.context.provider, at.page.endswith("/enable")
    actor = acting(at)
    try:
        await entities.switch_entity(provider.registry, entity.entity_id, enabled=enables, actor=actor)
    except Refused:
        raise InvalidInput(phrase("Somebody has done this already. Open the organisation again.")) from None
    provider.registry_cache.drop()
    return FormResult("entity-enable" if enables else "entity-disable", entity_page_path(entity.entity_id))


# --- invitations


async def _invited(at: ConsoleContext) -> tuple[Entity, StoredMember]:
    """The invitation of the page."""
    entity = await entity_of(at)
    registry = at.context.provider.registry
    found = await find_open_invitation(registry, entity.entity_id, at.page.split("/")[3], actor=at.actor)
    if found is None:
        raise NotFound
    return entity, found


async def invitation_page(at: ConsoleContext) -> View:
    """The confirmation of sending an invitation again."""
    entity, member = await _invited(at)
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
    entity, member = await _invited(at)
    provider, membership = at.context.provider, member.membership
    actor = acting(at)
    if not membership.email:
        raise InvalidInput(phrase("The invitation has no e-mail address to go to."))
    if not provider.mail.works:
        raise InvalidInput(phrase("This deployment sends no e-mails."))
    if abs(membership.invitation_sent_at) > at.context.now - RESEND_SECONDS:
        raise InvalidInput(
            phrase("It was sent less than {count} minutes ago. Wait a little.", count=RESEND_SECONDS // MINUTE)
        )
    limit = InvitationLimit(
        transient=provider.transient, issuer=provider.policy.deployment_url, counts=at.context.counts
    )
    await invitations.send_invitation_again(provider.registry, limit, membership, actor=actor, now=at.context.now)
    return FormResult("invitation-sent", entity_page_path(entity.entity_id))


SECTION: Final = Section[ConsoleContext](
    pages={"entities": ConsolePage(view=entities_page)},
    named_pages={
        re.compile(ONE): ConsolePage(view=entity_page),
        re.compile(rf"{ONE}/people"): ConsolePage(view=members_page),
        re.compile(rf"{ONE}/(disable|enable)"): ConsolePage(
            view=switch_page, submit=switch, fresh=True, needs=("write", "entity")
        ),
        re.compile(rf"{ONE}/invitation/[^/]+"): ConsolePage(
            view=invitation_page, submit=send_invitation, fresh=True, needs=("write", "invitation")
        ),
    },
    fields=frozenset({REASON, "decision"}),
    filters=frozenset({"by", "search", "after"}),
    changes={
        "entity-disable": phrase("The organisation is disabled."),
        "entity-enable": phrase("The organisation is enabled."),
        "invitation-sent": phrase("The invitation is on its way."),
    },
)
