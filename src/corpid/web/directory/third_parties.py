"""Third parties in the portal, from both sides (D56, D61)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final
from urllib.parse import urlencode

from corpid.flows.directory import grants
from corpid.rules.directory.entity_choice import NUMBERS
from corpid.rules.directory.records import NO_BEGINNING, NO_END
from corpid.texts import Phrase, counted, phrase
from corpid.web.directory import third_party_offers, third_party_people
from corpid.web.directory.page_context import PortalContext, PortalPage, frame, portal_path
from corpid.web.directory.third_party_objects import (
    OFFER,
    PER_PAGE,
    THIRD_PARTIES,
    authorisation,
    check_version,
    facts,
    is_client,
    named,
    page_of,
    sentence,
    up,
    url,
    version,
)
from corpid.web.directory.third_party_terms import FIELDS, AuthorisationConfirmation
from corpid.web.directory.writing import await_page, submit_changes
from corpid.web.pages.access_texts import duration
from corpid.web.pages.layout import Pager, PageView, ViewPart, pager_of
from corpid.web.pages.role_fields import PARAMETER
from corpid.web.sites import FormResult, NotFound, Section

if TYPE_CHECKING:
    from datetime import datetime

    from corpid.flows.directory.grants import Authorisation, ThirdPartyRole
    from corpid.rules.directory.plan import Change
    from corpid.rules.directory.records import ThirdPartyGrant
    from corpid.web.pages.layout import Frame
    from corpid.web.pages.views import View

_PEOPLE_PER_PAGE: Final = 25
_MOST_COUNTED: Final = 1000

_WAITS_FOR_THEM: Final = phrase("Waits for acceptance")
_WAITS_FOR_YOU: Final = phrase("Waits for your answer")
_ACTIVE: Final = phrase("Active")
_ENDED: Final = phrase("Has ended")
_NOT_YET: Final = phrase("Not yet started")


class AuthorisationLine(ViewPart, frozen=True, kw_only=True):
    """An authorisation in a list; the organisation is the other side."""

    url: str
    name: str
    number: str
    number_name: Phrase
    service: str
    role: str
    """empty for any"""
    has_roles: bool
    dates: Phrase
    state: Phrase
    warns: bool


class Lines(ViewPart, frozen=True, kw_only=True):
    """A part of the list of authorisations."""

    title: Phrase
    caption: Phrase
    organisation: Phrase
    """the heading of the column of organisations"""
    empty: Phrase | None
    """None: the part is not shown if it has no lines"""
    lines: tuple[AuthorisationLine, ...]
    pager: Pager


class ThirdParties(PageView, frozen=True, kw_only=True):
    """Authorisations that the entity has given and received. Error id: organisation."""

    template: ClassVar[str] = "manage/third_parties.html"
    heading: ClassVar[Phrase] = phrase("Third parties")

    action: str
    offer: str
    organisation: str
    """what was searched for"""
    parts: tuple[Lines, ...]
    saved: Phrase | None


class PersonLine(ViewPart, frozen=True, kw_only=True):
    """A third party's person, as either side may see them (D61)."""

    name: str | Phrase
    role: str
    dates: Phrase
    signed_in: datetime | None
    change: str = ""
    take_away: str = ""


class OneAuthorisation(PageView, frozen=True, kw_only=True):
    """An authorisation, and the people who act under it."""

    template: ClassVar[str] = "manage/third_party.html"

    heading: Phrase
    saved: Phrase | None
    sentence: Phrase
    state: Phrase
    warns: bool
    note: Phrase | None
    facts: tuple[tuple[Phrase, str], ...]
    number: str
    number_name: Phrase
    client: bool
    """whether it is seen by the organisation that gave it"""
    accept: str
    decline: str
    change: str
    end: str
    withdraw: str
    assign: str
    people_title: Phrase
    empty: Phrase
    people: tuple[PersonLine, ...]
    pager: Pager


def _state(at: PortalContext, grant: ThirdPartyGrant, *, client: bool) -> tuple[Phrase, bool]:
    """The state of an authorisation today, and whether it asks for attention."""
    if grant.state == "offered":
        return (_WAITS_FOR_THEM, False) if client else (_WAITS_FOR_YOU, True)
    if grant.end_date < at.context.today:
        return _ENDED, False
    return (_NOT_YET, False) if grant.start_date > at.context.today else (_ACTIVE, False)


def _line(at: PortalContext, found: Authorisation) -> AuthorisationLine:
    client = is_client(at, found)
    other = found.third_party if client else found.client_entity
    state, warns = _state(at, found.grant, client=client)
    return AuthorisationLine(
        url=url(at, "grant", found.grant),
        name=other.name,
        number=other.registration_number,
        number_name=NUMBERS[other.type],
        service=found.service.name,
        role=found.grant.role,
        has_roles=bool(found.service.roles),
        dates=_capital(found.grant),
        state=state,
        warns=warns,
    )


def _capital(row: ThirdPartyGrant) -> Phrase:
    """The dates as a text of their own."""
    return duration(row.start_date, row.end_date)


async def third_parties(at: PortalContext) -> View:
    """Authorisations given and received, and offers that wait (D56)."""
    registry = at.context.provider.registry
    typed = at.query.get("organisation", "").strip()
    errors, other = at.errors, ""
    if typed:
        found = await grants.find_organisations(registry, at.actor, typed)
        other = found[0].entity_id if len(found) == 1 else ""
        if len(found) > 1:
            errors = (("organisation", phrase("Several organisations have this name: enter the registration number.")),)
        elif not found:
            errors = (("organisation", phrase("There is no organisation of exactly this number or name.")),)
    kept = {"organisation": typed} if typed else {}

    async def part(name: str, *, given: bool, state: str, **texts: Phrase | None) -> Lines:
        page = await await_page(
            grants.list_authorisations(
                registry, at.actor, given=given, other=other, state=state or None,  # type: ignore[arg-type]
                after=at.query.get(name, ""), limit=PER_PAGE,
            ),
        )  # fmt: skip
        here = portal_path(at.web, THIRD_PARTIES)
        following = f"{here}?{urlencode({**kept, name: page.after})}" if page.after else ""
        first = f"{here}?{urlencode(kept)}" if kept else here
        return Lines(
            lines=tuple(_line(at, each) for each in page.found),
            pager=Pager(first=first if name in at.query else "", next=following),
            **texts,  # type: ignore[arg-type]
        )

    parts = (
        await part(
            "offers", given=False, state="offered",
            title=phrase("Offers that wait for your answer"),
            caption=phrase("Organisations that ask yours to act for them"),
            organisation=phrase("Organisation"), empty=None,
        ),
        await part(
            "given", given=True, state="",
            title=phrase("Who may act for your organisation"),
            caption=phrase("Other organisations that you have authorised, or made an offer to"),
            organisation=phrase("Third party"),
            empty=phrase("No other organisation may act for yours."),
        ),
        await part(
            "received", given=False, state="accepted",
            title=phrase("Who your organisation acts for"),
            caption=phrase("Organisations whose offer you have accepted"),
            organisation=phrase("Organisation"),
            empty=phrase("Your organisation acts for no other. When one makes you an offer, it appears here."),
        ),
    )  # fmt: skip
    return ThirdParties(
        frame=frame(at, section=THIRD_PARTIES),
        errors=errors,
        action=portal_path(at.web, THIRD_PARTIES),
        offer=portal_path(at.web, OFFER),
        organisation=typed,
        parts=() if errors else parts,
        saved=at.saved,
    )


async def one(at: PortalContext) -> View:
    """One authorisation, and the people who act under it (D56, D61)."""
    found = await authorisation(at)
    grant, client = found.grant, is_client(at, found)
    other = found.third_party if client else found.client_entity
    state, warns = _state(at, grant, client=client)
    after = at.query.get("after", "")
    page = await await_page(
        grants.list_roles(at.context.provider.registry, at.actor, grant, after=after, limit=_PEOPLE_PER_PAGE)
    )
    here = url(at, "grant", grant)
    accepted = grant.state == "accepted"
    return OneAuthorisation(
        frame=up(at),
        errors=at.errors,
        heading=phrase("{name}: {service}", name=other.name, service=found.service.name),
        saved=at.saved,
        sentence=sentence(found),
        state=state,
        warns=warns,
        note=_note(found, client=client),
        facts=facts(grant),
        number=other.registration_number,
        number_name=NUMBERS[other.type],
        client=client,
        accept="" if client or accepted else url(at, "accept", grant),
        decline="" if client or accepted else url(at, "decline", grant),
        change=url(at, "change", grant) if client else "",
        end=url(at, "end", grant) if accepted else "",
        withdraw=url(at, "end", grant) if client and not accepted else "",
        assign=url(at, "assign", grant) if accepted and not client and grant.end_date >= at.context.today else "",
        people_title=phrase("Who may act for your organisation") if client else phrase("Your people who act here"),
        empty=_empty(found, client=client),
        people=tuple(_person(at, found, each, client=client) for each in page.found),
        pager=pager_of(here, {}, came=bool(after), after=page.after, searched_on=len(page.found) < _PEOPLE_PER_PAGE),
    )


def _note(found: Authorisation, *, client: bool) -> Phrase | None:
    if found.grant.state != "offered":
        return None
    if client:
        return phrase("It gives nothing until {name} accepts it.", name=found.third_party.name)
    return phrase(
        "{name} made this offer. If you accept it, you can give your people access.", name=found.client_entity.name
    )


def _empty(found: Authorisation, *, client: bool) -> Phrase:
    if client:
        return phrase("{name} has not given any of its people access yet.", name=found.third_party.name)
    return phrase("None of your people may act here yet.")


def _person(at: PortalContext, found: Authorisation, given: ThirdPartyRole, *, client: bool) -> PersonLine:
    row = given.row
    signed_in = given.signed_in_at
    return PersonLine(
        name=given.name or phrase("Somebody of {entity}", entity=found.third_party.name),
        role=row.role,
        dates=duration(
            max(row.start_date, found.grant.start_date, NO_BEGINNING), min(row.end_date, found.grant.end_date, NO_END)
        ),
        signed_in=at.moment(signed_in) if signed_in else None,
        change="" if client or found.grant.state != "accepted" else url(at, "change-role", row),
        take_away="" if client else url(at, "take-away", row),
    )


# --- answers, and the end


async def _asked(at: PortalContext, *, client: bool | None, offered: bool | None) -> Authorisation:
    """The authorisation, for the page's side and state."""
    found = await authorisation(at)
    if client is not None and is_client(at, found) is not client:
        raise NotFound
    if offered is not None and (found.grant.state == "offered") is not offered:
        raise NotFound
    return found


def _confirmation(at: PortalContext, found: Authorisation, **said: object) -> AuthorisationConfirmation:
    shown: Frame = up(at, found)
    return AuthorisationConfirmation(
        frame=shown,
        errors=at.errors,
        action=portal_path(at.web, at.page),
        hidden=(("version", version(at, found.grant)),),
        back=url(at, "grant", found.grant),
        notes=at.notes,
        **said,  # type: ignore[arg-type]
    )


async def accept(at: PortalContext) -> View:
    """The confirmation of accepting an offer (D56)."""
    found = await _asked(at, client=False, offered=True)
    return _confirmation(
        at,
        found,
        heading=phrase("Accept this offer?"),
        sentence=sentence(found),
        facts=facts(found.grant),
        consequences=(
            phrase("You can then give your people access within it. Either organisation can end it at any time."),
            phrase("{name} sees which of your people act for it.", name=found.client_entity.name),
        ),
        reason=at.form.get("reason", "") if grants.needs_approval(at.entity, found.service) else None,
        button=phrase("Accept"),
    )


async def save_acceptance(at: PortalContext) -> FormResult:
    """Accept an offer. Raises InvalidInput."""
    found = await _asked(at, client=False, offered=True)
    check_version(at, found.grant)
    return await submit_changes(
        at, [grants.plan_acceptance(found.grant)], FormResult("grant-accepted", page_of("grant", found.grant))
    )


async def decline(at: PortalContext) -> View:
    """The confirmation of declining an offer (D56)."""
    found = await _asked(at, client=False, offered=True)
    return _confirmation(
        at,
        found,
        heading=phrase("Decline this offer?"),
        sentence=sentence(found),
        facts=facts(found.grant),
        consequences=(
            phrase("The offer is gone then. {name} can make another one.", name=found.client_entity.name),
            *await _roles_lost(at, found),
        ),
        button=phrase("Decline"),
        danger=True,
    )


async def save_refusal(at: PortalContext) -> FormResult:
    """Decline an offer. Raises InvalidInput."""
    found = await _asked(at, client=False, offered=True)
    return await _removed(at, found, "grant-declined")


async def end(at: PortalContext) -> View:
    """The confirmation of an end or a withdrawal (D56)."""
    found = await _asked(at, client=None, offered=None)
    client, offered = is_client(at, found), found.grant.state == "offered"
    if offered and not client:
        raise NotFound
    names = {"third_party": found.third_party.name, "client": found.client_entity.name, "service": found.service.name}
    if offered:
        ends = phrase(
            "The offer to {third_party} is withdrawn: {third_party} can no longer accept it.",
            third_party=names["third_party"],
        )
    else:
        ends = phrase("{third_party} may no longer act for {client} at {service}, from now on.", **names)
    return _confirmation(
        at,
        found,
        heading=phrase("Withdraw this offer?") if offered else phrase("End this authorisation?"),
        sentence=ends,
        facts=facts(found.grant),
        consequences=(*await _roles_lost(at, found), *([] if offered else [_NO_WAY_BACK])),
        button=phrase("Withdraw") if offered else phrase("End it now"),
        danger=True,
    )


_NO_WAY_BACK: Final = phrase("To allow it again takes a new offer, and its acceptance.")


async def _roles_lost(at: PortalContext, found: Authorisation) -> tuple[Phrase, ...]:
    number = await grants.count_roles_ending(at.context.provider.registry, at.actor, found.grant)
    name = found.third_party.name
    if number >= _MOST_COUNTED:
        return (phrase("More than {count} roles of people of {name} end with it.", count=number, name=name),)
    if not number:
        return ()
    return (
        counted(
            number,
            "{count} role of a person of {name} ends with it.",
            "{count} roles of people of {name} end with it.",
            name=name,
        ),
    )


async def save_end(at: PortalContext) -> FormResult:
    """End an authorisation, or withdraw an offer. Raises InvalidInput."""
    found = await _asked(at, client=None, offered=None)
    offered = found.grant.state == "offered"
    if offered and not is_client(at, found):
        raise NotFound
    return await _removed(at, found, "grant-withdrawn" if offered else "grant-ended")


async def _removed(at: PortalContext, found: Authorisation, change: str) -> FormResult:
    check_version(at, found.grant)
    changes: list[Change] = [grants.plan_grant_end(found.grant)]
    return await submit_changes(at, changes, FormResult(change, THIRD_PARTIES))


SECTION: Final = Section[PortalContext](
    pages={
        THIRD_PARTIES: PortalPage(view=third_parties),
        OFFER: PortalPage(
            view=third_party_offers.offer,
            submit=third_party_offers.save_offer,
            check=third_party_offers.check_offer,
            fresh=True,
            needs=("write", "grant"),
        ),
    },
    named_pages={
        named("grant"): PortalPage(view=one),
        named("accept"): PortalPage(view=accept, submit=save_acceptance, fresh=True, needs=("write", "grant")),
        named("decline"): PortalPage(view=decline, submit=save_refusal, fresh=True, needs=("delete", "grant")),
        named("end"): PortalPage(view=end, submit=save_end, fresh=True, needs=("delete", "grant")),
        named("change"): PortalPage(
            view=third_party_offers.change,
            submit=third_party_offers.save_change,
            check=third_party_offers.check_change,
            fresh=True,
            needs=("write", "grant"),
        ),
        named("assign"): PortalPage(
            view=third_party_people.assign,
            submit=third_party_people.save_role,
            check=third_party_people.check_role,
            fresh=True,
            needs=("write", "third-party row"),
        ),
        named("change-role"): PortalPage(
            view=third_party_people.change,
            submit=third_party_people.save_change,
            check=third_party_people.check_change,
            fresh=True,
            needs=("write", "third-party row"),
        ),
        named("take-away"): PortalPage(
            view=third_party_people.take_away,
            submit=third_party_people.save_taken,
            fresh=True,
            needs=("delete", "third-party row"),
        ),
    },
    fields=FIELDS | {"to", "service", "person"},
    filters=frozenset({"organisation", "to", "service", "person", "find", "after", "offers", "given", "received"}),
    prefixes=(PARAMETER,),
    changes={
        "grant-offered": phrase("The offer is made."),
        "grant-changed": phrase("The authorisation is changed."),
        "grant-accepted": phrase("You have accepted the offer. You can give your people access now."),
        "grant-declined": phrase("You have declined the offer."),
        "grant-ended": phrase("The authorisation has ended."),
        "grant-withdrawn": phrase("The offer is withdrawn."),
        "role-given": phrase("Access is given."),
        "role-changed": phrase("Access is changed."),
        "role-taken": phrase("Access is taken away."),
    },
)
