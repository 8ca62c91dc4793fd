"""People of an entity: list, choice of one, invitations (D53, D55, D60, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, cast, get_args

import msgspec

from corpid.flows.authentication.sign_in import InvalidInput
from corpid.flows.directory import member_changes, members, role_assignment
from corpid.flows.directory.invitations import InvitationLimit
from corpid.flows.directory.lists import ListPage as FoundPage
from corpid.flows.directory.member_changes import MOST_INVITED
from corpid.flows.directory.members import MemberFilter
from corpid.flows.directory.write import Refused
from corpid.rules.directory import tables
from corpid.rules.directory.approvals import kind_needs_approval
from corpid.rules.directory.member_details import PLAIN_DETAILS, InvalidDetails, check_details
from corpid.rules.directory.queries import MemberState
from corpid.rules.directory.records import ADMINISTRATOR_LEVELS, MemberDetails
from corpid.rules.fields import fields_of
from corpid.texts import Phrase, counted, phrase
from corpid.web.directory.member_texts import EACH_GETS, REFUSALS, STATES, belongs, rejected
from corpid.web.directory.page_context import (
    PortalContext,
    PortalPage,
    frame,
    portal_path,
    query_address,
    request_details,
    saved_or_requested,
    section_link,
)
from corpid.web.directory.people_views import InvitationPreview, Invite, InviteSeveral, People, PersonRow
from corpid.web.pages.layout import Link, Pager, PageView, ViewPart, pager_of, total_text
from corpid.web.pages.record_forms import advise, form_of
from corpid.web.sites import ConfirmationRequired, FormResult, InvalidForm, Section, await_found

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from corpid.flows.directory.members import Member
    from corpid.rules.directory.tables import PastedPerson
    from corpid.web.pages.layout import FieldError, Frame
    from corpid.web.pages.views import View

PEOPLE: Final = "people"
PERSON: Final = "person"
"""the page of a person, which names the membership"""
MEMBER: Final = form_of(MemberDetails, "name", "email")
INVITE: Final = "invite"
INVITED: Final = "invited"
"""the parameter of how many were invited, and the key of that change"""
_SHOWN: Final = 50
_SEARCH: Final = "q"
FIND: Final = "find"
"""the parameter of what is searched for"""
AFTER: Final = "after"
"""the parameter of the place at which the list goes on"""
PERSON_CHOSEN: Final = "person"
"""the parameter that names the chosen membership"""
_CHARACTERS: Final = 100
_PER_PAGE: Final = 25
SEVERAL: Final = f"{INVITE}/several"
_CONFIRMED: Final = "confirmed"
_LINES: Final = phrase(
    "One person a line, at most {most}: “Marcus Lee <marcus@example.com>”, “Marcus Lee, marcus@example.com” or only "
    "the address. You can paste lines from a mail program or a table.",
    most=MOST_INVITED,
)


_ERRORS: Final = 20
"""lines whose errors are listed; further ones are counted"""
_LINE: Final = 60


class PersonChoice(ViewPart, frozen=True, kw_only=True):
    """A person in the list, and what leads on."""

    url: str
    """empty: they cannot be chosen"""
    name: str
    user_name: str
    tags: tuple[Phrase, ...] = ()
    why_not: Phrase | None = None


class ChoosePerson(PageView, frozen=True, kw_only=True):
    """The choice of a person, by search."""

    template: ClassVar[str] = "manage/choose_person.html"

    heading: Phrase
    action: str
    kept: tuple[tuple[str, str], ...] = ()
    """hidden fields: name and value"""
    find: str
    asked: Phrase
    lead: Phrase | None = None
    found: tuple[PersonChoice, ...]
    pager: Pager
    refused: Phrase | None = None
    """why the choice would be of no use"""
    links: tuple[Link, ...] = ()


async def show_people(at: PortalContext) -> View:
    """The people of the entity, a page of fifty."""
    services = await role_assignment.list_services(at.registry, at.actor, at.entity)
    state, service = at.query.get("state", ""), at.query.get("service", "")
    wanted = MemberFilter(
        search=at.query.get(_SEARCH, "").strip()[:_CHARACTERS],
        state=cast("MemberState", state) if state in get_args(MemberState) else "",
        service_id=service if service in {each.service_id for each in services} else "",
    )
    try:
        page = await members.list_members(
            at.registry, wanted, actor=at.actor, after=at.query.get("after", ""), before=at.query.get("before", ""),
            limit=_SHOWN,
        )  # fmt: skip
    except Refused:  # no place of this list
        page = FoundPage(found=())
    filters = {_SEARCH: wanted.search, "state": wanted.state, "service": wanted.service_id}
    return People(
        frame=frame(at, section=PEOPLE),
        action=portal_path(at.web, PEOPLE),
        people=tuple(
            PersonRow(
                url=portal_path(at.web, f"{PERSON}/{each.member.membership.membership_id}"),
                name=each.member.name_alone,
                user_name=each.member.identity,
                email=each.member.email,
                state=each.member.state,
                state_text=STATES[each.member.state],
                level=ADMINISTRATOR_LEVELS[each.level] if each.level else None,
                roles=each.roles,
                details=tuple(filter(None, (getattr(each.member.membership, name) for name in PLAIN_DETAILS))),
            )
            for each in page.found
        ),
        pager=Pager(
            first=query_address(at, PEOPLE, **filters) if at.query.get("after") or page.before else "",
            previous=query_address(at, PEOPLE, **filters, before=page.before) if page.before else "",
            next=query_address(at, PEOPLE, **filters, after=page.after) if page.after else "",
            total=total_text(page.total) if page.total else None,
        ),
        search=wanted.search,
        state=wanted.state,
        states=(("", phrase("Any")), *STATES.items()),
        service=wanted.service_id,
        services=(("", phrase("Any")), *((each.service_id, each.name) for each in services)),
        narrowed=any(filters.values()),
        everybody=portal_path(at.web, PEOPLE),
        invite=portal_path(at.web, INVITE) if members.may_invite(at.actor) else None,
        own_services=at.actor.level == "sub_administrator",
        saved=_saved(at),
    )


def _saved(at: PortalContext) -> Phrase | None:
    """The change just made, with the number of those invited."""
    number = at.query.get(INVITED, "")
    if at.saved is None or not (number.isascii() and number.isdigit() and len(number) < len("1000")):
        return at.saved
    return counted(int(number), "{count} person has been invited.", "{count} people have been invited.")


# --- the choice of a person, for every page that is about one


async def choose_person(
    at: PortalContext,
    page: str,
    to: Callable[[Member], str | Phrase],
    *,
    frame: Frame,
    heading: Phrase,
    asked: Phrase,
    kept: tuple[tuple[str, str], ...] = (),
    lead: Phrase | None = None,
    links: tuple[Link, ...] = (),
) -> ChoosePerson:
    """The choice of a person on a page.

    `to` gives the address that a person leads to, or why they cannot be chosen. Raises NotFound for a place that is in
    no list. Source: D53, D61
    """
    find, after = at.query.get(FIND, "").strip(), at.query.get(AFTER, "")
    found = await await_found(
        members.list_members(at.registry, MemberFilter(search=find), actor=at.actor, after=after, limit=_PER_PAGE)
    )
    here = portal_path(at.web, page)
    same = {**dict(kept), **({FIND: find} if find else {})}
    people = []
    for each in found.found:
        leads = to(each.member)
        levels = (ADMINISTRATOR_LEVELS[each.level],) if each.level else ()
        people.append(
            PersonChoice(
                url="" if isinstance(leads, Phrase) else leads,
                name=each.member.name_alone,
                user_name=each.member.identity,
                tags=levels if each.member.state == "active" else (STATES[each.member.state], *levels),
                why_not=leads if isinstance(leads, Phrase) else None,
            )
        )
    return ChoosePerson(
        frame=frame,
        heading=heading,
        action=here,
        kept=kept,
        find=find,
        asked=asked,
        lead=lead,
        found=tuple(people),
        pager=pager_of(here, same, came=bool(after), after=found.after, name=AFTER),
        links=links,
    )


# --- invitations


async def show_invitation(at: PortalContext) -> View:
    """The form for one person."""
    return Invite(
        frame=_invitation_frame(at),
        note=EACH_GETS,
        mail_works=at.provider.mail.works,
        fields=MEMBER.show(at.form),
        needs_approval=kind_needs_approval("membership", at.entity),
        several=portal_path(at.web, SEVERAL),
        back=portal_path(at.web, PEOPLE),
    )


async def invite_person(at: PortalContext) -> FormResult:
    """Invite one person. Raises InvalidForm, InvalidInput."""
    typed = MEMBER.read(at.form)
    if errors := MEMBER.find_errors(typed, required=True):
        raise InvalidForm(*errors)
    details = check_details(MemberDetails(**typed), named=False)
    if await member_changes.known_addresses(at.registry, [details.email], actor=at.actor):
        raise InvalidInput(belongs(at.entity), field="email")
    return await _submit_invitations(at, [details])


def detail_errors(error: InvalidDetails) -> list[FieldError]:
    """The errors of names and addresses that cannot be stored."""
    declared = fields_of(MemberDetails)
    return [
        (member, advise(declared[member], sentence, error.remedies.get(member))) for member, sentence in error.faults
    ]


async def show_invitations(at: PortalContext) -> View:
    """The form for several people."""
    return InviteSeveral(
        frame=_invitation_frame(at),
        note=EACH_GETS,
        mail_works=at.provider.mail.works,
        hint=_LINES,
        people=at.form.get("people", ""),
        needs_approval=kind_needs_approval("membership", at.entity),
        one=portal_path(at.web, INVITE),
        back=portal_path(at.web, PEOPLE),
    )


async def _read_people(at: PortalContext) -> list[MemberDetails]:
    people = tables.read_pasted_people(at.form.get("people", ""))
    if not people:
        raise InvalidInput(phrase("Enter one person a line."), field="people")
    if len(people) > MOST_INVITED:
        raise InvalidInput(
            phrase("These are {count} people. Invite at most {most} at once.", count=len(people), most=MOST_INVITED),
            field="people",
        )
    found = [each.details for each in people if each.details is not None]
    addresses = [each.email for each in found]
    known = await member_changes.known_addresses(at.registry, addresses, actor=at.actor)
    errors = [sentence for each in people if (sentence := _describe_fault(at, each, known)) is not None]
    if errors:
        shown: list[FieldError] = [("people", each) for each in errors[:_ERRORS]]
        if len(errors) > _ERRORS:
            rest = len(errors) - _ERRORS
            shown.append(("people", counted(rest, "{count} more line is wrong.", "{count} more lines are wrong.")))
        raise InvalidForm(*shown)
    return found


async def invite_several(at: PortalContext) -> FormResult:
    """Invite the people of the form, once confirmed. Raises ConfirmationRequired, InvalidForm, InvalidInput."""
    found = await _read_people(at)
    if at.form.get(_CONFIRMED) != "yes":
        raise ConfirmationRequired
    try:
        return await _submit_invitations(at, found)
    except InvalidInput as rejected:
        raise ConfirmationRequired((rejected.field, rejected.sentence)) from None


async def check_invitations(at: PortalContext) -> View:
    """The people whom the form would invite. Raises InvalidForm, InvalidInput."""
    found = await _read_people(at)
    needs_approval = kind_needs_approval("membership", at.entity)
    number = len(found)
    return InvitationPreview(
        frame=msgspec.structs.replace(
            _invitation_frame(at), up=Link(url=portal_path(at.web, SEVERAL), text=phrase("Invite several people"))
        ),
        heading=counted(number, "Invite {count} person?", "Invite {count} people?"),
        note=EACH_GETS,
        mail_works=at.provider.mail.works,
        found=tuple((each.name, each.email) for each in found),
        people=at.form.get("people", ""),
        button=phrase("Send for approval")
        if needs_approval
        else counted(number, "Send {count} invitation", "Send {count} invitations"),
        needs_approval=needs_approval,
    )


def _describe_fault(at: PortalContext, person: PastedPerson, known: frozenset[str]) -> Phrase | None:
    """The fault of a line in words; None without one."""
    line, text = person.line, person.text if len(person.text) <= _LINE else f"{person.text[:_LINE]}…"
    if person.details is not None:
        if person.details.email not in known:
            return None
        return phrase(
            "Line {line}: somebody with this address already belongs to {entity} or has been invited: {text}",
            line=line, entity=at.entity.name, text=text,
        )  # fmt: skip
    if person.fault == "repeated":
        return phrase("Line {line}: line {first} has this address already: {text}", line=line, first=person.first_line, text=text)  # fmt: skip
    if person.fault == "no address":
        return phrase("Line {line}: there is no e-mail address: {text}", line=line, text=text)
    if person.remedy is not None:
        return phrase("Line {line}: {remedy} {text}", line=line, remedy=person.remedy, text=text)
    if person.fault == "name":
        return phrase("Line {line}: this name cannot be used: {text}", line=line, text=text)
    return phrase("Line {line}: this is not an e-mail address such as name@example.com: {text}", line=line, text=text)


async def _submit_invitations(at: PortalContext, people: Sequence[MemberDetails]) -> FormResult:
    """Invite people, or request it."""
    try:
        request = await member_changes.submit_invitations(
            at.registry, InvitationLimit.for_request(at.context), people, actor=at.actor, asking=request_details(at),
            new_id=at.web.new_user_id,
        )  # fmt: skip
    except REFUSALS as error:
        raise rejected(error, entity=at.entity) from None
    return saved_or_requested(request, FormResult(INVITED, f"{PEOPLE}?{INVITED}={len(people)}"))


def _invitation_frame(at: PortalContext) -> Frame:
    return frame(at, section=PEOPLE, up=section_link(at, PEOPLE))


_INVITING: Final = ("write", "invitation")
SECTION: Final = Section[PortalContext](
    pages={
        PEOPLE: PortalPage(view=show_people),
        INVITE: PortalPage(view=show_invitation, submit=invite_person, fresh=True, needs=_INVITING),
        SEVERAL: PortalPage(
            view=show_invitations,
            submit=invite_several,
            check=check_invitations,
            fresh=True,
            field="people",
            needs=_INVITING,
        ),
    },
    fields=frozenset({*MEMBER.fields, "people", "reason", _CONFIRMED}),
    filters=frozenset({_SEARCH, "state", "service", "after", "before"}),
    changes={INVITED: phrase("The invitation has been sent.")},
)
