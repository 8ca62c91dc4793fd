"""The page of one person: access, state and history (D53, D61)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from corpid.flows.directory import approvals, member_help, members
from corpid.flows.directory.members import Member, UnknownMember, load_member
from corpid.flows.directory.write import Refused
from corpid.flows.operations import history
from corpid.flows.operations.history import HistoryFilter
from corpid.rules.directory.access import Forbidden
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.invitations import email_state
from corpid.rules.directory.names import fold_text
from corpid.rules.directory.objects import object_id
from corpid.rules.directory.records import Assignment, Service
from corpid.rules.directory.roles import reasons
from corpid.texts import phrase
from corpid.web.directory import history_texts
from corpid.web.directory.access import (
    CHANGE,
    NEW,
    PERSON,
    REMOVE,
    address,
    administers,
    own_access,
)
from corpid.web.directory.history import HISTORY
from corpid.web.directory.member_texts import (
    HELP_PAGES,
    STATES,
    WHY_NO_HELP,
    level_sentence,
    refusal_sentence,
    state_sentence,
)
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.people import PEOPLE
from corpid.web.directory.people_views import HistoryEntry, PersonPage, RoleSentence
from corpid.web.directory.requests import REQUESTS
from corpid.web.pages import access_texts
from corpid.web.pages.layout import Link, Pager
from corpid.web.sites import NotFound, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpid.flows.directory.members import MemberAccess
    from corpid.rules.directory.records import Membership
    from corpid.rules.directory.roles import HeldRole
    from corpid.texts import Phrase
    from corpid.web.pages.views import View

_SHOWN: Final = 100
"""roles a page"""
_ENTRIES: Final = 5
_REQUESTS: Final = 20
_EXAMINED: Final = 50
"""of the person's history, which has what they did to others, too"""
ACTIONS: Final[Mapping[str, Phrase]] = {
    "details": phrase("Change name and e-mail"),
    "send-again": phrase("Send the invitation again"),
    "restore": phrase("Restore"),
    "suspend": phrase("Suspend"),
    "revoke": phrase("Revoke the invitation"),
    "end": phrase("End the membership"),
}
"""the last parts of the addresses of actions"""


async def this_member(at: PortalContext, membership_id: str) -> Member:
    """A member of the entity. Raises NotFound."""
    try:
        return await load_member(at.context.provider.registry, membership_id, actor=at.actor)
    except UnknownMember:
        raise NotFound from None


def membership_id_of(at: PortalContext) -> str:
    """The membership that the address names."""
    return at.page.split("/")[1]


async def person(at: PortalContext) -> View:
    """A person's access in sentences, with the possible changes."""
    registry, actor, entity = at.context.provider.registry, at.actor, at.entity
    found = await this_member(at, membership_id_of(at))
    membership, name = found.membership, found.name
    try:
        held = await members.load_access(
            registry, membership, actor=actor, after=at.query.get("after", ""), limit=_SHOWN
        )
    except Refused:  # no place of this list
        raise NotFound from None
    change = await members.preview_change(registry, membership, actor=actor, end=False)
    end = await members.preview_change(registry, membership, actor=actor, end=True)
    here, state = portal_path(at.web, at.page), found.state
    links = {each: Link(url=f"{here}/{each}", text=text) for each, text in ACTIONS.items()}
    actions = ["send-again"] if members.may_send_again(membership, actor=actor) else []
    if not change.refusal and not membership.enabled:
        actions.append("restore")
    if not end.refusal and membership.enabled and not membership.invited:
        actions.append("suspend")
    entries = await _entries(at, found)
    refusal = change.refusal or end.refusal
    no_help = member_help.find_refusal(membership, held.administrator, actor=actor)
    may_give = members.may_give_access(membership, held.administrator, actor=actor)
    return PersonPage(
        frame=frame(at, section=PEOPLE, up=Link(url=portal_path(at.web, PEOPLE), text=phrase("People"))),
        heading=phrase("{name}", name=name),
        saved=at.saved,
        user_name="" if membership.invited else found.identity,
        written_user_name=membership.user_name if fold_text(membership.user_name) != fold_text(found.identity) else "",
        email=found.email,
        state=state,
        state_text=STATES[state],
        state_sentence=state_sentence(state, entity),
        level=await _level(at, held, name),
        mail=_mail(at, membership),
        roles=tuple(_role(at, name, role, state=state, changeable=may_give) for role in held.roles.found),
        pager=Pager(
            first=here if at.query.get("after") else "",
            next=address(at, at.page, after=held.roles.after) if held.roles.after else "",
        ),
        requests=await _requests(at, found),
        helps=() if no_help else tuple(Link(url=f"{here}/{each}", text=page.link) for each, page in HELP_PAGES.items()),
        help_refused=WHY_NO_HELP.get(no_help) if no_help and actor.level != "sub_administrator" else None,
        access_refused=None if may_give else _access_refused(at, found, held, name),
        own_services=actor.level == "sub_administrator",
        for_others=tuple(_role(at, name, role, state=state, changeable=may_give) for role in held.for_others),
        refused=refusal_sentence(refusal, name, entity) if refusal and actor.level != "sub_administrator" else None,
        give_access=address(at, NEW, person=membership.membership_id) if may_give else None,
        edit=None if change.refusal else links["details"].url,
        actions=tuple(links[each] for each in actions),
        end=None if end.refusal else links["revoke" if membership.invited else "end"],
        entries=entries,
        history=address(at, HISTORY, person=membership.membership_id) if entries else None,
        entity=entity.name,
        number=entity.registration_number,
        number_name=NUMBERS[entity.type],
        as_of=phrase("As of {day}", day=at.context.day),
    )


async def _requests(at: PortalContext, found: Member) -> tuple[Link, ...]:
    """Waiting requests on a member that the reader may see."""
    waiting = await approvals.list_waiting_on_person(
        at.context.provider.registry, at.actor, found.user.user_id, now=at.context.now, limit=_REQUESTS
    )
    return tuple(
        Link(
            url=portal_path(at.web, f"{REQUESTS}/{quote(each.record.request_id, safe='')}"),
            text=history_texts.request_sentence(each.changes, each.names),
        )
        for each in waiting
    )


async def _level(at: PortalContext, held: MemberAccess, name: str) -> Phrase | None:
    administrator = held.administrator
    if administrator is None:
        return None
    listed = administrator.services if isinstance(administrator.services, tuple) else ()
    known = await at.context.provider.registry.directory.read(Service, [(each,) for each in listed])
    return level_sentence(name, administrator, at.entity, tuple(sorted(each.name for each in known.values())))


def _mail(at: PortalContext, membership: Membership) -> Phrase | None:
    """The state of an invitation's e-mail."""
    if not membership.invited:
        return None
    provider = at.context.provider
    state = email_state(membership, mail_works=provider.mail.works)
    if state == "sent":
        sent = datetime.fromtimestamp(membership.invitation_sent_at, provider.policy.timezone)
        return phrase("The e-mail was sent on {moment}.", moment=sent)
    if state == "refused":
        return phrase("The mail server says that there is no such address. Change it, and a new e-mail is sent.")
    if state == "waiting":
        return phrase("The e-mail is about to be sent.")
    if state == "no_mail":
        return phrase("The e-mail waits, because this system sends none at present. Ask the operator.")
    return phrase("No e-mail is sent for this invitation.")


def _access_refused(at: PortalContext, found: Member, held: MemberAccess, name: str) -> Phrase | None:
    """The reason against changing this access, as its form gives it."""
    if found.user.user_id == at.actor.user_id:
        return own_access(at.entity)
    return administers(name, at.entity) if held.administrator is not None else None


def _role(at: PortalContext, name: str, role: HeldRole, *, state: str, changeable: bool) -> RoleSentence:
    row, today = role.row, at.context.day
    tag = access_texts.state(row, today)
    if tag is None and state == "active" and reasons(role, today.isoformat()):
        tag = phrase("No effect at present")
    identifier = object_id(row.key)
    own = changeable and isinstance(row, Assignment)
    return RoleSentence(
        sentence=access_texts.sentence(name, row, role.service, (role.client_entity or role.entity).name, today),
        details=access_texts.details(row),
        tag=tag,
        what=f"{row.role}, {role.service.name}" if row.role else role.service.name,
        change=portal_path(at.web, f"{CHANGE}/{identifier}") if own else "",
        take_away=portal_path(at.web, f"{REMOVE}/{identifier}") if own else "",
    )


async def _entries(at: PortalContext, found: Member) -> tuple[HistoryEntry, ...]:
    """The last changes of a member that the reader may see."""
    registry, actor, user_id = at.context.provider.registry, at.actor, found.user.user_id
    try:
        part = await history.changes(registry, actor, HistoryFilter(user_id=user_id), before=0, limit=_EXAMINED)
    except Forbidden:
        return ()
    entries = [entry for entry in part.entries if history.person_of(entry) == user_id][:_ENTRIES]
    names = await history.names(registry, actor, entries)
    zone = at.context.provider.policy.timezone
    return tuple(
        HistoryEntry(
            at=datetime.fromtimestamp(entry.at, zone),
            what=history_texts.sentence(entry, names),
            by=history_texts.author_of(entry.actor, entry, names, actor.entity_id),
        )
        for entry in entries
    )


_ID: Final = "[^/]{1,100}"
SECTION: Final = Section[PortalContext](
    named_pages={re.compile(f"{PERSON}/{_ID}"): PortalPage(view=person)}, filters=frozenset({"after"})
)
